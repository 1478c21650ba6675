"""A query that casts answers does not fail by one that cannot be cast."""

from __future__ import annotations

import re
import warnings

import pyarrow as pa
import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.language.query_text.type_calls import type_calls
from blendfusion.udfs.register.user_functions import known_ingredients

NUMBERS = ("0", "-1", "127", "128", "-129", "255", "40000", "-3000000000", "5000000000", "12.75")
MOMENTS = ("0001-01-01", "1677-09-20", "1970-01-01", "2262-04-12", "5570-05-25", "9999-12-31")
TEXTS = ("no", "7", "2024-02-30", "2024-02-29", "18:05:00", "25:00:00", "3 days", "true", "1e99")
WHOLE = tuple(
    f"{name}{sign}"
    for name in ("TINYINT", "SMALLINT", "INT", "BIGINT")
    for sign in ("", " UNSIGNED")
)
REAL = (
    "FLOAT",
    "DOUBLE",
    "DECIMAL(3, 1)",
    "DECIMAL(38, 30)",
    "'Int8'",
    "'UInt64'",
    "'Decimal128(4, 2)'",
)
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP(3)", "TIMESTAMP(9)", "'Timestamp(ns)'", "'Date64'")
PERIODS = ("TIME", "INTERVAL", "BOOLEAN", "'Time64(ns)'", "'Interval(MonthDayNano)'")
DECLARED = {
    "llm_float": (pa.float64(), NUMBERS, (*WHOLE, *REAL)),
    "llm_date": (pa.date32(), MOMENTS, TIMES),
    "llm_text": (pa.string(), (*TEXTS, *NUMBERS), (*WHOLE, *REAL, *TIMES, *PERIODS)),
}
CASES = [(name, kind) for name, (_, _, kinds) in DECLARED.items() for kind in kinds]


def written(value: str, kind: str, cast: str = "CAST") -> str:
    """A cast as SQL; types of ``arrow_cast`` are in quotes."""
    if kind.startswith("'"):
        name = "arrow_try_cast" if cast == "TRY_CAST" else "arrow_cast"
        return f"{name}({value}, {kind})"
    return f"{cast}({value} AS {kind})"


def asked(query: str, answers: tuple[str, ...]) -> pa.Table:
    """The rows of a query over ``t.x``, whose texts are also the answers."""
    with bf.connect(bf.ScriptedModel(lambda call: call.values[0]), progress="off") as session:
        session.from_pydict({"x": list(answers)}, name="t")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bf.AnswerWarning)
            return session.sql(query).to_arrow_table()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_answer_that_cannot_be_cast_is_null_and_all_others_are_cast(
    name: str, kind: str
) -> None:
    answer_type, answers, _ = DECLARED[name]
    plain = SessionContext()
    decoded = pa.array(answers).cast(answer_type)
    plain.from_arrow(pa.table({"x": pa.array(answers), "y": decoded}), name="t")
    expected = plain.sql(f"SELECT x, {written('y', kind, 'TRY_CAST')} AS r FROM t").to_arrow_table()
    call = f"{name}('q', x)"
    found = asked(f"SELECT x, {written(call, kind)} AS r FROM t", answers)
    assert found.sort_by("x").cast(expected.schema).equals(expected.sort_by("x"))


@pytest.mark.parametrize("kind", [*WHOLE, "DECIMAL(3, 1)", "'Int8'"])
def test_the_query_says_how_many_answers_it_lost(kind: str) -> None:
    whole = tuple(text for text in NUMBERS if "." not in text)
    query = "SELECT " + written("llm_map('q', x)", kind) + " AS r FROM t"
    found = asked(query, whole)
    with bf.connect(bf.ScriptedModel(lambda call: call.values[0]), progress="off") as session:
        session.from_pydict({"x": list(whole)}, name="t")
        frame = session.sql(query)
        lost = found.column("r").null_count
        if not lost:
            assert "BIGINT" in kind
            return
        with pytest.warns(bf.AnswerWarning, match=rf"^{lost} values? got no valid answer"):
            frame.to_arrow_table()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT y::tinyint AS r FROM (SELECT llm_map('q', x) AS y FROM t)",
        "SELECT CASE WHEN x <> '7' THEN llm_map('q', x) ELSE 1 END::tinyint AS r FROM t",
        "SELECT coalesce(llm_map('q', x), 0)::tinyint AS r FROM t",
        "SELECT llm_map('q', x, on_error => 'keep')['value']::tinyint AS r FROM t",
        "SELECT max(llm_map('q', x))::tinyint AS r FROM t GROUP BY x",
        "SELECT llm_map('q', x)::tinyint AS r FROM t WHERE llm_map('q', x) > 3",
    ],
)
def test_casts_that_an_answer_reaches_through_a_query_do_not_fail(query: str) -> None:
    found = asked(query, ("5", "300", "-7"))
    assert {5, 300} - {*found.column("r").to_pylist()} == {300}


