"""Rewrites of a query's text bring names of their own, which capture none of the query's: the rows
are DuckDB's, whatever its columns and relations are called."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from scripts import tuples

import blendfusion as bf

QUERIES = (
    "SELECT id, {c} IN (SELECT w FROM u) AS a1 FROM t AS {t}",
    "SELECT id, {t}.{c} NOT IN (SELECT w FROM u WHERE w IS NOT NULL) AS a1 FROM t AS {t}",
    "SELECT id, CASE WHEN {c} IN (SELECT w FROM u) THEN 'in' WHEN {t}.{c} IN (SELECT v FROM u) "
    "THEN 'v' END AS a1 FROM t AS {t}",
    "SELECT id FROM t AS {t} WHERE {c} IN (SELECT w FROM u) OR {t}.{c} NOT IN (SELECT v FROM u)",
    "SELECT id FROM t AS {t} WHERE NOT ({c} IN (SELECT w FROM u WHERE u.v = {t}.{c}))",
    "SELECT id FROM t AS {t} WHERE {c} = ANY (SELECT v FROM u) OR {t}.{c} <> ALL (SELECT v FROM u)",
    "SELECT id FROM t AS {t} WHERE {c} >= ALL (SELECT v FROM u WHERE v < 'n')",
    "SELECT id, EXISTS (SELECT 1 FROM u WHERE v = {c}) AS a1 FROM t AS {t}",
    "SELECT id, EXISTS (SELECT v FROM u WHERE v = {t}.{c} GROUP BY v) AS a1 FROM t AS {t}",
    "SELECT id FROM t AS {t} WHERE EXISTS (SELECT count(*) FROM u WHERE v = {t}.{c} HAVING count(*) > 0)",
    "SELECT {c} FROM t AS {t} EXCEPT ALL SELECT v FROM u",
    "SELECT {c}, id FROM t AS {t} INTERSECT ALL SELECT v, k FROM u",
    "SELECT id FROM t AS {t} WHERE ({c}, id) = ('b', 2) OR (id, {t}.{c}) IN ((1, 'a'), (4, 'd'))",
    "SELECT {t}.{c}, y.k FROM t AS {t}, LATERAL (SELECT k FROM u WHERE u.v = {t}.{c}) AS y",
    "SELECT id, sum(id) FILTER (WHERE {c} > 'a') OVER (ORDER BY id) AS a1 FROM t AS {t}",
    "SELECT id, {c} IS DISTINCT FROM 'b' AS a1 FROM t AS {t} WHERE {t}.{c} SIMILAR TO '(a|b)'",
    "SELECT {c}, count(*) AS a1 FROM t AS {t} GROUP BY ROLLUP ({c})",
)


NAMES = ("value", "found", "found1", "n", "e", "l", "r", "c0", "c1", "compared", "plain")
"""Those that rewrites write, or once wrote."""


def rows(sql: str, name: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Ours and DuckDB's."""
    t = pa.table({"id": [1, 2, 3, 4], name: ["a", "b", None, "d"]})
    u = pa.table({"k": [1, 2, 3], "v": ["a", "d", "a"], "w": ["a", None, "x"]})
    other = duckdb.connect()
    with bf.connect(bf.ScriptedModel(lambda call: 1), cache=None, progress="off") as session:
        for table, called in ((t, "t"), (u, "u")):
            session.from_arrow(table, called)
            other.register(called, table)
        ours = sorted(tuples(session.sql(sql).to_arrow_table()), key=str)
        return ours, sorted(other.execute(sql).fetchall(), key=str)


@pytest.mark.parametrize("query", QUERIES)
def test_a_name_of_a_rewrite_is_no_name_of_the_query(query: str) -> None:
    for name in NAMES:
        for relation in ("x", name):
            sql = query.format(c=f'"{name}"', t=f'"{relation}"')
            ours, theirs = rows(sql, name)
            assert ours == theirs, sql
