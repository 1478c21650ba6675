"""How many values do queries ask that read little of an order, of groups, or of a limit above these?

    python benchmarks/bench_values_asked.py [--groups 8] [--json FILE]

400 rows, or 1,600 with 800 groups; a scripted model says yes to a third. Last numbers in
values_asked.md."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pyarrow as pa

import blendfusion as bf

F = "llm_filter('q', x)"
S = "llm_score('s', x, low => 0, high => 4)"
C = f"count(*) FILTER (WHERE {F})"
R = f"(SELECT *, row_number() OVER (PARTITION BY g ORDER BY d, id) AS r FROM t WHERE {F})"


def _over(window: str, rest: str) -> str:
    return f"SELECT id, {window} AS v FROM t WHERE {F} {rest}"


SHAPES: tuple[str, ...] = (
    *(_over(f"{k}() OVER (PARTITION BY g ORDER BY d)", f"QUALIFY v <= {n}")
      for k in ("rank", "dense_rank") for n in (1, 2, 5)),
    *(_over("row_number() OVER (PARTITION BY g ORDER BY d, id)", f"QUALIFY v <= {n}")
      for n in (1, 2, 5)),
    *(_over(f"{k}() OVER (ORDER BY d)", "QUALIFY v <= 5") for k in ("rank", "dense_rank")),
    *(f"SELECT id FROM {R} WHERE r <= {n} ORDER BY {by} LIMIT {m}" for n in (1, 3)
      for by in ("g, r", "d, id", "g DESC, d, id") for m in (2, 5)),
    *(_over(f"{w} OVER (ORDER BY d, id)", f"ORDER BY {by} LIMIT 3")
      for w in ("row_number()", "sum(p)", "lag(id)", "max(p)") for by in ("d, id", "d, id DESC")),
    *(_over(f"{w} OVER (PARTITION BY g ORDER BY id)", "ORDER BY g, id LIMIT 3")
      for w in ("row_number()", "sum(p)", "rank()", "first_value(p)")),
    *(_over(f"{w} OVER (PARTITION BY g)", "ORDER BY g, id LIMIT 3") for w in ("sum(p)", "max(d)")),
    _over("row_number() OVER (ORDER BY d, id)", "LIMIT 3"),
    _over("ntile(4) OVER (ORDER BY d, id)", "QUALIFY v = 1"),
    *(f"SELECT g, {m} AS v FROM t WHERE {F} GROUP BY g{rest}"
      for m in ("max(d)", "min(d)", "first_value(id ORDER BY d, id)", "array_agg(id ORDER BY d, id)[1]",
                "nth_value(id, 2 ORDER BY d, id)", "least(count(*), 3)")
      for rest in ("", " ORDER BY g LIMIT 2")),
    *(f"SELECT g, {m} AS v FROM t GROUP BY g"
      for m in (f"bool_or({F})", f"min(d) FILTER (WHERE {F})", f"max(CASE WHEN {F} THEN d END)",
                f"first_value(id ORDER BY d, id) FILTER (WHERE {F})", f"max({S})", f"{C} > 3",
                f"max(CASE WHEN {F} THEN id ELSE 0 END)")),
    *(f"SELECT g FROM t GROUP BY g HAVING {test}"
      for test in (f"{C} > 3", f"avg(CASE WHEN {F} THEN 1 ELSE 0 END) > 0.1", f"2 * {C} > count(*)",
                   f"sum(p) FILTER (WHERE {F}) > 100", f"sum({S}) > 20", f"max({S}) >= 4",
                   f"{C} BETWEEN 2 AND 40", f"{C} > g", f"bool_or({F})",
                   f"count(DISTINCT CASE WHEN {F} THEN d END) >= 2")),
    *(f"SELECT g FROM t GROUP BY g ORDER BY {by} LIMIT 1"
      for by in (f"{C} DESC", f"sum({S}) DESC", f"max({S}) DESC", f"avg({S})")),
    *(f"SELECT g FROM t WHERE {F} GROUP BY g HAVING {test}"
      for test in ("count(*) >= 3", "count(*) >= 49", "sum(p) > 100", "max(d) > 90", "min(d) < 5",
                   "count(DISTINCT d) >= 2", "avg(p) > 20")),
    *(f"SELECT {m} AS v FROM t WHERE {F}"
      for m in ("max(d)", "min(d)", "count(*) > 2", "first_value(id ORDER BY d, id)",
                "least(count(*), 3)", "bool_or(d > 50)", "array_agg(id ORDER BY d, id)[1]")),
    f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) >= 3 ORDER BY g LIMIT 2",
    f"SELECT g, max(d) AS m FROM t WHERE {F} GROUP BY g ORDER BY m DESC NULLS LAST, g LIMIT 1",
    f"SELECT g, min(d) AS a, max(d) AS b FROM t WHERE {F} GROUP BY g",
    f"SELECT DISTINCT ON (g) g, id FROM t WHERE {F} ORDER BY g, d, id LIMIT 3",
    f"SELECT DISTINCT g FROM t WHERE {F} ORDER BY g LIMIT 2",
    f"SELECT DISTINCT g FROM (SELECT g, x FROM t UNION ALL SELECT g + 1, x FROM t) WHERE {F}",
    f"SELECT (SELECT count(*) FROM t WHERE {F}) > 2 AS v",
    f"SELECT (SELECT count(*) FROM t WHERE {F}) BETWEEN 1 AND 2 AS v",
    "SELECT id FROM t WHERE (SELECT count(*) FROM t u WHERE u.g = t.g AND llm_filter('q', u.x)) > 2",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM t u WHERE u.g = t.g AND llm_filter('q', u.x)) "
    "ORDER BY id LIMIT 3",
    f"SELECT g, count(*) AS c FROM {R} WHERE r <= 3 GROUP BY g ORDER BY g LIMIT 2",
    f"SELECT max(p) AS m FROM (SELECT p FROM t WHERE {F} ORDER BY d, id LIMIT 10)",
    f"SELECT id FROM t WHERE {F} ORDER BY d, id LIMIT 5",
    f"SELECT id FROM (SELECT * FROM t WHERE {F} ORDER BY d, id LIMIT 20) ORDER BY d, id LIMIT 2",
)  # fmt: skip


def rows_of(groups: int) -> pa.Table:
    ids = range(400 if groups < 100 else 2 * groups)
    columns = {
        "id": [*ids],
        "g": [i % groups for i in ids],
        "d": [i * 37 % 101 for i in ids],
        "p": [i * 13 % 50 for i in ids],
        "x": [f"text {i}" for i in ids],
    }
    return pa.table(columns)


def yes_and_number(text: str) -> tuple[bool, int]:
    """The answers about a text, to both kinds of questions."""
    number = sum(map(ord, text))
    return number % 3 == 0, number % 5


def _answer(call: bf.Request) -> object:
    yes, number = yes_and_number(str(call.values[0]))
    return yes if call.constraint.kind == "boolean" else number


def asked(sql: str, table: pa.Table) -> int:
    """The values that a query asks in a new session."""
    session = bf.connect(bf.ScriptedModel(_answer), cache=None)  # type: ignore[arg-type]
    session.from_arrow(table, name="t")
    frame = session.sql(sql)
    frame.to_arrow_table()
    return frame.trace.usage.values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=8)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    table = rows_of(args.groups)
    found = {sql: asked(sql, table) for sql in SHAPES}
    for sql, n in found.items():
        print(f"{n:5} {sql}")
    print(f"{len(found)} queries, {sum(found.values()):,} values of {len(table) * len(found):,}")
    if args.json:
        args.json.write_text(json.dumps(found, indent=0))


if __name__ == "__main__":
    main()
