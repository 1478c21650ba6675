"""EXISTS and IN (SELECT …) in a select list, and ROLLUP of several keys; DuckDB has the rows."""

from __future__ import annotations

import re

import duckdb
import pytest
from analytic_queries import Analytic, tables
from scripts import Counted, spoken, tuples, unordered

import blendfusion as bf
from blendfusion.language.query_text.grouped_keys import grouped_keys
from blendfusion.language.query_text.subquery_values import subquery_values

RED = "contains(x.note, 'red')"
QUERIES = [
    f"SELECT s.id, EXISTS (SELECT 1 FROM sales AS x WHERE x.item = s.item AND {RED}) AS e FROM sales s",
    f"SELECT s.id, NOT EXISTS (SELECT * FROM sales AS x WHERE x.item = s.item AND {RED}) AS e "
    "FROM sales s",
    "SELECT s.id, CASE WHEN EXISTS (SELECT 1 FROM items AS x WHERE x.item = s.item) THEN 'a' "
    "ELSE 'b' END AS e FROM sales AS s WHERE contains(s.note, 'red')",
    "SELECT s.id, EXISTS (SELECT 1 FROM sales AS x WHERE x.id > 100) AS e FROM sales s",
    f"SELECT EXISTS (SELECT count(*) FROM sales AS x WHERE {RED} AND x.id > 100) AS e",
    f"SELECT EXISTS (SELECT x.store FROM sales AS x WHERE {RED} GROUP BY 1 HAVING count(*) > 9) AS e",
    f"SELECT EXISTS (SELECT 1 FROM sales AS x WHERE {RED} LIMIT 0) AS e",
    "SELECT EXISTS (SELECT 1 FROM items UNION ALL SELECT 2 FROM stores) AS e",
    "SELECT EXISTS (WITH w AS (SELECT 1 AS a FROM items) SELECT a FROM w WHERE a > 1) AS e",
    f"SELECT s.id, s.code IN (SELECT x.code FROM sales AS x WHERE {RED}) AS e FROM sales s",
    f"SELECT s.id, s.code NOT IN (SELECT x.code FROM sales AS x WHERE {RED}) AS e FROM sales s",
    "SELECT s.id, s.store IN (SELECT x.store FROM stores AS x) AS e FROM sales s",
    "SELECT s.id, s.store IN (SELECT x.store FROM stores AS x WHERE x.store > 99) AS e FROM sales s",
    "SELECT s.id, CASE WHEN s.item NOT IN (SELECT x.item FROM items x WHERE x.cost IS NOT NULL) "
    "THEN 'a' ELSE 'b' END AS e FROM sales s WHERE contains(s.note, 'a')",
    f"SELECT s.id, s.id IN (SELECT x.id FROM sales AS x WHERE {RED}) AND EXISTS (SELECT 1 FROM items "
    "AS y WHERE y.item > 3) AS e FROM sales s",
    "SELECT s.id, s.code IN (SELECT x.code FROM sales AS x WHERE x.item = s.store) AS e FROM sales s",
    "SELECT s.id, s.code NOT IN (SELECT x.code FROM sales AS x WHERE x.item = s.store AND x.paid) AS e "
    "FROM sales s WHERE contains(s.note, 'a')",
    "SELECT DISTINCT s.store IN (SELECT x.store FROM stores AS x WHERE x.store = s.item) AS e FROM sales s",
    "SELECT s.id, 3 IN (SELECT x.item FROM items x, stores p WHERE p.store = s.item) AS e FROM sales s",
    "SELECT a.e, count(*) AS n FROM (SELECT EXISTS (SELECT 1 FROM stores AS x WHERE x.store = s.store) "
    "AS e FROM sales s WHERE contains(s.note, 'red')) AS a GROUP BY 1",
    "SELECT (s.qty + 1) IN (SELECT x.qty FROM sales AS x) AS e, s.id FROM sales s",
    "SELECT s.id, (SELECT max(i.item) FROM items AS i WHERE EXISTS (SELECT 1 FROM stores AS p "
    "WHERE p.store = i.item)) AS e FROM sales s",
    "SELECT s.store, s.item, s.code, count(*) AS n FROM sales s GROUP BY ROLLUP ((s.store, s.item), s.code)",
    "SELECT s.store, s.item, s.code, count(*) AS n FROM sales s GROUP BY CUBE ((s.store, s.item), s.code)",
    "SELECT s.paid, s.store, s.item, s.code, count(*) AS n FROM sales s WHERE contains(s.note, 'a') "
    "GROUP BY s.paid, ROLLUP ((s.store, s.item), s.code)",
    "SELECT upper(s.note) AS u, s.item, s.code, count(*) AS n FROM sales s "
    "GROUP BY ROLLUP ((upper(s.note), s.item), s.code)",
]


