"""Equal requests of several threads go out once; a first asker that fails hands over."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

import blendfusion as bf

N = 200


def _asked(model: bf.ScriptedModel) -> Counter[object]:
    return Counter((call.question, call.values) for call in model.calls)


def _at_once(*works: object) -> list[BaseException]:
    errors: list[BaseException] = []

    def safely(work: object) -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=safely, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "threads wait for each other"
    return errors


def _slow(call: bf.Request) -> bool:
    time.sleep(0.0005)
    return (call.values[0] or "").endswith("1")


def test_threads_that_collect_one_frame_ask_each_value_once() -> None:
    model = bf.ScriptedModel(_slow)
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_pydict({"x": [f"v{i}" for i in range(N)]}, name="t")
        frame = session.sql("SELECT x FROM t WHERE llm_filter('q', x)")
        rows: list[int] = []
        assert not _at_once(*[lambda: rows.append(len(frame.to_pylist()))] * 5)
        assert len(set(rows)) == 1
        assert len(model.calls) == N


@pytest.mark.parametrize("planner", [True, False])
def test_mixed_queries_of_threads_ask_the_distinct_values(planner: bool) -> None:
    model = bf.ScriptedModel(_slow)
    with bf.connect(model, cache=None, progress="off", planner=planner) as session:
        session.from_pydict({"x": [f"v{i}" for i in range(N)], "id": [*range(N)]}, name="t")
        queries = [
            f"SELECT x FROM t WHERE llm_filter('q{i % 3}', x) AND id >= {10 * (i % 5)}"
            for i in range(24)
        ]

        def some(of: int) -> None:
            for query in queries[of::6]:
                session.sql(query).collect()

        assert not _at_once(*(lambda i=i: some(i) for i in range(6)))
        assert max(_asked(model).values()) == 1


def test_sessions_with_one_store_share_requests() -> None:
    model, store = bf.ScriptedModel(_slow), bf.MemoryStore()
    sessions = [bf.connect(model, cache=store, progress="off") for _ in range(4)]
    for session in sessions:
        session.from_pydict({"x": [f"v{i}" for i in range(N)]}, name="t")
    sql = "SELECT x FROM t WHERE llm_filter('q', x)"
    assert not _at_once(*(lambda s=s: s.sql(sql).collect() for s in sessions))
    assert len(model.calls) == N


def test_a_first_asker_that_fails_hands_over() -> None:
    fails = threading.Event()

    def answer(call: bf.Request) -> bool:
        time.sleep(0.002)
        if not fails.is_set():
            fails.set()
            raise KeyboardInterrupt
        return True

    model = bf.ScriptedModel(answer)
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_pydict({"x": [f"v{i}" for i in range(50)]}, name="t")
        frame = session.sql("SELECT x FROM t WHERE llm_filter('q', x)")
        rows: list[int] = []
        errors = _at_once(*[lambda: rows.append(len(frame.to_pylist()))] * 3)
        assert len(errors) == 1
        assert rows == [50, 50]


def test_a_model_whose_function_asks_the_same_does_not_wait_for_itself() -> None:
    depth: list[int] = []

    def answer(call: bf.Request) -> bool:
        if not depth:
            depth.append(1)
            session.sql("SELECT x FROM t WHERE llm_filter('q', x)").collect()
        return True

    model = bf.ScriptedModel(answer)
    with bf.connect(model, cache=None, progress="off") as session:
        session.from_pydict({"x": ["a", "b"]}, name="t")
        assert len(session.sql("SELECT x FROM t WHERE llm_filter('q', x)").to_pylist()) == 2
