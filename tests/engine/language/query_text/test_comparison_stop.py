"""Calls that a query only compares with literals: answered as far as the comparisons need."""

from __future__ import annotations

import pyarrow as pa
import pytest
from comparisons import EarlyModel
from hypothesis import given, note, settings
from hypothesis import strategies as st
from queries import SHAPES, T_COLUMNS, U_COLUMNS, Query, tables
from scripts import Counted, hashed, tuples, unordered

import blendfusion as bf
from blendfusion.errors import OptionError
from blendfusion.language.query_text.type_calls import type_calls
from blendfusion.types import Request
from blendfusion.udfs.register.user_functions import known_ingredients

# -- where only the truth matters ------------------------------------------------------------------

DECIDES = {
    # comparisons with literals, whatever becomes of their truth
    "SELECT 1 FROM t WHERE {} = 'CA'": "/[A-Z]{2}/, until decided for = 'CA'",
    "SELECT 1 FROM t WHERE {} <> 'New York'": "text, until decided for = 'New York'",
    "SELECT {} = 'x' FROM t": "text, until decided for = 'x'",
    "SELECT count({} = 'x') FROM t GROUP BY {} = 'y'": "text, until decided for = 'x', = 'y'",
    "SELECT 1 FROM t WHERE {} IN ('a', 'b')": "text, until decided for = 'a', = 'b'",
    "SELECT 1 FROM t WHERE NOT ({}) NOT IN ('a')": "text, until decided for = 'a'",
    "SELECT 1 FROM t WHERE {} LIKE 'abc%'": "text, until decided for like 'abc%'",
    "SELECT 1 FROM t WHERE {} NOT LIKE '%a_'": "text, until decided for like '%a_'",
    "SELECT 1 FROM t WHERE {} > 3": "integer, until decided for > 3",
    "SELECT 1 FROM t WHERE (-3) >= ({})": "integer, until decided for <= -3",
    "SELECT 1 FROM t WHERE {} BETWEEN 1 AND 9.5": "number, until decided for between 1 and 9.5",
    "SELECT 1 FROM t WHERE {} > 3 AND {} < 9": "integer, until decided for < 9, > 3",
    "SELECT 1 FROM t WHERE {} > 3 = TRUE": "integer, until decided for > 3",
    "SELECT 1 FROM t WHERE {} IS DISTINCT FROM 'a'": "text, until decided for = 'a'",
    "SELECT 1 FROM t WHERE {} < DATE '2024-02-29'": "date, until decided for < '2024-02-29'",
    "SELECT 1 FROM t WHERE {} = CAST('2024-02-29' AS DATE)": "date, until decided for = '2024-02-29'",
    "SELECT 1 FROM t WHERE {} > TIMESTAMP '2024-02-29 12:00:00'": (
        "timestamp, until decided for > '2024-02-29T12:00:00'"
    ),
    "SELECT CASE {} WHEN 'ab' THEN 1 WHEN 'c' THEN 2 END FROM t": (
        "text, until decided for = 'ab', = 'c'"
    ),
    "SELECT 1 FROM t JOIN u ON t.id = u.id AND {} > 3": "integer, until decided for > 3",
    # more than that
    "SELECT {} FROM t WHERE {} > 3": "integer",
    "SELECT {} AS v FROM t WHERE {} > 3": "integer",
    "SELECT 1 FROM t WHERE {} > 3 ORDER BY {}": "integer",
    "SELECT max({}) FROM t WHERE {} > 3": "integer",
    "SELECT 1 FROM t WHERE {} > 3 OR {} > n": "integer",
    "SELECT 1 FROM t WHERE {} > 3 OR {} IS NULL": "integer",
    "SELECT 1 FROM t WHERE {} IN ('a', s)": "text",
    "SELECT 1 FROM t WHERE {} IN (SELECT s FROM u)": "text",
    "SELECT 1 FROM t WHERE upper({}) = 'A'": "text",
    "SELECT 1 FROM t WHERE {} || 'a' = 'ba'": "text",
    "SELECT 1 FROM t WHERE {} = 'a' || 'b'": "text",
    "SELECT 1 FROM t WHERE coalesce({}, 'a') = 'a'": "text",
    "SELECT nullif({}, 'a') FROM t": "text",
    "SELECT 1 FROM t WHERE {} ILIKE 'a%'": "text",
    "SELECT 1 FROM t WHERE {} LIKE 'a$%' ESCAPE '$'": "text",
    "SELECT 1 FROM t WHERE {} LIKE 'a\\%'": "text",
    "SELECT 1 FROM t WHERE {} = 'a\\b'": "text",
    "SELECT 1 FROM t WHERE 'abc' LIKE {}": "text",
    "SELECT 1 FROM t WHERE s LIKE {} = 'a'": "text",
    "SELECT 1 FROM t WHERE TRUE = {} > 3": "integer",
    "SELECT 1 FROM t WHERE {} + 1 > 3": "number",
    "SELECT 1 FROM t WHERE {} > 99999999999999999999": "integer",
    "SELECT 1 FROM t WHERE {}::int > 3": "integer",
    "SELECT 1 FROM t WHERE {} = TRUE": "boolean",
    "SELECT 1 FROM t WHERE llm_filter('q', {}) AND {} = 'a'": "text",
    "SELECT v FROM (SELECT {} AS v FROM t) AS s WHERE v = 'a'": "text",
}


