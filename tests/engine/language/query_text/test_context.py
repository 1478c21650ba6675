"""What the place of a call says about its answer: one row a kind of place."""

from __future__ import annotations

import pytest

import blendfusion as bf
from blendfusion.language.query_text.type_calls import type_calls
from blendfusion.types import Constraint
from blendfusion.udfs.register.user_functions import known_ingredients

LIST = Constraint("list", item=Constraint("text"))

PLACES = {
    # predicates
    "SELECT 1 FROM t WHERE {}": "boolean",
    "SELECT 1 FROM t WHERE ({})": "boolean",
    "SELECT 1 FROM t WHERE NOT {}": "boolean",
    "SELECT 1 FROM t WHERE {} AND id > 3": "boolean",
    "SELECT 1 FROM t WHERE id > 3 OR {}": "boolean",
    "SELECT 1 FROM t WHERE {} = TRUE": "boolean",
    "SELECT 1 FROM t WHERE FALSE <> {}": "boolean",
    "SELECT 1 FROM t WHERE {} IS TRUE": "boolean",
    "SELECT 1 FROM t WHERE {} IS NOT FALSE": "boolean",
    "SELECT CASE WHEN {} THEN 1 END FROM t": "boolean",
    "SELECT n FROM t GROUP BY n HAVING {}": "boolean",
    "SELECT 1 FROM t JOIN u ON {}": "boolean",
    "SELECT 1 FROM t JOIN u ON t.id = u.id AND {}": "boolean",
    "SELECT count(*) FILTER (WHERE {}) FROM t": "boolean",
    # casts
    "SELECT CAST({} AS INT) FROM t": "integer",
    "SELECT {}::bigint FROM t": "integer",
    "SELECT {}::double FROM t": "number",
    "SELECT CAST({} AS DECIMAL(8, 2)) FROM t": "number",
    "SELECT {}::date FROM t": "date",
    "SELECT {}::timestamp FROM t": "timestamp",
    "SELECT {}::boolean FROM t": "boolean",
    "SELECT TRY_CAST({} AS INT) FROM t": "integer",
    # comparisons, either side
    "SELECT 1 FROM t WHERE {} > 3": "integer",
    "SELECT 1 FROM t WHERE 3 < {}": "integer",
    "SELECT 1 FROM t WHERE {} >= 2.5": "number",
    "SELECT 1 FROM t WHERE {} = -1": "integer",
    "SELECT 1 FROM t WHERE {} < DATE '2024-02-29'": "date",
    "SELECT 1 FROM t WHERE DATE '2024-02-29' < {}": "date",
    "SELECT 1 FROM t WHERE {} > TIMESTAMP '2024-02-29 12:00:00'": "timestamp",
    "SELECT 1 FROM t WHERE {} > CAST('2024-01-01' AS DATE)": "date",
    "SELECT 1 FROM t WHERE {} > 2 IS TRUE": "integer",
    "SELECT 1 FROM t WHERE {} > 2 IS NOT TRUE": "integer",
    "SELECT 1 FROM t WHERE {} BETWEEN 1 AND 5": "integer",
    "SELECT 1 FROM t WHERE {} BETWEEN 1 AND 5.5": "number",
    "SELECT 1 FROM t WHERE 3 BETWEEN {} AND 9": "integer",
    "SELECT 1 FROM t WHERE {} BETWEEN DATE '2024-01-01' AND DATE '2024-12-31'": "date",
    "SELECT 1 FROM t WHERE {} IN (1, 2)": "integer",
    "SELECT CASE {} WHEN 1 THEN 'a' WHEN 2 THEN 'b' END FROM t": "integer",
    # arithmetic and aggregates
    "SELECT {} + 1 FROM t": "number",
    "SELECT 2 * {} FROM t": "number",
    "SELECT -{} FROM t": "number",
    "SELECT abs({}) FROM t": "number",
    "SELECT sum({}) FROM t": "number",
    "SELECT avg({}) FROM t": "number",
    "SELECT {} - INTERVAL '1' DAY FROM t": "date",
    # nothing is said
    "SELECT {} FROM t": "text",
    "SELECT count({}) FROM t": "text",
    "SELECT count(DISTINCT {}) FROM t": "text",
    "SELECT string_agg({}, ',') FROM t": "text",
    "SELECT max({}) FROM t": "text",
    "SELECT upper({}) FROM t": "text",
    "SELECT {} || 'a' FROM t": "text",
    "SELECT 1 FROM t WHERE {} IS NULL": "text",
    "SELECT 1 FROM t ORDER BY {}": "text",
    # through an alias
    "SELECT v FROM (SELECT {} AS v FROM t) AS s WHERE v > 3": "integer",
    "WITH w AS (SELECT {} AS v FROM t) SELECT sum(v) FROM w": "number",
}


