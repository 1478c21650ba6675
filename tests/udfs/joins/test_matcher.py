"""Matches of values in a set: equal ones free, the rest chosen by the model among candidates."""

from __future__ import annotations

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.arguments import Constant, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.functions.llm_join import LLM_JOIN
from blendfusion.udfs.joins.matcher import Matcher, Tally, chooser, domains
from blendfusion.udfs.text.numbered_lines import number_lines

TOWNS = ["Paris", "New York City", "São Paulo", "Los Angeles", "Paris, Texas", "York"]


def call(**options: str | int | bool) -> Call:
    return bind(LLM_JOIN, [Value("x"), Value("y")], dict(options))


def candidates(request: bf.Request) -> list[str]:
    return [line.split(". ", 1)[1] for line in (request.values[1] or "").splitlines()]


def initials(request: bf.Request) -> str | list[str]:
    """The candidates of which the value holds the initials."""
    wanted = request.values[0]
    found = [
        str(i)
        for i, text in enumerate(candidates(request), 1)
        if "".join(word[0] for word in text.split()) == wanted
    ]
    return found if request.constraint.kind == "list" else (found or ["none"])[0]


def matched(
    values: list[str | None], of: Call, towns: list[str | None], script: object = initials
) -> tuple[list[object], Tally, list[bf.Request]]:
    model = bf.ScriptedModel(script)  # type: ignore[arg-type]
    dispatcher = Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    matcher = Matcher(chooser(of), domains(pa.table({"y": towns})), dispatcher)
    return matcher.column([pa.array(values, pa.string())]).to_pylist(), matcher.tally, model.calls


def test_what_is_equal_or_spelled_otherwise_is_free() -> None:
    found, tally, asked = matched(["Paris", "são paulo", "SAO PAULO!"], call(), [*TOWNS])
    assert found == ["Paris", "São Paulo", "São Paulo"]
    assert (tally.equal, tally.alike, asked) == (1, 2, [])


def test_the_model_chooses_among_numbered_candidates_once_a_value() -> None:
    found, tally, asked = matched(["NYC", "LA", "NYC", "XX"], call(k=6), [*TOWNS])
    assert found == ["New York City", "Los Angeles", "New York City", None]
    assert [r.values[0] for r in asked] == ["NYC", "LA", "XX"]
    assert asked[0].constraint.options == ("1", "2", "3", "4", "5", "6", "none")
    assert sorted(candidates(asked[0])) == sorted(TOWNS)
    assert (tally.questions, tally.unmatched, tally.ranks.total()) == (3, 1, 2)


def test_a_large_set_shows_the_k_that_look_most_alike() -> None:
    towns = [*TOWNS, *(f"village {i}" for i in range(50))]
    _, _, asked = matched(["Pariss"], call(k=2), [*towns], lambda r: "1")
    assert candidates(asked[0]) == ["Paris", "Paris, Texas"]


def test_many_matches() -> None:
    towns: list[str | None] = ["New York", "Nova York", "Naples", "Ny"]
    found, _, asked = matched(["NY", "Naples"], call(many=True), towns)
    assert found == [["Ny", "New York", "Nova York"], ["Naples"]]
    assert [r.constraint.kind for r in asked] == ["list", "list"]
    # "Ny" is the same but for case: it is in the result without being shown.
    assert sorted(candidates(asked[0])) == ["Naples", "New York", "Nova York"]


def test_a_criterion_makes_nothing_free() -> None:
    found, _, asked = matched(["Paris"], call(how="the first lies in the second"), [*TOWNS])
    assert found == [None]
    assert asked[0].question == "Which candidate matches the value: the first lies in the second?"


def test_null_and_blank_match_nothing() -> None:
    found, tally, asked = matched([None, "  ", "A"], call(), [None, " "])
    assert found == [None, None, None]
    assert (tally.alone, asked) == (1, [])


def test_a_key_beside_the_value_bounds_the_candidates() -> None:
    others = pa.table({"y": ["Ann", "Bob", "Cid"], "k": [1, 2, None]})
    model = bf.ScriptedModel(lambda r: "1")
    dispatcher = Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver())
    matcher = Matcher(chooser(call()), domains(others), dispatcher)
    columns = [pa.array(["x", "x", "x", "x"]), pa.array([1, 2, 3, None])]
    assert matcher.column(columns).to_pylist() == ["Ann", "Bob", None, None]
    assert [candidates(r) for r in model.calls] == [["Ann"], ["Bob"]]


def test_line_breaks_in_the_data_make_no_candidates() -> None:
    assert number_lines(["a\n2. b", "c"]) == "1. a 2. b\n2. c"


def test_what_the_call_does_not_take() -> None:
    with pytest.raises(bf.ArgumentError, match="k => 0 is not possible"):
        call(k=0)
    with pytest.raises(bf.ArgumentError, match="takes 2 values, 1 given"):
        bind(LLM_JOIN, [Value("x")], {})
    with pytest.raises(bf.ArgumentError, match="is a literal where a column is expected"):
        bind(LLM_JOIN, [Value("x"), Constant("y")], {})
    with pytest.raises(bf.ArgumentError, match="on_error => 'keep'"):
        call(on_error="keep")
    with pytest.raises(bf.ArgumentError, match="how => 3 is not text"):
        call(how=3)
