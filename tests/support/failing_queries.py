"""Random queries with expressions that fail on some rows, above filters by answers that drop
these."""

from __future__ import annotations

import random

import pyarrow as pa
from scripts import hashed

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

_FILTERS = (
    "llm_filter('f', x)",
    "llm_filter('f', x)",
    "NOT llm_filter('bad', x)",
    "llm_classify(x, ['a', 'b', 'c']) = 'a'",
    "llm_score('s', x) > 5",
    "llm_filter('f', x) AND h < 2",
    "llm_filter('f', x) AND llm_score('s', x) > 2",
    "(llm_filter('f', x) OR llm_score('s', x) > 5)",
    "id IN (SELECT id FROM t WHERE llm_filter('f', x))",
    "id NOT IN (SELECT id FROM t WHERE llm_filter('bad', x))",
    "(id IN (SELECT id FROM t WHERE llm_filter('f', x)) OR llm_score('s', x) > 5)",
    "CASE WHEN h = 1 THEN llm_filter('f', x) ELSE llm_score('s', x) > 5 END",
)
_KEYS = (
    "10 / g",
    "10 % g",
    "CAST(s AS INT)",
    "CAST(d AS DATE)",
    "CAST(s AS INT) + 10 / g",
    "CASE WHEN h > 0 THEN 10 / g ELSE id % 3 END",
    "coalesce(10 / g, 1)",
    "to_timestamp(d)",
    "date_part('day', CAST(d AS DATE))",
    "CAST(s AS INT) > 2",
    "abs(CAST(s AS INT) - 4)",
)
_NUMBERS = _KEYS[:3]


def failing_rows(source: random.Random) -> pa.Table:
    """A table in which the keys fail where ``x`` starts with b."""
    size = source.choice([12, 40, 120])
    bad = [source.random() < source.choice([0.05, 0.2, 0.6]) for _ in range(size)]
    some = range(1, 1 + source.choice([2, 4, 9]))

    def column(fails: object, of: object) -> list[object]:
        return [
            fails if b else None if source.random() < 0.1 else of(source.choice(some))  # type: ignore[operator]
            for b in bad
        ]

    texts = source.choice([8, 1_000])
    return pa.table(
        {
            "id": pa.array(range(size), pa.int64()),
            "g": pa.array(column(0, int), pa.int64()),
            "h": pa.array([source.randrange(3) for _ in bad], pa.int64()),
            "s": pa.array(column("none", str), pa.string()),
            "d": pa.array(column("?", lambda n: f"2024-01-0{n}"), pa.string()),
            "x": [f"{'b' if b else 'v'}{source.randrange(texts)}" for b in bad],
        }
    )


def dropping(call: bf.Request) -> Value:
    """Answers by which the filters drop each row on which a key fails."""
    if not str(call.values[0]).startswith("b"):
        return hashed(call)
    if call.constraint.kind == "choice":
        return "c"
    return call.question == "bad" if call.constraint.kind == "boolean" else 0.0