def constraints(sql: str) -> list[Constraint]:
    return [call.task.constraint for call in type_calls(sql, known_ingredients()).calls]


@pytest.mark.parametrize("place", PLACES)
def test_the_place_of_a_call_says_what_its_answer_looks_like(place: str) -> None:
    (constraint,) = constraints(place.format("llm_map('q', x)"))
    assert constraint.kind == PLACES[place]


SHAPES = {
    "= 'CA'": ("[A-Z]{2}", ("CA",)),
    "<> 'CA'": ("[A-Z]{2}", ("CA",)),
    "IN ('CA', 'NY')": ("[A-Z]{2}", ("CA", "NY")),
    "IN ('CA', 'NYC')": ("[A-Z]{2,3}", ("CA", "NYC")),
    "= '42'": ("[0-9]{2}", ("42",)),
    "< '2024-01-31'": ("[0-9]{4}-[0-9]{2}-[0-9]{2}", ("2024-01-31",)),
    "= 'New York'": (None, ("New York",)),
    "IN ('CA', 'n/a')": (None, ("CA", "n/a")),
    "= 'it''s'": (None, ("it's",)),
}


@pytest.mark.parametrize("comparison", SHAPES)
def test_literals_give_their_shape_and_stand_as_examples(comparison: str) -> None:
    (constraint,) = constraints(f"SELECT 1 FROM t WHERE llm_map('q', x) {comparison}")
    assert (constraint.pattern, constraint.literals) == SHAPES[comparison]


OPEN = (
    *("{} > 'M'", "'M' <= {}", "{} BETWEEN 'A' AND 'D'", "greatest({}, 'M') = 'M'"),
    *("{} LIKE 'C%'", "{} NOT ILIKE 'c%'", "{} ~ '^C'", "{} SIMILAR TO 'C%'"),
    *("regexp_like({}, '^C')", "starts_with({}, 'C')", "{} = s", "{} <> s", "{} IN (s, 'CA')"),
    *("{} IN (SELECT s FROM t)", "upper({}) = 'CALIFORNIA'", "length({}) > 4"),
    *("{} || '!' = 'California!'", "lower(trim({})) LIKE 'c%'", "substr({}, 1, 1) IN ('C', 'N')"),
)
"""Conditions that texts of any form may meet."""


@pytest.mark.parametrize("condition", OPEN)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 FROM t WHERE {f} = 'CA' OR {open}",
        "SELECT 1 FROM t WHERE {open} OR {f} IN ('CA', 'NY')",
        "SELECT 1 FROM (SELECT {f} AS v, s FROM t) WHERE v = 'CA' OR {open_v}",
    ],
)
def test_a_condition_that_any_text_may_meet_gives_no_shape(condition: str, query: str) -> None:
    call = "llm_map('q', x)"
    sql = query.format(f=call, open=condition.format(call), open_v=condition.format("v"))
    for constraint in constraints(sql):
        assert (constraint.kind, constraint.pattern) == ("text", None)
        assert "CA" in constraint.literals


@pytest.mark.parametrize("condition", ["{} > 'M'", "{} BETWEEN 'A' AND 'D'", "{} <= '42'"])
def test_an_order_of_texts_gives_examples_without_a_shape(condition: str) -> None:
    sql = "SELECT 1 FROM t WHERE " + condition.format("llm_map('q', x)")
    (constraint,) = constraints(sql)
    assert constraint.kind == "text"
    assert constraint.literals


@pytest.mark.parametrize(
    "place",
    [
        "{} IS NOT NULL",
        "count({}) > 1",
        "{} <> 'NY'",
        "nullif({}, 'NY') = 'CA'",
        "{} = 'NY' IS TRUE",
    ],
)
def test_other_places_keep_the_shape(place: str) -> None:
    call = "llm_map('q', x)"
    sql = f"SELECT {call} FROM t GROUP BY {call} HAVING {call} = 'CA' OR {place.format(call)}"
    assert {constraint.pattern for constraint in constraints(sql)} == {"[A-Z]{2}"}


@pytest.mark.parametrize("condition", ["n > 4", "s LIKE 'C%'", "n = 1 OR s = 'a'", "n IN (1)"])
@pytest.mark.parametrize("operator", ["=", "<>", "IS DISTINCT FROM"])
def test_beside_a_condition_an_answer_is_a_boolean(condition: str, operator: str) -> None:
    (constraint,) = constraints(f"SELECT llm_map('q', x) {operator} ({condition}) FROM t")
    assert constraint.kind == "boolean"