@pytest.fixture(scope="module")
def database() -> tuple[duckdb.DuckDBPyConnection, Counted]:
    other, db = duckdb.connect(), Counted(spoken)
    for name, table in tables(3).items():
        other.register(name, table)
        db.add(name, table)
    return other, db


@pytest.mark.parametrize("sql", QUERIES)
def test_rows(sql: str, database: tuple[duckdb.DuckDBPyConnection, Counted]) -> None:
    other, db = database
    expected = unordered(other.execute(sql).fetchall())
    for text in dict.fromkeys((sql, Analytic(sql, ordered=False).asking)):
        frame = db.session.sql(text)
        assert unordered(tuples(frame.to_arrow_table())) == expected, text
        assert frame.prepared.reason is None


def test_a_count_that_is_compared_ends_early() -> None:
    """EXISTS of one set of rows for all asks until one row passes."""
    db = Counted(lambda call: True).add("t", {"x": [f"v{i}" for i in range(50)]})
    assert db.asked("SELECT EXISTS (SELECT 1 FROM t WHERE llm_filter('q', x)) AS e") == 1


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u) OR x IN (SELECT y FROM u)",
        "SELECT count(*) FROM t JOIN u ON t.x IN (SELECT y FROM v)",
        "SELECT x IN ('a', 'b'), 'EXISTS (SELECT 1)' FROM t",
        "SELECT a + 1 IN (SELECT y FROM u) FROM t",
        "SELECT a FROM t GROUP BY ROLLUP (a, (b), (c + 1))",
    ],
)
def test_texts_that_stay(text: str) -> None:
    assert grouped_keys(subquery_values(text)) == text


@pytest.mark.parametrize("call", ["", " WHERE llm_filter('q', y)"])
@pytest.mark.parametrize("over", ["", " OVER ()"])
def test_in_of_a_filter_is_refused(call: str, over: str) -> None:
    """DataFusion has no plan for it, which is no error of Python's."""
    db = Counted(lambda call: True).add("t", {"x": ["a"], "n": [1]}).add("u", {"y": ["a"]})
    with pytest.raises(bf.QueryError):
        db.rows(f"SELECT sum(n) FILTER (WHERE x IN (SELECT y FROM u{call})){over} AS s, "
                "bool_or(llm_filter('q', x)) OVER () AS f FROM t GROUP BY x, n")  # fmt: skip


@pytest.mark.parametrize("item", ["sum(CASE WHEN x IN {q} THEN 1 END)", "bool_or(x IN {q})"])
def test_in_of_an_aggregate_is_refused_without_names_of_the_engine(item: str) -> None:
    db = Counted(lambda call: True).add("t", {"x": ["a"]}).add("u", {"x": ["a"]})
    with pytest.raises(bf.QueryError, match="a query of its own below GROUP BY") as raised:
        db.rows(f"SELECT {item.format(q='(SELECT x FROM u)')} AS n FROM t")
    assert "found." not in str(raised.value)


def test_sets_of_keys() -> None:
    made = {
        "ROLLUP ((a, b), c)": "GROUPING SETS ((a, b, c), (a, b), ())",
        "CUBE ((a, f(b, 1)), c)": "GROUPING SETS ((a, f(b, 1), c), (a, f(b, 1)), (c), ())",
        "a, rollup((b,c))": "a, GROUPING SETS ((b,c), ())",
    }
    for given, sets in made.items():
        text = grouped_keys(f"SELECT 1 FROM t GROUP BY {given}")
        assert re.sub(r".* GROUP BY ", "", text) == sets
