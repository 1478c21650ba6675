"""An ingredient on arrays: distinct tuples are asked, NULL and blank are not, rows keep their
place."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blendfusion as bf
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.redaction import Redaction
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.arguments import Constant, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.evaluate.evaluate import evaluate
from blendfusion.udfs.functions.llm_int import LLM_INT
from blendfusion.udfs.functions.llm_qa import LLM_QA

TEXTS = st.none() | st.sampled_from(["", " ", "\t\n", "a", "b", "ab", "Zürich", "東京", "a b"])


def lengths(call: bf.Request) -> int:
    return sum(len(v or "") * 10**i for i, v in enumerate(call.values))


def scalar(n: int = 1) -> Call:
    return bind(LLM_INT, [Constant("How long?"), *[Value(f"c{i}") for i in range(n)]], {})


def dispatcher(model: bf.ScriptedModel, **options: object) -> Dispatcher:
    return Dispatcher(lambda: CachedModel(model, MemoryStore()), NullObserver(), **options)  # type: ignore[arg-type]


def blank(*values: str | None) -> bool:
    return all(v is None or not v.strip() for v in values)


@given(st.lists(TEXTS, max_size=30))
def test_each_distinct_value_is_asked_once_and_rows_keep_their_place(
    values: list[str | None],
) -> None:
    model = bf.ScriptedModel(lengths)
    answers = evaluate(scalar(), [pa.array(values, pa.string())], dispatcher(model))
    assert answers.type == pa.int64()
    assert answers.to_pylist() == [None if blank(v) else len(v or "") for v in values]
    asked = [call.values for call in model.calls]
    assert len(asked) == len(set(asked))
    assert set(asked) == {(v,) for v in values if not blank(v)}


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=30))
def test_tuples_are_asked_as_tuples_with_their_nulls(
    rows: list[tuple[str | None, ...]],
) -> None:
    model = bf.ScriptedModel(lengths)
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(3)]
    answers = evaluate(scalar(3), columns, dispatcher(model)).to_pylist()
    expected = [
        None if blank(*r) else sum(len(v or "") * 10**i for i, v in enumerate(r)) for r in rows
    ]
    assert answers == expected
    asked = [call.values for call in model.calls]
    assert sorted(asked, key=repr) == sorted({r for r in rows if not blank(*r)}, key=repr)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_any_layout_in_any_chunks_is_one_value(kind: pa.DataType) -> None:
    model = bf.ScriptedModel(lengths)
    column = pa.chunked_array(
        [pa.array(["a", "bb"], kind), pa.array([], kind), pa.array(["a"], kind)]
    )
    assert evaluate(scalar(), [column], dispatcher(model)).to_pylist() == [1, 2, 1]
    assert len(model.calls) == 2


def test_a_sliced_array_is_read_from_its_offset() -> None:
    model = bf.ScriptedModel(lengths)
    column = pa.array(["zzzz", "a", None, "bb", "zzzz"]).slice(1, 3)
    assert evaluate(scalar(), [column], dispatcher(model)).to_pylist() == [1, None, 2]


def test_later_chunks_of_a_run_are_not_asked_again() -> None:
    model = bf.ScriptedModel(lengths)
    one = dispatcher(model)
    for _ in range(3):
        evaluate(scalar(), [pa.array(["a", "b"])], one)
    assert len(model.calls) == 2


def test_a_column_that_is_no_text_is_refused() -> None:
    with pytest.raises(bf.ArgumentError, match="int64 where text is expected"):
        evaluate(scalar(), [pa.array([1])], dispatcher(bf.ScriptedModel(lengths)))


def test_a_failed_value_is_null_or_raises() -> None:
    def script(call: bf.Request) -> int | None:
        return None if call.values == ("bad",) else 1

    column = [pa.array(["bad", "fine"])]
    assert evaluate(scalar(), column, dispatcher(bf.ScriptedModel(script))).to_pylist() == [None, 1]
    shown = Redaction("on")
    with pytest.raises(bf.AnswerError, match="no valid answer for 'bad'"):
        evaluate(
            scalar(),
            column,
            dispatcher(bf.ScriptedModel(script), on_error="raise", redaction=shown),
        )


GROUPS = pa.array([["b", "a", None, " "], [], None, [None, ""], ["a", "b"]], pa.list_(pa.string()))


def aggregate(*, ordered: bool, columns: tuple[str, ...] = ("x",)) -> Call:
    values = [Value(name) for name in columns]
    return bind(LLM_QA, [Constant("What?"), *values], {}, ordered=ordered)


def test_groups_without_rows_are_null_and_equal_groups_are_asked_once() -> None:
    model = bf.ScriptedModel(lambda call: "|".join(map(str, call.values)))
    answers = evaluate(aggregate(ordered=False), [GROUPS], dispatcher(model)).to_pylist()
    assert answers == ["a|b", None, None, None, "a|b"]
    assert len(model.calls) == 1


def test_an_order_of_the_query_is_kept() -> None:
    model = bf.ScriptedModel(lambda call: "|".join(map(str, call.values)))
    answers = evaluate(aggregate(ordered=True), [GROUPS], dispatcher(model)).to_pylist()
    assert answers == ["b|a", None, None, None, "a|b"]


def test_several_columns_are_named_and_nulls_left_out() -> None:
    model = bf.ScriptedModel(lambda call: "|".join(map(str, call.values)))
    columns = [pa.array([["a", None]]), pa.array([["1", "2"]])]
    call = aggregate(ordered=True, columns=("x", "y"))
    assert evaluate(call, columns, dispatcher(model)).to_pylist() == ["x: a; y: 1|y: 2"]
