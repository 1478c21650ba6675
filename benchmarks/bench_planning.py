"""What does planning a query cost over DataFusion's own planning?

    python benchmarks/bench_planning.py [--rounds 15] [--only conformance|growth]

Two tables. Every query with a call that tests/conformance plans: the time from SQL text to staged
plan, against DataFusion's for the same text, in which the calls are functions. And shapes that grow
to 200 operators: the time over DataFusion's by size, with the exponent of its growth (1: linear).
Times are CPU time of this process, which a busy machine disturbs less."""

from __future__ import annotations

import argparse
import io
import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from datafusion import DataFrame, SessionContext

import blendfusion as bf

CONFORMANCE = Path(__file__).parent.parent / "tests" / "conformance"
SIZES = (10, 25, 50, 100, 200)


@dataclass(frozen=True)
class Planned:
    """Medians, in milliseconds: DataFusion's planning, and what a session's takes beyond it."""

    sql: str
    own: float
    over: float
    operators: int
    reason: str | None


def planned(session: bf.Session, sql: str, rounds: int) -> Planned:
    """The planning of a query, both ways alternately."""
    text = session.calls.reading(session.engine, sql, {}, whole=True)().sql

    def own() -> Any:
        return DataFrame.optimized_logical_plan(SessionContext.sql(session, text))

    def ours() -> Any:
        return bf.Session.sql(session, sql).prepared

    pairs = [(_milliseconds(own), _milliseconds(ours)) for _ in range(rounds)]
    return Planned(
        sql=sql,
        own=statistics.median(a for a, _ in pairs),
        over=statistics.median(b - a for a, b in pairs),
        operators=len(own().display_indent().splitlines()),
        reason=ours().reason,
    )


def _milliseconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return (process_time() - start) * 1e3


# --- the conformance queries ---------------------------------------------------------------------


def conformance(rounds: int) -> list[Planned]:
    """Every query with a call that the conformance tests plan, measured while they run."""
    found: dict[str, Planned] = {}
    original = bf.Session.sql

    def recording(self: bf.Session, query: str, *args: Any, **kwargs: Any) -> Any:
        frame = original(self, query, *args, **kwargs)
        is_new = not (args or kwargs or query in found)
        if is_new and self.options.planner and frame.prepared.calls:
            # A call beside a column needs the types of a first plan, which DataFusion refuses: no
            # pair.
            with patch.object(bf.Session, "sql", original), suppress(Exception):
                found[query] = planned(self, query, rounds)
        return frame

    with patch.object(bf.Session, "sql", recording), redirect_stdout(io.StringIO()) as said:
        failed = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", str(CONFORMANCE)])
    if failed:
        print(said.getvalue().splitlines()[-1])
    return list(found.values())


def print_conformance(results: list[Planned]) -> None:
    over = sorted(result.over for result in results)
    print(f"{len(results)} queries of tests/conformance, milliseconds")
    print(f"  DataFusion's own: median {statistics.median(r.own for r in results):.2f}")
    print(
        f"  over it: median {statistics.median(over):.2f}, "
        f"90 % {over[len(over) * 9 // 10]:.2f}, largest {over[-1]:.2f}"
    )
    for result in sorted(results, key=lambda r: -r.over)[:5]:
        print(f"  {result.over:7.2f}  {' '.join(result.sql.split())[:100]}")


# --- growing plans -------------------------------------------------------------------------------


def _filters(n: int) -> str:
    return "SELECT id FROM t WHERE " + " AND ".join(f"llm_filter('f{i}', x)" for i in range(n))


def _gates(n: int) -> str:
    terms = " OR ".join(f"(k = {i} AND llm_filter('g{i}', x))" for i in range(n))
    return f"SELECT id FROM t WHERE {terms}"


def _columns(n: int) -> str:
    return "SELECT " + ", ".join(f"llm_map('c{i}', x) AS c{i}" for i in range(n)) + " FROM t"


