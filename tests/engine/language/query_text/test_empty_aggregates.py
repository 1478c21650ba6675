"""An aggregate of no row has a row in a subquery that reads the query around it, also with HAVING."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

import blendfusion as bf

T = pa.table({"id": [1, 2, 3, 4], "k": [1, 2, 9, None], "x": ["a", "b", "c", "d"]})
U = pa.table(
    {"id": [1, 2, 3, 4], "k": [1, 1, 1, 2], "n": [5, None, 7, 8], "x": ["a", "b", "c", "d"]}
)
FOLDED = (
    "count(*) IS NULL",
    'count("n") IS NOT NULL',
    "NOT count(n) IS NULL",
    "CASE WHEN count(DISTINCT n) IS NOT NULL THEN 'y' ELSE 'z' END",
    "count(*) IS NULL OR max(n) > 5",
)
AGGREGATES = ("count(*)", "max(n)", "coalesce(sum(n), -1)", "count(*) + 1", *FOLDED)
ITEMS = ("5", "'z'", *AGGREGATES)
HAVINGS = ("", "count(*) = 0", "count(*) > 1", "max(n) IS NULL", "3 > 2 AND count(n) < 2")
KEPT = ("", " AND llm_filter('q', u.x)", " AND u.n > 5")
SCALARS = (
    "SELECT t.id, {one} AS v{call} FROM t",
    "SELECT t.id, {one} IS NULL AS v{call} FROM t",
    "SELECT t.id{call} FROM t WHERE {one} IS NOT NULL",
    "SELECT t.id{call} FROM t WHERE coalesce(CAST({one} AS VARCHAR), 'n') <> '5'",
)
LATERALS = (
    "SELECT t.id, l.*{call} FROM t LEFT JOIN LATERAL ({two}) AS l ON true",
    "SELECT t.id, l.w{call} FROM t LEFT JOIN LATERAL ({two}) AS l ON true WHERE l.v IS NOT NULL",
    "SELECT t.id, l.w, l.v{call} FROM t, LATERAL ({two}) AS l",
    "SELECT t.id, l.w{call} FROM t CROSS JOIN LATERAL ({two}) AS l WHERE l.v IS NOT NULL",
)


@pytest.fixture(scope="module", params=[True, False], ids=["planner", "plain"])
def session(request: pytest.FixtureRequest) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), planner=request.param, progress="off")
    made.from_arrow(T, name="t")
    made.from_arrow(U, name="u")
    return made


def check(session: bf.Session, queries: list[str]) -> None:
    judge = duckdb.connect()
    judge.register("t", T)
    judge.register("u", U)
    judge.execute("CREATE MACRO llm_filter(q, v) AS (v IS NOT NULL)")
    for query in queries:
        right = judge.execute(query).fetchall()
        found = [tuple(row.values()) for row in session.sql(query).to_pylist()]
        assert sorted(map(repr, found)) == sorted(map(repr, right)), query


@pytest.mark.filterwarnings("ignore:This query runs without the planner")
@pytest.mark.parametrize("call", ["", ", llm_filter('q', t.x) AS f"])
@pytest.mark.parametrize("kept", KEPT)
def test_the_rows_are_those_of_duckdb(session: bf.Session, kept: str, call: str) -> None:
    queries = []
    for item, having, form in itertools.product(ITEMS, HAVINGS, SCALARS):
        if having or item in AGGREGATES:
            one = f"(SELECT {item} FROM u WHERE u.k = t.k{kept}{' HAVING ' * bool(having)}{having})"
            queries.append(form.format(one=one, call=call))
    check(session, queries[::9])


@pytest.mark.parametrize("call", ["", ", llm_filter('q', t.x) AS f"])
@pytest.mark.parametrize("having", HAVINGS)
def test_lateral_has_the_rows_of_duckdb(session: bf.Session, having: str, call: str) -> None:
    queries = []
    for item, kept, form in itertools.product(ITEMS, KEPT, LATERALS):
        two = f"SELECT {item} AS w, count(*) AS v FROM u WHERE u.k = t.k{kept}"
        two += f" HAVING {having}" if having else ""
        query = form.format(two=two, call=call)
        if having and "LEFT" not in form:
            with pytest.raises(bf.QueryError, match="HAVING inside LATERAL"):
                session.sql(query)
        else:
            queries.append(query)
    check(session, queries[::8])


@pytest.mark.parametrize("call", ["", ", llm_filter('q', t.x) AS f"])
@pytest.mark.parametrize("quantifier", ["ANY", "ALL"])
def test_a_set_of_one_count_has_the_rows_of_duckdb(
    session: bf.Session, quantifier: str, call: str
) -> None:
    queries = []
    for item, kept, operator in itertools.product(AGGREGATES[:4], KEPT, ("<", "=", ">=")):
        test = f"0 {operator} {quantifier} (SELECT {item} FROM u WHERE u.k = t.k{kept})"
        queries.append(f"SELECT id{call} FROM t WHERE {test}")
        queries.append(f"SELECT id{call} FROM t WHERE NOT {test}")
    check(session, queries[::3])


@pytest.mark.parametrize("call", ["", ", llm_filter('q', t.x) AS f"])
@pytest.mark.parametrize("having", HAVINGS[1:])
def test_membership_in_one_group_has_the_rows_of_duckdb(
    session: bf.Session, having: str, call: str
) -> None:
    queries = []
    for item, kept in itertools.product(("5", "count(*) + 1", "coalesce(max(n), 3)"), KEPT):
        one = f"(SELECT {item} AS v FROM u WHERE u.k = t.k{kept} HAVING {having})"
        for test in ("id IN {one}", "(id + 1) NOT IN {one}", "NOT id IN {one}"):
            queries.append(f"SELECT id{call} FROM t WHERE {test.format(one=one)}")
            queries.append(f"SELECT id{call} FROM t WHERE id = 4 OR {test.format(one=one)}")
    check(session, queries[::3])


def test_a_left_side_that_may_be_longer_is_refused(session: bf.Session) -> None:
    query = "SELECT id FROM t WHERE id + 1 IN (SELECT 2 FROM u WHERE u.k = t.k HAVING max(n) > 5)"
    with pytest.raises(bf.QueryError, match=r"HAVING inside IN(.|\n)*left side in parentheses"):
        session.sql(query)
