"""Failures lose nothing: whatever fails and whatever on_error says, no row goes and no answer is
made up.

Each shape of a query is run with calls, planned and plain, and with columns that hold what every
call gives on its row: its answer, NULL where it failed, or the struct that keeps its error."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import pyarrow as pa
import pytest
from amounts import long_after
from hypothesis import given, settings
from hypothesis import strategies as st
from scripts import tuples

import blendfusion as bf
from blendfusion.errors import ModelFailed

WORDS = ("", " ", "a", "bb", "ccc", "dddd", "a bb", "ccc dddd")
FAILURES = ("nothing", "nonsense", "raised")
KEPT = pa.struct([("value", pa.int64()), ("error", pa.string())])

SHAPES = (
    "SELECT id, {int} AS v FROM t",
    "SELECT id, {keep} AS v FROM t",
    "SELECT id, {keep}['value'] AS v, {keep}['error'] IS NULL AS fine, {int} AS w FROM t",
    "SELECT id FROM t WHERE {bool}",
    "SELECT id FROM t WHERE NOT {bool}",
    "SELECT id FROM t WHERE {bool} OR n > 2",
    "SELECT id FROM t WHERE {bool} IS NULL AND n < 4",
    "SELECT id, CASE WHEN {bool} THEN {int} ELSE n END AS v FROM t",
    "SELECT id, coalesce({int}, n) AS v FROM t WHERE {keep}['error'] IS NULL",
    "SELECT id FROM t WHERE {keep}['error'] IS NOT NULL OR {keep}['value'] > 2",
    "SELECT n, count(*) AS c, sum({int}) AS s FROM t GROUP BY n",
    "SELECT {int} AS v, count(*) AS c FROM t GROUP BY v",
    "SELECT DISTINCT {bool} AS v FROM t",
    "SELECT t.id, u.k FROM t JOIN u ON t.n = u.n WHERE {bool}",
    "SELECT t.id, u.k FROM t LEFT JOIN u ON t.n = u.n AND {int} > 1",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.n = t.n) AND {int} BETWEEN 1 AND 3",
    "SELECT id, {int} AS v FROM t UNION ALL SELECT id, n FROM t WHERE {bool}",
    "SELECT id FROM t WHERE n > (SELECT min({int}) FROM t)",
    "SELECT id, {int} AS v FROM t ORDER BY v DESC NULLS LAST, id LIMIT 3",
    "SELECT id, sum({int}) OVER (PARTITION BY n) AS s FROM t",
)

CALLS = {
    "int": "llm_int('length', x)",
    "bool": "llm_filter('long', x)",
    "keep": "llm_int('length', x, on_error => 'keep')",
}


class Failing(bf.ScriptedModel):
    """Answers by length, and fails at some words, each in its own way."""

    def __init__(self, failing: dict[str, str]) -> None:
        super().__init__(self._answer, batch_size=3, name="failing")
        self.failing = failing

    def _answer(self, call: bf.Request) -> bool | int | str | None:
        text = call.values[0] or ""
        how = self.failing.get(text)
        if how == "raised":
            raise ModelFailed("out of order")
        if how is not None:
            return None if how == "nothing" else "no answer at all"
        return len(text) > 2 if call.constraint.kind == "boolean" else len(text)

    def error(self, text: str) -> str:
        how = self.failing[text]
        if how == "raised":
            return "out of order"
        said = "'no answer at all', which is not integer"
        return "the model says 'no answer'" if how == "nothing" else f"answered {said}"


@st.composite
def cases(draw: st.DrawFn) -> tuple[pa.Table, dict[str, str]]:
    texts = draw(st.lists(st.none() | st.sampled_from(WORDS), min_size=1, max_size=12))
    numbers = draw(st.lists(st.integers(1, 5), min_size=len(texts), max_size=len(texts)))
    words = [w for w in WORDS if w.strip()]
    failing = draw(st.dictionaries(st.sampled_from(words), st.sampled_from(FAILURES)))
    table = pa.table({"id": range(len(texts)), "x": pa.array(texts, pa.string()), "n": numbers})
    return table, failing


def with_answers(table: pa.Table, model: Failing) -> pa.Table:
    """The table with the results of the calls as columns."""
    texts = [text if text and text.strip() else None for text in table["x"].to_pylist()]
    good = [None if text in model.failing else text for text in texts]
    lengths = [None if text is None else len(text) for text in good]
    errors = [model.error(text) if text in model.failing else None for text in texts]
    kept = pa.StructArray.from_arrays(
        [pa.array(lengths, pa.int64()), pa.array(errors, pa.string())],
        fields=list(KEPT),
        mask=pa.array([text is None for text in texts]),
    )
    long = [None if length is None else length > 2 for length in lengths]
    return (
        table.append_column("int", pa.array(lengths, pa.int64()))
        .append_column("bool", pa.array(long, pa.bool_()))
        .append_column("keep", kept)
    )


def run(
    sql: str, table: pa.Table, model: Failing, **options: object
) -> list[tuple[object, ...]] | bf.AnswerError:
    """The rows in an order of their own, or the error that ended the run."""
    with bf.connect(model, progress="off", cache=None, **options) as session:
        session.from_arrow(table, name="t")
        session.from_pydict({"n": [1, 2, 2, 3], "k": [10, 20, 21, 30]}, name="u")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.AnswerWarning)
            try:
                return sorted(tuples(session.sql(sql).to_arrow_table()), key=repr)
            except bf.AnswerError as error:
                return error


@pytest.mark.parametrize("shape", long_after(12, SHAPES))
@settings(max_examples=15)
@given(case=cases())
def test_what_fails_is_null_or_kept_and_all_else_is_as_it_was(
    shape: str, case: tuple[pa.Table, dict[str, str]]
) -> None:
    table, failing = case
    model = Failing(failing)
    expected = run(
        shape.format(int="int", bool="bool", keep="keep"), with_answers(table, model), model
    )
    query = shape.format(**CALLS)
    assert run(query, table, model) == expected
    assert run(query, table, model, planner=False) == expected
    assert run(query, table, model, chunk_rows=2, first_chunk_rows=1) == expected


@pytest.mark.parametrize("shape", [s for s in SHAPES if "{keep}" not in s])
@settings(max_examples=15)
@given(case=cases())
def test_what_fails_raises_or_changes_nothing(
    shape: str, case: tuple[pa.Table, dict[str, str]]
) -> None:
    table, failing = case
    query = shape.format(**CALLS)
    planned = run(query, table, Failing(failing), on_error="raise")
    plain = run(query, table, Failing(failing), on_error="raise", planner=False)
    asked = {text for text in table["x"].to_pylist() if text and text.strip()}
    if not asked & set(failing):
        assert planned == plain == run(query, table, Failing({}))
    elif isinstance(planned, bf.AnswerError):
        assert isinstance(plain, bf.AnswerError)
    else:  # the planner asked nothing that fails: the others decide
        assert planned == run(query, table, Failing(failing))


@given(case=cases(), policy=st.sampled_from(["null", "raise", "keep"]), planner=st.booleans())
def test_groups_fail_as_a_whole_and_none_goes(
    case: tuple[pa.Table, dict[str, str]], policy: str, planner: bool
) -> None:
    table, failing = case

    def joined(call: bf.Request) -> str | None:
        rows: Sequence[str] = [v or "" for v in call.values]
        return None if any(row in failing for row in rows) else "|".join(rows)

    groups: dict[int, list[str]] = {}
    for text, n in zip(table["x"].to_pylist(), table["n"].to_pylist(), strict=True):
        groups.setdefault(n, []).extend([text] if text and text.strip() else [])
    bad = {n for n, rows in groups.items() if any(row in failing for row in rows)}
    answers = {
        n: "|".join(sorted(rows)) if rows and n not in bad else None for n, rows in groups.items()
    }
    with bf.connect(bf.ScriptedModel(joined), progress="off", planner=planner) as session:
        session.from_arrow(table, name="t")
        frame = session.sql(
            f"SELECT n, llm_qa('all', x, on_error => '{policy}') AS a FROM t GROUP BY n"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.AnswerWarning)
            if policy == "raise" and bad:
                with pytest.raises(bf.AnswerError):
                    frame.collect()
                return
            rows = dict(tuples(frame.to_arrow_table()))
    if policy == "keep":
        kept = {n: None if a is None else {"value": a, "error": None} for n, a in answers.items()}
        answers = kept | {n: {"value": None, "error": "no answer"} for n in bad}
    assert rows == answers
