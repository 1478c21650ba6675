"""Equal requests of several threads go out once; a first asker that fails hands over."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

import blendfusion as bf
from blendfusion.models.stores.in_flight import InFlight
from blendfusion.udfs.ask import dispatcher

N = 700


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
            f"SELECT x FROM t WHERE llm_filter('q{i % 3}', x) AND id >= {10 * (i % 5)} AND id < 300"
            for i in range(48)
        ]

        def some(of: int) -> None:
            for query in queries[of::6]:
                session.sql(query).collect()

        assert not _at_once(*(lambda i=i: some(i) for i in range(6)))
        assert max(_asked(model).values()) == 1
        assert len(model.calls) == 3 * (300 if planner else N)


def test_sessions_with_one_store_share_requests() -> None:
    model, store = bf.ScriptedModel(_slow), bf.MemoryStore()
    sessions = [bf.connect(model, cache=store, progress="off") for _ in range(4)]
    for session in sessions:
        session.from_pydict({"x": [f"v{i}" for i in range(N)]}, name="t")
    sql = "SELECT x FROM t WHERE llm_filter('q', x)"
    assert not _at_once(*(lambda s=s: s.sql(sql).collect() for s in sessions))
    assert len(model.calls) == N


class _AllWait(InFlight):
    """Notes which threads wait, and lets the one that asks know when so many do."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self.threads: set[int] = set()
        self.expected, self.all_wait = expected, threading.Event()

    def wait(self, since: int) -> int:
        self.threads.add(threading.get_ident())
        if len(self.threads) == self.expected:
            self.all_wait.set()
        return super().wait(since)


def _waits_for(monkeypatch: pytest.MonkeyPatch, waiters: int) -> threading.Event:
    flights = _AllWait(waiters)
    monkeypatch.setattr(dispatcher, "UNDER_WAY", flights)
    return flights.all_wait


def _sessions(model: bf.ScriptedModel, n: int, rows: int) -> list[bf.Frame]:
    """One frame in each of ``n`` sessions with stores of their own."""
    sessions = [bf.connect(model, cache=None, progress="off") for _ in range(n)]
    for session in sessions:
        session.from_pydict({"x": [f"v{i}" for i in range(rows)]}, name="t")
    return [session.sql("SELECT x FROM t WHERE llm_filter('q', x)") for session in sessions]


def test_sessions_with_separate_stores_share_requests_and_keep_the_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others_wait = _waits_for(monkeypatch, 3)

    def answer(call: bf.Request) -> bool:
        assert others_wait.wait(30)
        return True

    model = bf.ScriptedModel(answer)
    frames = _sessions(model, 4, N)
    assert not _at_once(*(frame.collect for frame in frames))
    assert len(model.calls) == N
    traces = [frame.trace for frame in frames]
    assert sorted(trace.usage.values for trace in traces if trace is not None) == [0, 0, 0, N]
    for frame in frames:
        assert len(frame.to_pylist()) == N
    assert len(model.calls) == N, "each of the stores has all of the answers"


def test_traces_and_budgets_count_a_shared_request_once_and_say_who_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_waits = _waits_for(monkeypatch, 1)

    def answer(call: bf.Request) -> bool:
        assert other_waits.wait(30)
        return True

    frames = _sessions(bf.ScriptedModel(answer), 2, 20)
    assert not _at_once(*(frame.collect for frame in frames))
    first, second = sorted(frames, key=lambda f: -f.trace.usage.values if f.trace else 0)
    assert first.trace is not None
    assert second.trace is not None
    assert (first.trace.usage.values, first.trace.usage.cached) == (20, 0)
    assert first.trace.wait.values == 0
    assert (second.trace.usage.values, second.trace.usage.cached) == (0, 20)
    assert second.trace.wait.values == 20
    assert second.trace.ledger is not None
    assert second.trace.ledger.usage.values == 0
    assert "waited_for=20" in repr(second.trace)
    assert "waited" not in repr(first.trace)
    assert "20 of them asked by another run, waited" in second.trace.to_html()


def test_an_interrupted_first_asker_hands_over_what_was_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other_waits, calls = _waits_for(monkeypatch, 1), list[object]()

    def answer(call: bf.Request) -> bool:
        assert other_waits.wait(30)
        calls.append(call.values)
        if len(calls) == 10:
            raise KeyboardInterrupt
        return True

    frames, rows = _sessions(bf.ScriptedModel(answer), 2, 20), list[int]()
    errors = _at_once(*(lambda f=f: rows.append(len(f.to_pylist())) for f in frames))
    assert [type(error) for error in errors] == [KeyboardInterrupt]
    assert rows == [20]
    assert len(calls) == 21, "the one that was interrupted has no answer"


def test_a_first_asker_that_fails_hands_over() -> None:
    fails = threading.Event()

    def answer(call: bf.Request) -> bool:
        time.sleep(0.001)
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