def test_an_error_that_is_raised_or_kept_names_the_type() -> None:
    with pytest.raises(bf.AnswerError, match="the answer cannot be cast to TINYINT"):
        asked("SELECT llm_map('q', x, on_error => 'raise')::tinyint AS r FROM t", ("300",))
    kept = "llm_map('q', x, on_error => 'keep')"
    found = asked(f"SELECT {kept} AS k, {kept}['value']::tinyint AS r FROM t", ("300", "5"))
    errors = {row["error"] for row in found.column("k").to_pylist()}
    assert errors == {None, "the answer cannot be cast to TINYINT"}


def test_answers_of_a_time_or_a_period_have_its_form() -> None:
    for kind, wrong, right in (("TIME", "six", "18:05:00"), ("INTERVAL", "soon", "3 days 2 hours")):
        found = asked(f"SELECT x FROM t WHERE llm_map('q', x)::{kind} IS NOT NULL", (wrong, right))
        assert found.column("x").to_pylist() == [right]


@pytest.mark.parametrize(
    ("place", "casts"),
    [
        ("llm_map('q', x)::bigint", ()),
        ("llm_map('q', x)::double", ()),
        ("llm_bool('q', x)::boolean", ()),
        ("llm_date('q', x)::date", ()),
        ("CAST(llm_map('q', x) AS TIMESTAMP)", ()),
        ("TRY_CAST(llm_map('q', x) AS TINYINT)", ()),
        ("llm_map('q', x)::int", ("INT",)),
        ("llm_date('q', x)::timestamp", ("TIMESTAMP",)),
        ("arrow_cast(llm_map('q', x), 'Int8')", ("'Int8'",)),
    ],
)
def test_only_casts_that_may_fail_are_tried(place: str, casts: tuple[str, ...]) -> None:
    (call,) = type_calls(f"SELECT {place} AS r FROM t", known_ingredients()).calls
    assert call.casts == casts


@pytest.mark.parametrize("to", [*WHOLE, "FLOAT", "DOUBLE"])
def test_a_yes_or_no_beside_its_number_is_one_call(to: str) -> None:
    asked = "llm_filter('Is it?', x)"
    query = f"SELECT CASE WHEN NOT {asked} THEN 1 END AS a, CAST({asked} AS {to}) AS b FROM t"
    calls = type_calls(query, known_ingredients()).sql
    assert len(set(re.findall(r"llm_filter_\w+", calls))) == 1
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_pydict({"x": ["a", "b"]}, "t")
    assert [row["b"] for row in session.sql(query).to_pylist()] == [1, 1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT llm_classify(x, ['1', '300']) AS a FROM t WHERE llm_classify(x, ['1', '300'])::tinyint > 1",
        "SELECT llm_filter('q', x)::decimal(3, 1) AS a FROM t WHERE llm_filter('q', x)",
        "SELECT llm_date('q', x)::timestamp AS a, llm_date('q', t.x) AS b FROM t",
        "SELECT llm_text('q', x) AS a, llm_text('q', x)::int AS b, llm_text('q', x)::date AS c FROM t",
    ],
)
def test_a_call_that_one_place_casts_and_another_compares_is_one_call(query: str) -> None:
    reading = type_calls(query, known_ingredients())
    assert len(reading.calls) == 1


def test_the_same_question_about_another_column_keeps_its_answers() -> None:
    query = "SELECT llm_text('q', x)::int AS a, llm_text('q', y) AS b FROM t"
    with bf.connect(bf.ScriptedModel(lambda call: call.values[0]), progress="off") as session:
        session.from_pydict({"x": ["7"], "y": ["no number"]}, name="t")
        assert session.sql(query).to_pylist() == [{"a": 7, "b": "no number"}]
