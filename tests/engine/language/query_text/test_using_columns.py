"""The columns of USING and NATURAL joins are those of both sides, as in other systems."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from scripts import tuples, unordered

import blendfusion as bf
from blendfusion.language.query_text.using_columns import using_columns

TABLES = {
    "t": pa.table({"k": [1, 1, 2, 3, None], "a": [7, 8, 9, None, 6], "x": list("abcab")}),
    "u": pa.table({"k": [1, 2, 2, 5, None], "b": [4, 5, None, 7, 8], "y": list("bacba")}),
}
JOINS = (
    *("t {} JOIN u USING (k)", "u {} JOIN t USING (k)", "t NATURAL {} JOIN u"),
    "(SELECT * FROM t WHERE a > 6) AS t {} JOIN u USING (k)",
    "t {} JOIN (SELECT * FROM u WHERE ⟦y⟧) AS u USING (k)",
)
ASKED = {"⟦x⟧": "llm_filter('q', t.x)", "⟦y⟧": "llm_filter('q', y)", "⟦z⟧": "llm_filter('q', u.y)"}
PLAIN = {"⟦x⟧": "t.x <> 'b'", "⟦y⟧": "y <> 'b'", "⟦z⟧": "u.y <> 'b'"}


def _queries(count: int) -> Iterator[str]:
    rng = random.Random(3)
    for _ in range(count):
        kind = rng.choice(["FULL", "FULL OUTER", "RIGHT", "RIGHT OUTER", "LEFT", ""])
        rows = rng.choice(JOINS).format(kind)
        where = rng.choice(["", " WHERE k > 1", " WHERE ⟦x⟧ OR ⟦z⟧", " WHERE k IS NULL OR ⟦x⟧"])
        yield rng.choice(
            [
                f"SELECT * FROM {rows}{where}",
                f"SELECT k, t.a, u.b FROM {rows}{where}",
                f"SELECT k AS own, t.k, u.k AS other FROM {rows}{where}",
                f"SELECT k + 1 AS v, CASE WHEN k > 3 THEN 'big' END AS w FROM {rows}{where}",
                f"SELECT k, count(*) AS n, max(t.a) AS m FROM {rows}{where} GROUP BY k HAVING k > 0",
                f"SELECT DISTINCT k FROM {rows}{where} UNION ALL SELECT 9",
                f"SELECT max(k) AS m, count(DISTINCT k) AS n FROM {rows}{where}",
                f"SELECT k FROM (SELECT k FROM {rows}{where}) AS q WHERE k = 5 OR k = 3",
                f"SELECT k, rank() OVER (PARTITION BY k ORDER BY t.a, u.b) AS r FROM {rows}{where}",
                f"SELECT t.a AS k FROM {rows}{where} ORDER BY k LIMIT 100",
                f"SELECT * EXCLUDE (a) FROM {rows}{where}",
            ]
        )


@pytest.mark.parametrize("query", list(_queries(70)))
def test_rows(query: str) -> None:
    session = bf.connect(
        bf.ScriptedModel(lambda call: call.values[0] != "b"), cache=None, progress="off"
    )
    database = duckdb.connect()
    for name, table in TABLES.items():
        session.from_arrow(table, name=name)
        database.register(name, table)
    texts = []
    for calls in (PLAIN, ASKED):
        text = query
        for name, call in calls.items():
            text = text.replace(name, call)
        texts.append(text)
    expected = database.execute(texts[0])
    names = [column[0] for column in expected.description or ()]
    rows = unordered(expected.fetchall())
    for text in texts:
        found = session.sql(text).to_arrow_table()
        assert found.column_names == names, text
        assert unordered(list(tuples(found))) == rows, text


def test_texts_that_stay() -> None:
    def columns(common: str, relation: str) -> list[str]:
        return ["k", "a"] if relation.startswith("t") else ["k", "b"]

    for text in (
        "SELECT k, a FROM t JOIN u USING (k) ORDER BY k",
        "SELECT t.k FROM t RIGHT JOIN u USING (k) WHERE t.k > 1",
        "SELECT a AS k FROM t FULL JOIN u USING (k) ORDER BY k",
        "SELECT k FROM t FULL JOIN u ON t.k = u.k",
    ):
        assert using_columns(text, columns) == text