def constraints(sql: str) -> list[str]:
    calls = type_calls(sql, known_ingredients(), whole=True).calls
    return [str(call.task.constraint) for call in calls if call.ingredient.name != "llm_filter"]


@pytest.mark.parametrize("place", DECIDES)
def test_the_places_of_a_call_say_what_is_to_be_decided(place: str) -> None:
    sql = place.replace("{}", "llm_map('q', x)")
    assert constraints(sql) == [DECIDES[place]]


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        ("llm_int('q', x) > 3", "integer, until decided for > 3"),
        ("llm_float('q', x) > 3", "number, until decided for > 3"),
        (
            "llm_date('q', x, evidence => false) > '2024-01-20'",
            "date, until decided for > '2024-01-20'",
        ),
        ("llm_text('q', x) = 'a'", "text, until decided for = 'a'"),
        ("llm_qa('q', x) = 'a'", "text, until decided for = 'a'"),
        ("llm_map('q', x, regex => '[a-z]+') = 'a'", "/[a-z]+/, until decided for = 'a'"),
        # DataFusion casts one side
        ("llm_int('q', x) = '3'", "integer"),
        ("llm_text('q', x) = 3", "text"),
        ("llm_date('q', x, evidence => false) = '2024-1-2'", "date"),
        # the text states the whole date
        ("llm_date('q', x) > '2024-01-20'", "date"),
        # closed sets are decided at once, lists are no beginnings of lists
        ("llm_classify(x, ['a', 'b']) = 'a'", "one of {a, b}"),
        ("llm_list('q', x) = ['a']", "list of text"),
    ],
)
def test_a_comparison_decides_answers_of_the_literals_own_kind(
    comparison: str, expected: str
) -> None:
    assert constraints(f"SELECT 1 FROM t GROUP BY n HAVING {comparison}") == [expected]


def test_calls_that_put_one_question_count_together_however_they_are_written() -> None:
    sql = "SELECT {} FROM t WHERE llm_int('q', x) > 3"
    assert constraints(sql.format("LLM_INT('q', t.x)")) == ["integer"]
    assert constraints(sql.format("llm_int('q', x) < 9")) == ["integer, until decided for < 9, > 3"]
    assert constraints(sql.format("llm_int('q', y)")) == [
        "integer",
        "integer, until decided for > 3",
    ]


def test_a_part_of_a_query_does_not_know_what_else_is_asked() -> None:
    (call,) = type_calls("SELECT 1 WHERE llm_int('q', x) > 3", known_ingredients()).calls
    assert str(call.task.constraint) == "integer"


# -- what is asked, answered and kept --------------------------------------------------------------

TEXTS = ["Paris, France", "Pau", "Berlin", "Paris", "Nice", "", None]


def echo(request: Request) -> str | int:
    text = request.values[0] or ""
    return len(text) * 10 if request.constraint.kind == "integer" else text


@pytest.fixture
def early() -> Counted:
    model = EarlyModel(echo)
    counted = Counted(echo)
    counted.model, counted.session = model, bf.connect(model, progress="off")
    return counted.add("t", {"x": list(TEXTS)})


def answers(counted: Counted, sql: str) -> list[str | None]:
    frame = counted.session.sql(sql)
    frame.collect()
    return frame.trace.calls.column("answer").to_pylist()


def test_an_answer_ends_where_the_comparison_is_decided(early: Counted) -> None:
    sql = "SELECT x FROM t WHERE llm_text('where?', x) = 'Paris'"
    assert early.rows(sql) == [("Paris",)]
    early.session.clear_cache()
    assert answers(early, sql) == ["Paris,", "Pau", "B", "Paris", "N"]
    assert early.rows("SELECT x FROM t WHERE llm_text('where?', x) LIKE 'Pa%' ORDER BY x") == [
        ("Paris",),
        ("Paris, France",),
        ("Pau",),
    ]


