"""Lists, structs, maps and bytes as values of every function: an answer, or an error that names it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.datafusion.arrow_layouts import with_null_fields
from blendfusion.models.prompts.canonical import Value
from blendfusion.udfs.functions import FUNCTIONS

CALLS = {
    "llm_answer": "llm_answer('q', {})",
    "llm_bool": "llm_bool('q', {})",
    "llm_classify": "llm_classify({}, ['a', 'b'])",
    "llm_compare": "llm_compare({}, '=', 'a')",
    "llm_date": "llm_date('q', {})",
    "llm_embed": "llm_embed({})",
    "llm_extract": "llm_extract({}, 'a TEXT')",
    "llm_filter": "llm_filter('q', {})",
    "llm_fix_grammar": "llm_fix_grammar({})",
    "llm_float": "llm_float('q', {})",
    "llm_group": "llm_group({})",
    "llm_int": "llm_int('q', {})",
    "llm_join": "llm_join({}, x)",
    "llm_list": "llm_list('q', {})",
    "llm_map": "llm_map('q', {})",
    "llm_members": "llm_members(x, {})",
    "llm_prefers": "row_number() OVER (ORDER BY llm_prefers('q', {}))",
    "llm_probability": "llm_probability('q', {})",
    "llm_qa": "llm_qa('q', {})",
    "llm_redact": "llm_redact({})",
    "llm_same": "llm_same({})",
    "llm_score": "llm_score('q', {})",
    "llm_sentiment": "llm_sentiment({})",
    "llm_similarity": "llm_similarity({}, x)",
    "llm_summarize": "llm_summarize({})",
    "llm_summary": "llm_summary({})",
    "llm_text": "llm_text('q', {})",
    "llm_transcribe": "llm_transcribe({}, model => 'scripted')",
    "llm_translate": "llm_translate({}, 'German')",
    "llm_validate": "llm_validate('c', {})",
    "llm_vqa": "llm_vqa('q', {})",
}
OF_BYTES = {"llm_transcribe", "llm_vqa"}
OF_GROUPS = {"llm_qa", "llm_summarize", "llm_validate"}
OF_LISTS = {"llm_answer", "llm_members", "llm_summary"}
VALUES = {
    "texts": pa.array([["a", "b"], ["c"], None]),
    "numbers": pa.array([[1, 2], [3], None]),
    "lists": pa.array([[["a"], ["b"]], [["c"]], None]),
    "fixed": pa.array([["a", "b"], ["c", "d"], None], pa.list_(pa.string(), 2)),
    "large": pa.array([["a", "b"], ["c"], None], pa.large_list(pa.string())),
    "pair": pa.array([{"p": "q", "n": 1}, {"p": "r", "n": 2}, None]),
    "pairs": pa.array([[{"p": "q"}], [{"p": "r"}], None]),
    "named": pa.array([[("k", "v")], [("k", "w")], None], pa.map_(pa.string(), pa.string())),
}


def answered(request: bf.Request) -> Value:
    one = request.constraint
    if one.options:
        return one.options[0]
    if one.kind == "boolean":
        return {True: 1, False: 0}
    typed = {"integer": 1, "number": 1.5, "date": "2024-01-01", "list": ["a"]}
    return {"a": "b"} if one.kind == "struct" else typed.get(one.kind, "b")


@pytest.fixture(scope="module")
def session() -> bf.Session:
    model = bf.ScriptedModel(answered)
    embedder = bf.ScriptedEmbedder(lambda texts: np.ones((len(texts), 2)))
    session = bf.connect(model, cache=None, progress="off", embedder=embedder)
    session.register_model("scripted", model)
    session.from_arrow(pa.table({"x": ["u", "v", "w"], **VALUES}), name="t")
    return session


def run(session: bf.Session, call: str) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.AnswerWarning)
        return session.sql(f"SELECT {call} AS a FROM t").to_arrow_table()["a"].to_pylist()


def test_every_function_has_a_call() -> None:
    assert set(CALLS) == set(FUNCTIONS)


@pytest.mark.parametrize("column", VALUES)
@pytest.mark.parametrize("name", CALLS)
def test_a_nested_value_is_answered_or_refused(name: str, column: str, session: bf.Session) -> None:
    call = CALLS[name].format(column)
    runs = {"texts", "numbers"} | ({"lists"} if name != "llm_members" else set())
    runs |= {"fixed", "large"} if name in OF_GROUPS | OF_LISTS else {"large"}
    if column in runs and name not in OF_BYTES:
        assert len(run(session, call)) == (1 if name in OF_GROUPS else 3)
        return
    with pytest.raises(bf.QueryError, match=f"{name}.*: a value of type ") as caught:
        run(session, call)
    assert caught.value.hint
    assert caught.value.span is not None


@pytest.mark.parametrize(
    ("column", "seen"), [("texts", ["[a, b]", "[c]"]), ("numbers", ["[1, 2]", "[3]"])]
)
def test_the_items_of_a_list_are_the_text(column: str, seen: list[str]) -> None:
    model = bf.ScriptedModel(lambda request: str(request.values[0]))
    session = bf.connect(model, cache=None)
    session.from_arrow(pa.table(VALUES), name="t")
    assert run(session, f"llm_text('q', {column})") == [*seen, None]


@pytest.mark.parametrize("part", ["pair['p']", "pairs[1]['p']", "named['k']"])
def test_what_a_nested_value_is_made_of_is_one(part: str, session: bf.Session) -> None:
    assert run(session, f"llm_text('q', {part})") == ["b", "b", None]


@pytest.mark.parametrize("name", ["llm_filter", "llm_text", "llm_score", "llm_extract", "llm_vqa"])
def test_bytes_that_are_no_image_are_said_to_be_none_of_the_function(name: str) -> None:
    session = bf.connect(bf.ScriptedModel(answered), cache=None)
    session.from_arrow(pa.table({"b": pa.array([b"\xff\xfe"])}), name="t")
    with pytest.warns(bf.AnswerWarning, match=f"{name}: no image: "):
        assert session.sql(f"SELECT {CALLS[name].format('b')} AS a FROM t").to_pylist() == [
            {"a": None}
        ]


def test_bytes_are_no_text_of_a_group() -> None:
    session = bf.connect(bf.ScriptedModel(answered), cache=None)
    session.from_arrow(pa.table({"b": pa.array([b"\xff\xfe"])}), name="t")
    with pytest.raises(bf.AnswerError, match="llm_qa: bytes that are neither text nor the image"):
        session.sql("SELECT llm_qa('q', b, on_error => 'raise') FROM t").collect()
    with pytest.warns(bf.AnswerWarning, match="1 value got no valid answer"):
        rows = session.sql("SELECT llm_qa('q', b) AS a FROM t").to_pylist()
    assert rows == [{"a": None}]


def _null_structs() -> pa.Table:
    """Structs that are NULL, below which pyarrow has 0 and '', plain and within lists."""
    kind = pa.struct([("n", pa.int64()), ("p", pa.struct([("q", pa.string())]))])
    rows = [None, {"n": 1, "p": None}, {"n": None, "p": {"q": "r"}}, None]
    return pa.table(
        {
            "id": [1, 2, 3, 4],
            "s": pa.array(rows, kind),
            "l": pa.array([[r] for r in rows[:3]] + [None], pa.list_(kind)),
            "g": pa.array([[r] for r in rows], pa.large_list(kind)),
        }
    )


@pytest.mark.parametrize(
    "add",
    [
        lambda session, table: session.from_arrow(table, name="t"),
        lambda session, table: session.from_arrow(table.slice(0).to_batches()[0], name="t"),
        lambda session, table: session.from_arrow(table.to_reader(), name="t"),
        lambda session, table: session.from_pandas(table.to_pandas(), name="t"),
        lambda session, table: session.register_batch("t", table.to_batches()[0]),
        lambda session, table: session.register_record_batches("t", [table.to_batches()]),
    ],
)
def test_a_field_of_a_struct_that_is_null_is_null(add: Any) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "x"), progress="off")
    add(session, _null_structs())
    for struct in ("s", "l[1]", "g[1]"):
        found = session.sql(
            f"SELECT {struct}['n'] AS n, {struct}['p']['q'] AS q FROM t ORDER BY id"
        )
        assert [tuple(row.values()) for row in found.to_pylist()] == [
            (None, None),
            (1, None),
            (None, "r"),
            (None, None),
        ]
        none = session.sql(f"SELECT id FROM t WHERE {struct}['n'] = 0 OR {struct}['p']['q'] = ''")
        assert none.to_pylist() == []


@pytest.mark.parametrize("part", [slice(1, None), slice(2, 3), slice(0, 0)])
def test_slices_keep_their_structs(part: slice) -> None:
    for column in _null_structs().select(["s", "l", "g"]).itercolumns():
        array = column.chunk(0)[part]
        made = with_null_fields(array)
        made.validate(full=True)
        assert made.to_pylist() == array.to_pylist()
        assert made.type == array.type