def _joins(n: int) -> str:
    joined = "".join(f" JOIN t AS t{i} ON t{i - 1}.id = t{i}.id" for i in range(1, n // 2))
    where = " AND ".join(f"llm_filter('j', t{i}.x)" for i in range(0, n // 2, 4))
    return f"SELECT t0.id FROM t AS t0{joined} WHERE {where}"


def _unions(n: int) -> str:
    return " UNION ALL ".join(
        f"SELECT id FROM t WHERE k = {i} AND llm_filter('u', x)" for i in range(n // 3)
    )


def _subqueries(n: int) -> str:
    # Side by side: DataFusion's own time doubles with every subquery within a subquery.
    return "SELECT id FROM t WHERE " + " AND ".join(
        f"id IN (SELECT id FROM t AS t{i} WHERE k <> {i} AND llm_filter('s{i}', x))"
        for i in range(n // 4)
    )


def _chain(step: Callable[[int], str], steps: int, columns: str) -> str:
    """Every step reads the one before."""
    named = ["w0 AS (SELECT id, k, x FROM t)"]
    named += [f"w{i} AS ({step(i).format(before=f'w{i - 1}')})" for i in range(1, steps)]
    return f"WITH {', '.join(named)} SELECT {columns} FROM w{steps - 1}"


def _aggregates(n: int) -> str:
    step = (
        "SELECT max(id) AS id, x FROM {{before}} WHERE llm_filter('a{i}', x) "
        "GROUP BY x HAVING max(id) > {i}"
    )
    return _chain(lambda i: step.format(i=i), n // 4, "id")


def _limits(n: int) -> str:
    step = "SELECT id, x FROM {{before}} WHERE llm_filter('l{i}', x) ORDER BY id LIMIT {rows}"
    return _chain(lambda i: step.format(i=i, rows=1000 - i), n // 4, "id")


def _calls(n: int) -> str:
    step = "SELECT id, k, llm_map('w{i}', x) AS x FROM {{before}} WHERE k > {i}"
    return _chain(lambda i: step.format(i=i), n // 2, "id, x")


def _windows(n: int) -> str:
    step = (
        "SELECT id, x, row_number() OVER (PARTITION BY x ORDER BY id) AS r "
        "FROM {{before}} WHERE llm_filter('w{i}', x) AND id > {i}"
    )
    return _chain(lambda i: step.format(i=i), n // 3, "id, x, r")


SHAPES: dict[str, Callable[[int], str]] = {
    "predicates": _filters,
    "gates under OR": _gates,
    "columns": _columns,
    "joins": _joins,
    "unions": _unions,
    "subqueries": _subqueries,
    "aggregates, nested": _aggregates,
    "limits, nested": _limits,
    "calls of calls": _calls,
    "windows, nested": _windows,
}


def growth(rounds: int) -> Iterator[tuple[str, list[Planned]]]:
    """Every shape in every size; the size counts operators, or predicates and columns."""
    session = bf.connect(bf.ScriptedModel(lambda call: True), progress="off")
    rows = [{"id": i, "k": i % 4, "x": f"v{i % 20}"} for i in range(40)]
    session.from_arrow(pa.Table.from_pylist(rows), name="t")
    for shape, sql in SHAPES.items():
        yield shape, [planned(session, sql(size), rounds) for size in SIZES]


def exponent(sizes: list[int], taken: list[float]) -> float:
    """The slope of a line through the logarithms of both."""
    x, y = [math.log(n) for n in sizes], [math.log(max(t, 0.01)) for t in taken]
    return statistics.linear_regression(x, y).slope


def print_growth(rounds: int) -> None:
    print(f"\n{'ms over DataFusion, by size':24}" + "".join(f"{n:>8}" for n in SIZES), end="")
    print(f"{'exponent':>10}{'of its own':>12}{'operators':>11}")
    for shape, results in growth(rounds):
        # The smallest plans are mostly what every query pays.
        sizes, late = list(SIZES[1:]), results[1:]
        over = exponent(sizes, [r.over for r in late])
        own = exponent(sizes, [r.own for r in late])
        cells = "".join(f"{'plain' if r.reason else f'{r.over:.1f}':>8}" for r in results)
        print(f"{shape:24}{cells}{over:10.2f}{own:12.2f}{results[-1].operators:11}", flush=True)
        for reason in dict.fromkeys(r.reason for r in results if r.reason):
            print(f"  plain: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=("conformance", "growth"))
    given = parser.parse_args()
    if given.only != "growth":
        print_conformance(conformance(given.rounds))
    if given.only != "conformance":
        print_growth(max(3, given.rounds // 3))


if __name__ == "__main__":
    main()