def test_the_explained_plan_says_so(early: Counted) -> None:
    text = early.session.sql("SELECT x FROM t WHERE llm_text('where?', x) = 'Paris'").explain_text()
    assert "→ text, until decided for = 'Paris'" in text


def test_it_can_be_switched_off(early: Counted) -> None:
    early.session.sql("SET blendfusion.rules_off = 'comparison_stop'")
    assert answers(early, "SELECT x FROM t WHERE llm_text('where?', x) = 'Paris'") == TEXTS[:5]
    with pytest.raises(OptionError, match="comparison_stop"):
        early.session.sql("SET blendfusion.rules_off = 'comparison_stops'")


def test_an_answer_that_ended_early_is_not_taken_for_the_whole(early: Counted) -> None:
    asked = []
    for where in ("= 'Paris'", "= 'Paris'", "= 'Pau'", "IS NOT NULL", "= 'Nice'"):
        early.model.calls.clear()
        early.rows(f"SELECT x FROM t WHERE llm_text('where?', x) {where}")
        asked.append([request.values[0] for request in early.model.calls])
    # What was answered to its end before it was decided serves every query: Pau and Paris.
    cut = ["Paris, France", "Berlin", "Nice"]
    assert asked == [TEXTS[:5], [], cut, cut, []]
    shown = {text for (text,) in early.rows("SELECT llm_text('where?', x) FROM t")}
    assert shown == {*TEXTS[:5], None}


def test_a_model_that_always_answers_in_full_is_asked_once_for_all_comparisons() -> None:
    full = Counted(echo).add("t", {"x": list(TEXTS)})
    for where in ("= 'Paris'", "= 'Pau'", "LIKE 'P%'", "IS NOT NULL"):
        full.rows(f"SELECT x FROM t WHERE llm_text('where?', x) {where}")
    assert [request.values[0] for request in full.model.calls] == TEXTS[:5]
    assert {str(request.constraint) for request in full.model.calls} == {"text"}


def test_verbs_of_frames_share_answers_as_before(early: Counted) -> None:
    frame = early.session.table("t").filter("llm_int('size?', x) > 40")
    shown = frame.select_exprs("llm_int('size?', x) AS size").sort("size")
    assert shown.to_pydict() == {"size": [50, 60, 130]}
    assert len(early.model.calls) == 5


# -- the same rows ---------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_left_unanswered_never_changes_rows(shape: str) -> None:
    @settings(max_examples=8)
    @given(t=tables(T_COLUMNS, "id"), u=tables(U_COLUMNS, "uid"), query=SHAPES[shape])
    def check(t: pa.Table, u: pa.Table, query: Query) -> None:
        note(query.sql)
        found = []
        for model in (EarlyModel(hashed), bf.ScriptedModel(hashed)):
            session = bf.connect(model, progress="off")
            session.from_arrow(t, name="t")
            session.from_arrow(u, name="u")
            session.sql(VIEW)
            rows = tuples(session.sql(query.sql).to_arrow_table())
            found.append(rows if query.ordered else unordered(rows))
        assert found[0] == found[1]

    check()


VIEW = (
    "CREATE VIEW seen AS SELECT id, a, n, flag, llm_map('t1', a) AS v, llm_filter('q2', b) AS y "
    "FROM t WHERE id % 3 < 2 AND llm_filter('q1', a)"
)


@pytest.mark.long
@given(
    t=tables(T_COLUMNS, "id"),
    operator=st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    literal=st.sampled_from(["a", "c", "cd", "Z"]),
    bounds=st.tuples(st.integers(-1, 8), st.integers(-1, 8)),
    pattern=st.sampled_from(["a%", "%a", "_", "%d%", "b_", "%"]),
)
def test_every_comparison_keeps_the_same_rows(
    t: pa.Table,
    operator: str,
    literal: str,
    bounds: tuple[int, int],
    pattern: str,
) -> None:
    sql = (
        f"SELECT id, llm_int('i', a) {operator} {bounds[0]} AS p, llm_text('s', b) LIKE '{pattern}' "
        f"AS q FROM t WHERE llm_text('s', a) {operator} '{literal}' "
        f"OR llm_int('i', b) BETWEEN {bounds[0]} AND {bounds[1]} ORDER BY id"
    )
    found = []
    for model in (EarlyModel(hashed), bf.ScriptedModel(hashed)):
        session = bf.connect(model, progress="off")
        session.from_arrow(t, name="t")
        found.append(tuples(session.sql(sql).to_arrow_table()))
    assert found[0] == found[1]