class FailingQueries:
    """Random queries over ``t``, a table of ``failing_rows``."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def query(self) -> str:
        """A query whose rows have one order, or none."""
        if self._source.random() < 0.6:
            return self._read("t", self._source.choice(_KEYS), self._source.choice(_NUMBERS), True)
        return self._nested()

    def _nested(self) -> str:
        """A query over one that shows a key, or has one among its own."""
        key, where = self._source.choice(_NUMBERS), self._source.choice(_FILTERS)
        inner = self._source.choice(
            [
                f"SELECT id, h, {key} AS z, x, g FROM t WHERE {where}",
                f"SELECT id, h, {key} AS z, x, g FROM t WHERE {where} ORDER BY {key}, id LIMIT 7",
                f"SELECT id, h, z, x, g FROM (SELECT *, {key} AS z, row_number() OVER "
                f"(PARTITION BY h ORDER BY {key}, id) AS n FROM t WHERE {where}) AS p WHERE n <= 3",
                f"SELECT id, h, {key} AS z, x, g FROM t WHERE {where} AND id < 20 UNION ALL "
                f"SELECT id, h, 1, x, g FROM t WHERE {where} AND id >= 20",
                f"SELECT min(id) AS id, h, {key} AS z, min(x) AS x, max(g) AS g FROM t "
                f"WHERE {where} GROUP BY h, {key}",
            ]
        )
        return self._read(f"({inner}) AS q", "z", "z + h", self._source.random() < 0.3)

    def _read(self, rows: str, key: str, number: str, filtered: bool) -> str:
        one = self._source
        where = f" WHERE {one.choice(_FILTERS)}" if filtered else ""
        down, count = one.choice(["", " DESC", " NULLS FIRST"]), one.choice([1, 2, 5])
        extreme = one.choice(["min", "max", "sum", "avg", "count"])
        rank = one.choice(["row_number", "rank", "dense_rank"])
        then = ", id" if rank == "row_number" else ""
        of_all = f"FROM {rows}{where}"
        return one.choice(
            [
                f"SELECT id {of_all} ORDER BY {key}{down}, id LIMIT {count}",
                f"SELECT id {of_all} ORDER BY {key}{down}, id LIMIT {count} OFFSET 1",
                f"SELECT id, {key} AS k {of_all} ORDER BY h, {key}{down}, id",
                f"SELECT id FROM (SELECT id, {rank}() OVER (ORDER BY {key}{down}{then}) AS r {of_all}) "
                f"AS o WHERE r <= {count}",
                f"SELECT id FROM (SELECT id, {rank}() OVER (PARTITION BY {key} ORDER BY id{down}) "
                f"AS r {of_all}) AS o WHERE r <= {count}",
                f"SELECT id, lag(id) OVER (ORDER BY {key}{down}, id) AS b {of_all}",
                f"SELECT DISTINCT {key} AS k {of_all}",
                f"SELECT DISTINCT {key} AS k {of_all} ORDER BY k{down} LIMIT {count}",
                f"SELECT DISTINCT ON ({key}) id {of_all} ORDER BY {key}, id{down}",
                f"SELECT h, {extreme}({number}) AS m {of_all} GROUP BY h",
                f"SELECT h, {extreme}({number}) AS m {of_all} GROUP BY h ORDER BY m, h LIMIT 2",
                f"SELECT h {of_all} GROUP BY h HAVING {extreme}({number}) > 3",
                f"SELECT {extreme}({number}) AS m {of_all}",
                f"SELECT {extreme}({number}) FILTER (WHERE {one.choice(_FILTERS[:5])}) AS m "
                f"FROM {rows}",
                f"SELECT count(*) FILTER (WHERE {number} > 3) AS m {of_all}",
                f"SELECT h, first_value(id ORDER BY {key}{down}, id) AS m {of_all} GROUP BY h",
                f"SELECT {key} AS k, count(*) AS m {of_all} GROUP BY {key} HAVING count(*) > 1",
                f"SELECT {key} AS k {of_all} GROUP BY {key} ORDER BY count(*) DESC, k LIMIT 1",
                f"SELECT count(DISTINCT {key}) AS m {of_all}",
                f"SELECT o.id, u.z FROM (SELECT 10 AS z UNION ALL SELECT 3) AS u "
                f"JOIN (SELECT id, {number} AS k {of_all}) AS o ON o.k = u.z",
                f"SELECT u.z FROM (SELECT 10 AS z UNION ALL SELECT 3) AS u "
                f"WHERE u.z IN (SELECT {number} {of_all})",
                f"SELECT u.z FROM (SELECT 10 AS z UNION ALL SELECT 3) AS u "
                f"WHERE EXISTS (SELECT 1 {of_all}{' AND' if where else ' WHERE'} {number} = u.z)",
                f"SELECT (SELECT max({number}) {of_all}) AS m",
                f"SELECT id {of_all} UNION ALL SELECT {number} {of_all} ORDER BY 1 LIMIT {count}",
                f"SELECT {number} AS k {of_all} UNION SELECT h FROM t",
            ]
        )
