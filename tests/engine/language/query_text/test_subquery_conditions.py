"""IN and EXISTS of subqueries have the rows of other systems, wherever they stand: NULL counts, and so
does an aggregate of no rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from scripts import tuples, unordered

import blendfusion as bf
from blendfusion.language.query_text.subquery_conditions import subquery_conditions

TABLES = {
    "t": pa.table(
        {
            "id": range(9),
            "k": pa.array([1, 1, 2, 2, 3, 3, None, None, 4]),
            "n": pa.array([5, None, 0, 2, 5, 7, 0, None, 3]),
            "b": pa.array([True, False, None, True, False, None, True, False, None]),
            "x": list("abcabcabc"),
        }
    ),
    "u": pa.table(
        {
            "id": range(7),
            "k": pa.array([1, 2, 2, None, 4, 5, 1]),
            "n": pa.array([0, 2, None, 3, 5, 2, 5]),
            "x": list("abcdbca"),
        }
    ),
    "w": pa.table({"id": range(3), "k": [1, 2, 3], "n": [0, 5, 2], "x": list("abc")}),
}
FORMS = (
    *("{0}", "NOT {0}", "({0}) AND {1}", "({0}) OR {1}", "NOT ({0} AND {1})", "({0}) IS NULL"),
    *("({0}) IS NOT FALSE", "coalesce({0}, TRUE)", "({0}) = ({1})", "NOT ({1} OR {0})"),
    *("CASE WHEN {0} THEN {1} ELSE t.n > 1 END", "{1} AND ({0} OR t.k = 2)", "NOT NOT ({0})"),
)
ASKED = ("llm_filter('q', t.x)", "llm_filter('q', u.x)")
PLAIN = ("t.x <> 'b'", "u.x <> 'b'")


def _conditions(count: int) -> Iterator[str]:
    """Conditions on ``t`` and ``u``, with ⟦0⟧ and ⟦1⟧ for calls about their texts."""
    rng = random.Random(41)
    for _ in range(count):
        table = rng.choice(["u", "u", "w AS u"])
        where = rng.choice(
            ["", " WHERE u.n > 1", " WHERE u.n > 99", " WHERE u.k = t.k", " WHERE u.k = t.k"]
        )
        if rng.random() < 0.4:
            where = f"{where} AND ⟦1⟧" if where else " WHERE ⟦1⟧"
        rows = f"FROM {table}{where}"
        value = rng.choice(
            ["t.n", "t.n", "t.k", "2", "t.n + 0", "NULL", "CASE WHEN t.b THEN t.n ELSE t.k END"]
        )
        item = rng.choice(
            ["u.n", "u.n", "u.n AS n", "DISTINCT u.n", "u.n + 1", "max(u.n)", "count(*)"]
        )
        word = rng.choice(["IN", "NOT IN"])
        among = f"{value} {word} (SELECT {item} {rows})"
        one = rng.choice(["count(*)", "max(u.n)", "sum(u.n) + 1"])
        having = rng.choice(["", "", " HAVING count(*) = 0", " HAVING count(*) > 1"])
        offset = rng.choice(["", " OFFSET 1", " OFFSET 0"])
        there = rng.choice([f"SELECT {one} {rows}{having}", f"SELECT 1 {rows}{offset}"])
        test = rng.choice([among, among, f"EXISTS ({there})"])
        yield rng.choice(FORMS).format(test, rng.choice(["t.b", "⟦0⟧"]))


def _of(condition: str, calls: tuple[str, str]) -> str:
    written = condition.replace("⟦0⟧", calls[0]).replace("⟦1⟧", calls[1])
    return f"SELECT t.id FROM t WHERE {written}"


@pytest.fixture(scope="module")
def session() -> bf.Session:
    model = bf.ScriptedModel(lambda call: call.values[0] != "b")
    session = bf.connect(model, cache=None, progress="off")
    for name, table in TABLES.items():
        session.from_arrow(table, name=name)
    return session


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name, table in TABLES.items():
        connection.register(name, table)
    return connection


@pytest.mark.parametrize("condition", list(_conditions(150)))
def test_rows(condition: str, session: bf.Session, database: duckdb.DuckDBPyConnection) -> None:
    expected = unordered(database.execute(_of(condition, PLAIN)).fetchall())
    for calls in (PLAIN, ASKED):
        found = session.sql(_of(condition, calls)).to_arrow_table()
        assert unordered(list(tuples(found))) == expected, calls


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) AS c FROM t HAVING (SELECT max(u.n) FROM u) > {}",
        "SELECT max(t.n) AS c FROM t WHERE ⟦0⟧ HAVING (SELECT max(u.n) FROM u WHERE ⟦1⟧) > {}",
        "SELECT c FROM (SELECT count(*) AS c FROM t WHERE ⟦0⟧) AS q WHERE (SELECT max(u.n) FROM u) > {}",
        "WITH q AS (SELECT sum(n) AS c FROM t) SELECT c FROM q WHERE {} < (SELECT max(u.n) FROM u)",
        "WITH q AS (SELECT sum(n) AS c FROM t) SELECT c FROM q WHERE NOT ((SELECT max(n) FROM u) BETWEEN 0 "
        "AND {} OR (SELECT min(n) FROM u WHERE ⟦1⟧) IS NULL) AND c > 1",
    ],
)
@pytest.mark.parametrize("bound", [2, 100])
def test_an_aggregate_of_all_rows_is_dropped(
    query: str, bound: int, session: bf.Session, database: duckdb.DuckDBPyConnection
) -> None:
    plain, asked = (
        query.replace("⟦0⟧", calls[0]).replace("⟦1⟧", calls[1]).format(bound)
        for calls in (PLAIN, ASKED)
    )
    expected = database.execute(plain).fetchall()
    for text in (plain, asked):
        assert list(tuples(session.sql(text).to_arrow_table())) == expected, text


@pytest.mark.parametrize(
    "condition",
    [
        "n IN (SELECT n FROM u) OR k = 1",
        "n NOT IN (SELECT n FROM u) AND k = 1",
        "NOT (n IN (SELECT n FROM u)) AND (k = 1 OR b)",
        "(n IN (SELECT n FROM u WHERE u.k = t.k) OR b) AND k = 1",
        "CASE WHEN n IN (SELECT n FROM u WHERE u.k = t.k) OR b THEN k ELSE CASE WHEN b THEN 1 END END = 1",
        "CASE WHEN CASE WHEN b THEN b END AND k IN (SELECT n FROM u) THEN b WHEN b THEN b END",
        "EXISTS (SELECT 1 FROM u WHERE u.k = t.k) OR NOT EXISTS (SELECT count(*) FROM u)",
    ],
)
def test_conditions_that_stay(condition: str) -> None:
    """DataFusion has their rows."""

    def columns(common: str, relation: str) -> list[str] | None:
        return None if "t.k" in relation else ["n"]

    text = f"SELECT id FROM t WHERE {condition} GROUP BY id"
    assert subquery_conditions(text, columns) == text
