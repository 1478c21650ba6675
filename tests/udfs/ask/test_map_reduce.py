"""Contexts longer than the window are folded in passes; every row is seen."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.arguments import Constant, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.evaluate.evaluate import evaluate
from blendfusion.udfs.functions.llm_qa import LLM_QA

CALL = bind(LLM_QA, [Constant("Which numbers?"), Value("x")], {})
WINDOW = 512


def first_words(call: bf.Request) -> str:
    """Notes that keep a word of every row, so that what is lost shows."""
    words = [w for value in call.values for w in (value or "").split() if w.startswith("n")]
    return " ".join(words)


def answer(rows: list[str], window: int = WINDOW) -> tuple[str | None, bf.ScriptedModel]:
    model = bf.ScriptedModel(first_words, window=window)
    columns = [pa.array([rows], pa.list_(pa.string()))]
    return evaluate(
        CALL, columns, Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    ).to_pylist()[0], model


def test_a_short_context_is_one_question() -> None:
    text, model = answer(["n1 a", "n2 b"])
    assert text == "n1 n2"
    assert [c.question for c in model.calls] == ["Which numbers?"]


def test_no_row_of_a_long_context_is_lost() -> None:
    rows = [f"n{i} " + "filler " * 30 for i in range(40)]
    text, model = answer(rows)
    assert set((text or "").split()) == {f"n{i}" for i in range(40)}
    assert len(model.calls) > 2
    assert model.calls[-1].question == "Which numbers?"
    notes = [c for c in model.calls if c.question != "Which numbers?"]
    assert all(c.question.endswith("Which numbers?") for c in notes)
    assert sorted(r for c in notes for r in c.values if "filler" in (r or "")) == sorted(rows)


def test_no_question_is_longer_than_the_window() -> None:
    _, model = answer([f"n{i} " + "filler " * 30 for i in range(40)])
    for call in model.calls:
        assert sum(model.count_tokens(v or "") for v in call.values) <= WINDOW


def test_a_row_longer_than_the_window_is_split_at_words() -> None:
    row = " ".join(f"n{i}" + " filler" * 20 for i in range(40))
    text, model = answer([row])
    assert set((text or "").split()) == {f"n{i}" for i in range(40)}
    assert len(model.calls) > 1


def test_notes_that_do_not_get_shorter_give_null_instead_of_going_on_for_ever() -> None:
    model = bf.ScriptedModel(lambda call: "".join(v or "" for v in call.values), window=WINDOW)
    columns = [pa.array([["word " * 2000]], pa.list_(pa.string()))]
    assert evaluate(
        CALL, columns, Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    ).to_pylist() == [None]


@settings(max_examples=25)
@given(st.lists(st.text("ab ", max_size=400), max_size=30), st.integers(0, 200))
def test_the_parts_of_a_context_hold_all_of_its_text(rows: list[str], pad: int) -> None:
    whole = [r + "c" * pad for r in rows]
    _, model = answer(whole)
    given_rows = "".join(sorted("".join(whole).replace(" ", "")))
    first_pass = [c for c in model.calls if c.question != "Which numbers?"] or model.calls
    seen = "".join(sorted("".join(v or "" for c in first_pass for v in c.values).replace(" ", "")))
    distinct_parts = len({c.values for c in first_pass}) == len(first_pass)
    assert distinct_parts
    assert len(seen) <= len(given_rows)
    assert set(seen) == set(given_rows)


@pytest.mark.parametrize("options", [("yes", "no")])
def test_a_constraint_holds_for_the_answer_and_not_for_notes(options: tuple[str, ...]) -> None:
    def script(call: bf.Request) -> str:
        return "yes" if call.constraint.kind == "choice" else "n1"

    model = bf.ScriptedModel(script, window=WINDOW)
    call = bind(LLM_QA, [Constant("Is it?"), Value("x")], {"options": list(options)})
    columns = [pa.array([[f"n{i} " + "filler " * 30 for i in range(40)]], pa.list_(pa.string()))]
    assert evaluate(
        call, columns, Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    ).to_pylist() == ["yes"]


def test_a_server_tells_its_window_before_contexts_are_folded() -> None:
    class Server(bf.ScriptedModel):
        window = 100_000

        def look(self) -> None:
            self.window = 400

        @property
        def abilities(self) -> Abilities:
            return replace(super().abilities, check=self.look)

        @property
        def info(self) -> bf.ModelInfo:
            return replace(super().info, window=self.window)

    model = Server(lambda call: "short")
    dispatcher = Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    rows = [f"row {i} of a context that is too long for the window" for i in range(200)]
    assert evaluate(CALL, [pa.array([rows])], dispatcher).to_pylist() == ["short"]
    assert len(model.calls) > 2
