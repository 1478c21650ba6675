"""A subquery without a row is NULL, although the values of its column are not."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.language.query_text.empty_subqueries import empty_subqueries

T = pa.table({"id": [1, 2, 3], "k": [1, 2, None], "x": ["a", "b", None]})
U = pa.table(
    {
        "id": pa.array([1, 2, 3, 4]),
        "k": [1, 1, 2, 2],
        "r": pa.array([5, 6, 7, 8]),
        "x": ["a", "b", "c", "d"],
    },
    schema=pa.schema(
        [("id", pa.int64()), ("k", pa.int64()), pa.field("r", pa.int64(), nullable=False), ("x", pa.string())]
    ),
)  # fmt: skip
VALUES = (
    "(SELECT 7 FROM u WHERE id {few})",
    "(SELECT r FROM u WHERE id {few})",
    "(SELECT 7 WHERE 1 {few})",
    "(SELECT count(*) FROM u HAVING count(*) {few})",
    "(SELECT count(*) FROM u LIMIT {limit})",
    "(SELECT count(*) FROM u WHERE u.k = t.k HAVING count(*) {few})",
    "(SELECT count(*) FROM u WHERE u.k = t.k GROUP BY u.k)",
    "(SELECT row_number() OVER (ORDER BY id) FROM u WHERE id {few})",
    "(SELECT 7 FROM u WHERE id {few} AND llm_filter('q', u.x))",
    "((SELECT r + 1 FROM u WHERE id {few}))",
    "(SELECT 7 WHERE 1 {few} UNION SELECT 7 FROM u WHERE id {few})",
    "(WITH c AS (SELECT r FROM u WHERE id {few}) SELECT r FROM c)",
)
FORMS = (
    "SELECT t.id, {value} AS v{call} FROM t",
    "SELECT t.id, {value} IS NULL AS v{call} FROM t",
    "SELECT t.id, coalesce({value}, -1) AS v{call} FROM t",
    "SELECT t.id, coalesce(NULL, {value}, {other}, -2) AS v{call} FROM t",
    "SELECT t.id, CASE WHEN {value} > 0 THEN 1 ELSE 2 END AS v{call} FROM t",
    "SELECT t.id, {value} IS DISTINCT FROM 7 AS v{call} FROM t",
    "SELECT t.id{call} FROM t WHERE {value} IS NULL",
    "SELECT t.id{call} FROM t WHERE NOT coalesce({value} > 0, false) AND {other} IS NULL",
    "SELECT t.id FROM t WHERE coalesce({value}, 0) < 3 AND llm_filter('q', t.id)",
)


@pytest.fixture(scope="module", params=[True, False], ids=["planner", "plain"])
def session(request: pytest.FixtureRequest) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), planner=request.param, progress="off")
    made.from_arrow(T, name="t")
    made.from_arrow(U, name="u")
    return made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", ["", ", llm_filter('q', t.id) AS f"])
def test_the_rows_are_those_of_duckdb(session: bf.Session, form: str, call: str) -> None:
    judge = duckdb.connect()
    judge.register("t", T)
    judge.register("u", U)
    judge.execute("CREATE MACRO llm_filter(q, v) AS (CASE WHEN v IS NOT NULL THEN true END)")
    for value, few in itertools.product(VALUES, ("= 1", "= 4", "> 1000")):
        parts = {"few": few, "limit": int(few != "> 1000")}
        texts = {"value": value.format(**parts), "other": VALUES[1].format(few="= 99")}
        query = form.format(**texts, call=call)
        right = judge.execute(query).fetchall()
        found = [tuple(row.values()) for row in session.sql(query).to_pylist()]
        assert sorted(map(_numbers, found)) == sorted(map(_numbers, right)), query


def _numbers(row: tuple[object, ...]) -> list[str]:
    """A row, whatever the types of its numbers are: DataFusion's ranks are unsigned."""
    return [str(value).replace("True", "1").replace("False", "0") for value in row]


@pytest.mark.parametrize("value", ["llm_map('q', x)", "max(llm_map('q', x))", "llm_qa('q', x)"])
def test_an_answer_has_the_type_of_what_is_beside_the_subquery(value: str) -> None:
    made = bf.connect(bf.ScriptedModel(lambda call: 2), progress="off")
    made.from_arrow(T, name="t")
    group = "LIMIT 1" if value.startswith("llm_map") else "HAVING count(*) > 1"
    found = made.sql(f"SELECT id FROM t WHERE id > (SELECT {value} FROM t AS u {group})")
    assert found.to_pylist() == [{"id": 3}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a.id FROM t AS a JOIN ((SELECT id, k FROM t LIMIT 9)) AS b ON a.id = b.id",
        "SELECT a.id FROM t AS a, ((SELECT id, k FROM t WHERE id > 0)) AS b WHERE a.id = b.id",
        "SELECT id FROM (((SELECT id, k FROM t WHERE id > 0))) AS b",
        "SELECT id FROM (((SELECT id, k FROM t)) UNION ((SELECT id, k FROM t))) AS b",
        "((SELECT id, k FROM t WHERE id > 0)) UNION (((SELECT id, k FROM t)))",
        "SELECT b.id FROM (t AS a JOIN (SELECT id, k FROM t) AS b ON a.id = b.id)",
        "WITH c AS ((SELECT id, k FROM t WHERE id > 0)) SELECT id FROM c",
        "SELECT id FROM t WHERE id IN ((SELECT id FROM t WHERE id > 0))",
        "SELECT id FROM t WHERE EXISTS ((SELECT id, k FROM t WHERE id > 0))",
    ],
)
def test_relations_in_parentheses_are_no_values(text: str) -> None:
    assert empty_subqueries(text) == text
