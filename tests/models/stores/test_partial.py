"""Answers that a model has told before it fails or is interrupted: stored, counted, not asked
again."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from loopback import Body, Reply, said, serving

import blendfusion as bf
from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.model import Model, Values, answer_each
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.stores.recording import KeyedStore, Recording
from blendfusion.models.wrappers import cache
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Constraint, ModelInfo, Request, Task

LENGTH = Task("llm_int", "How long?", Constraint("integer"), ("text",))
WORDS = ("a", "bb", "ccc", "dddd")
ROWS: list[Values] = [(word,) for word in WORDS]


class Plain:
    """A model of somebody else's, with nothing but the methods of the protocol."""

    batch_size = 8
    info = ModelInfo("plain", "plain", 100)

    def count_tokens(self, text: str) -> int:
        return 1

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return [Answer(str(len(row[0] or ""))) for row in values]

    def close(self) -> None:
        """Nothing."""


def lengths_until(stop: str, problem: BaseException) -> ScriptedModel:
    def script(call: Request) -> int:
        if call.values[0] == stop:
            raise problem
        return len(call.values[0] or "")

    return ScriptedModel(script)


def test_a_model_of_the_bare_protocol_is_told_of_at_the_end() -> None:
    model: Model = Plain()
    told: dict[int, Answer] = {}
    answers = answer_each(model, LENGTH, ROWS, told.__setitem__)
    assert [told[place] for place in range(4)] == answers


def test_a_model_that_overrides_answer_alone_is_asked_by_it() -> None:
    class Doubled(ScriptedModel):
        def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
            return [Answer((a.text or "") * 2) for a in super().answer(task, values)]

    own = ScriptedModel(lambda call: len(call.values[0] or ""))
    inherited = Doubled(lambda call: len(call.values[0] or ""))
    replaced = ScriptedModel(lambda call: 0)
    replaced.answer = inherited.answer  # type: ignore[method-assign]
    for model, expected in ((own, "2"), (inherited, "22"), (replaced, "22")):
        told: dict[int, Answer] = {}
        answers = answer_each(model, LENGTH, [("bb",)], told.__setitem__)
        assert [answer.text for answer in answers] == [expected] == [told[0].text]


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), ValueError("a bug"), MemoryError()])
def test_what_was_told_is_stored_whatever_is_raised(problem: BaseException) -> None:
    inner = lengths_until("ccc", problem)
    cached = CachedModel(inner, MemoryStore())
    told: list[int] = []
    with pytest.raises(type(problem)):
        cached.answer_each(LENGTH, ROWS, lambda place, answer: told.append(place))
    assert told == [0, 1]
    assert {v: a.text for v, a in cached.known_answers(LENGTH, ROWS).items()} == {
        ("a",): "1",
        ("bb",): "2",
    }


def test_of_equal_requests_each_is_told_and_one_is_paid() -> None:
    cached = CachedModel(ScriptedModel(lambda call: len(call.values[0] or "")), MemoryStore())
    cached.answer(LENGTH, [("bb",)])
    told: dict[int, Answer] = {}
    rows: list[Values] = [("a",), ("bb",), ("a",), ("bb",)]
    answers = cached.answer_each(LENGTH, rows, told.__setitem__)
    assert [told[place] for place in range(4)] == answers
    assert [answer.text for answer in answers] == ["1", "2", "1", "2"]
    assert [answer.usage.cached for answer in answers] == [0, 1, 1, 1]


def number(body: Body) -> int:
    return int(next(word for word in said(body).split() if word.isdigit()))


def test_a_server_that_withdraws_access_midway_loses_no_answer(tmp_path: Path) -> None:
    asked: list[int] = []
    open_for = 20

    arrived = itertools.count(1)

    def script(body: Body) -> Reply:
        asked.append(number(body))
        if next(arrived) > open_for:
            return Reply(status=402, error="No credit.")
        return Reply('{"answer": ' + str(number(body)) + "}")

    rows = [f"box {n} of many" for n in range(40)]
    with serving(script) as server:
        options = {"cache": tmp_path / "answers.sqlite", "progress": "off", "concurrency": 4}
        with bf.connect(f"openai:tiny@{server.url}", **options) as session:
            session.from_pydict({"text": rows}, name="boxes")
            frame = session.sql("SELECT llm_int('Which number?', text) AS n FROM boxes")
            with pytest.raises(ModelFailed, match="payment"):
                frame.collect()
            assert frame.trace.usage.values == open_for
            assert frame.trace.calls.num_rows == open_for
            open_for = 1000
            first = len(asked)
            assert sorted(frame.to_pydict()["n"]) == list(range(40))
            assert len(asked) == first + 20
        with bf.connect(f"openai:tiny@{server.url}", **options) as session:
            session.from_pydict({"text": rows}, name="boxes")
            session.sql("SELECT llm_int('Which number?', text) AS n FROM boxes").collect()
        assert len(asked) == first + 20


def test_an_interrupt_loses_no_answer_that_has_arrived() -> None:
    gate, stuck = threading.Event(), threading.Event()

    def script(body: Body) -> Reply:
        if number(body) < 8:
            return Reply('{"answer": ' + str(number(body)) + "}")
        stuck.set()
        return Reply(wait=gate)

    def interrupt() -> None:
        if stuck.wait(60):
            signal.raise_signal(signal.SIGINT)

    rows = [f"box {n} of many" for n in range(12)]
    with (
        serving(script) as server,
        bf.connect(
            f"openai:tiny@{server.url}", cache=None, progress="off", concurrency=1
        ) as session,
    ):
        session.from_pydict({"text": rows}, name="boxes")
        frame = session.sql("SELECT llm_int('Which number?', text) AS n FROM boxes")
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            frame.collect()
        interrupter.join()
        assert frame.trace.calls["answer"].to_pylist() == [str(n) for n in range(8)]
        server.script = lambda body: Reply('{"answer": ' + str(number(body)) + "}")
        gate.set()
        before = len(server.bodies)
        assert frame.to_pydict()["n"] == list(range(12))
        assert len(server.bodies) == before + 4


def test_answers_are_stored_while_others_of_a_batch_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A program that is killed in a long batch loses the answers of the last tenth of a second."""
    clock = itertools.count()  # of tenths of seconds
    monkeypatch.setattr(cache, "monotonic", lambda: next(clock) / 10)
    store = MemoryStore()
    stored: list[int] = []

    def script(call: Request) -> int:
        stored.append(store.stats().entries)
        return 1

    rows: list[Values] = [(f"v{n}",) for n in range(64)]
    cached = CachedModel(ScriptedModel(script), store)
    cached.answer(LENGTH, rows)
    lost = [asked - kept for asked, kept in enumerate(stored)]
    assert max(lost) == 1
    assert store.stats().entries == 64


def test_failures_are_noted_once_whenever_answers_are_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache, "_KEPT_SECONDS", -1.0)  # after each answer

    def script(call: Request) -> int | str:
        return "many" if call.values[0] == "bb" else len(call.values[0] or "")

    noted: list[Values] = []

    class Noting(Recording):
        def note_failed(self, fingerprint: str, task: Task, values: Iterable[Values]) -> None:
            noted.extend(values)

    cached = CachedModel(ScriptedModel(script), Noting(MemoryStore(), KeyedStore(), {}))
    answers = cached.answer(LENGTH, ROWS)
    assert [a.error is None for a in answers] == [True, False, True, True]
    assert noted == [("bb",)]