def test_branches_of_a_case_give_a_shape() -> None:
    sql = "SELECT CASE llm_map('q', x) WHEN 'CA' THEN 1 WHEN 'NY' THEN 2 END FROM t"
    (constraint,) = constraints(sql)
    assert constraint == Constraint("regex", pattern="[A-Z]{2}", literals=("CA", "NY"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("options => ['1', '2']", Constraint("choice", options=("1", "2"))),
        ("options => ['1', '2'], returns => 'text'", Constraint("choice", options=("1", "2"))),
        ("regex => '[0-9]'", Constraint("regex", pattern="[0-9]")),
        ("regex => '[0-9]', returns => 'int'", Constraint("regex", pattern="[0-9]")),
        ("returns => 'date'", Constraint("date")),
        ("returns => 'list'", LIST),
    ],
)
def test_arguments_come_before_the_place_options_before_regex_before_returns(
    arguments: str, expected: Constraint
) -> None:
    (constraint,) = constraints(f"SELECT CAST(llm_map('q', x, {arguments}) AS INT) FROM t")
    assert constraint == expected


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("llm_filter('q', x)", "boolean"),
        ("llm_int('q', x)", "integer"),
        ("llm_float('q', x)", "number"),
        ("llm_date('q', x)", "date"),
        ("llm_bool('q', x)", "boolean"),
        ("llm_text('q', x)", "text"),
        ("llm_list('q', x)", "list"),
        ("llm_classify(x, ['a'])", "choice"),
        ("llm_qa('q', x)", "text"),
        ("llm_validate('q', x)", "boolean"),
        ("llm_summarize(x)", "text"),
    ],
)
def test_the_name_of_an_ingredient_comes_before_the_place(call: str, kind: str) -> None:
    (constraint,) = constraints(f"SELECT {call} IS NULL FROM t")
    assert constraint.kind == kind


def test_an_aggregate_takes_its_type_from_its_place_too() -> None:
    (constraint,) = constraints("SELECT n FROM t GROUP BY n HAVING llm_qa('how many?', x) > 3")
    assert constraint.kind == "integer"


def test_equal_calls_are_one_call_of_one_type() -> None:
    calls = type_calls(
        "SELECT llm_map('q', x), LLM_MAP('q',  x) FROM t WHERE llm_map('q', x) > 3",
        known_ingredients(),
    ).calls
    assert [c.task.constraint.kind for c in calls] == ["integer"]


def test_whole_numbers_and_numbers_together_are_numbers() -> None:
    sql = "SELECT 1 FROM t WHERE llm_map('q', x) > 3 OR llm_map('q', x) < 1.5"
    assert [c.kind for c in constraints(sql)] == ["number"]


def test_places_that_contradict_each_other_are_two_questions() -> None:
    sql = "SELECT 1 FROM t WHERE llm_map('q', x) > 3 OR llm_map('q', x) < DATE '2024-01-01'"
    assert {c.kind for c in constraints(sql)} == {
        "integer",
        "date",
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'llm_map(''q'', x)' FROM t",
        'SELECT "llm_map" FROM t',
        "SELECT 1 -- llm_map('q', x)\nFROM t",
        "SELECT /* llm_map('q', x) */ 1 FROM t",
        "SELECT llm_map FROM t",
        "SELECT other.llm_map('q', x) FROM t",
    ],
)
def test_what_is_no_call_stays_as_it_is(sql: str) -> None:
    ready = type_calls(sql, known_ingredients())
    assert ready.calls == ()
    assert ready.sql == sql


def test_text_around_calls_is_not_touched() -> None:
    sql = "SELECT  /* keep */ a, 'it''s' FROM t\n WHERE llm_filter ( 'is {} fine; (ok)?' , b.\"X y\" ) -- end"
    ready = type_calls(sql, known_ingredients())
    (call,) = ready.calls
    before, after = sql[: sql.index("llm_filter")], sql[sql.index(" -- end") :]
    assert ready.sql == f'{before}{call.name}(b."X y"){after}'


@pytest.mark.parametrize("other", ["= 'c'", "<> 'c'", "IN ('a', 'c')"])
def test_a_text_that_is_no_label_is_a_warning(other: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "a"), cache=None)
    session.from_pydict({"x": ["1"]}, name="t")
    query = f"SELECT x FROM t WHERE llm_classify(x, ['a', 'b']) {other}"
    with pytest.warns(bf.PlanWarning, match=r"never equals 'c'\. Known: a, b\."):
        session.sql(query)
    session.sql(query)  # once a session
    session.sql("SELECT x FROM t WHERE llm_classify(x, ['a', 'b']) = 'a'")
