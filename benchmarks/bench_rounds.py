"""How many rounds of requests do groups take until they are decided, and how much bookkeeping?

    python benchmarks/bench_rounds.py [--groups 8] [--rows 4000]
    python benchmarks/bench_rounds.py --bookkeeping [--groups 10000] [--rows 1000000]

A server with 32 requests in flight answers 32 values a round, of 50 ms, say: the time of a query is
that of its rounds, whatever else the machine does. "share" is the rounds as a part of those of all
values at once; it should be at most 1.3 where all values must be asked, and below 1 where half of
them are spared. ``--bookkeeping`` compares the CPU time and the peak of the memory of queries whose groups are bounded
with those of the same aggregates of a column; there are a hundred texts, so that answers take no
time. Last numbers in values_asked.md."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace

import pyarrow as pa
from bench_values_asked import SHAPES, F, S, yes_and_number

import blendfusion as bf
from blendfusion.models.protocol.abilities import Abilities

IN_FLIGHT = 32
BOUNDED = (
    f"SELECT g FROM t GROUP BY g HAVING count(*) FILTER (WHERE {F}) > 3",
    f"SELECT g FROM t GROUP BY g HAVING sum({S}) > 20",
    f"SELECT g FROM t GROUP BY g ORDER BY count(*) FILTER (WHERE {F}) DESC LIMIT 3",
    f"SELECT g, max({S}) AS v FROM t GROUP BY g",
    f"SELECT g FROM t GROUP BY g QUALIFY count(*) FILTER (WHERE {F}) > 0.001 * "
    f"sum(count(*) FILTER (WHERE {F})) OVER ()",
)
_COUNT = f"count(*) FILTER (WHERE {F})"
OF_ALL = (
    f"SELECT g FROM t GROUP BY g HAVING {_COUNT} > 0.05 * (SELECT {_COUNT} FROM t)",
    f"SELECT g FROM t GROUP BY g HAVING {_COUNT} > 0.12 * (SELECT {_COUNT} FROM t)",
    f"SELECT g FROM t GROUP BY g HAVING {_COUNT} > 0.3 * (SELECT {_COUNT} FROM t)",
    f"SELECT g, {_COUNT} * 1.0 / sum({_COUNT}) OVER () > 0.12 AS v FROM t GROUP BY g",
    f"SELECT g FROM t GROUP BY g QUALIFY {_COUNT} > 0.9 * max({_COUNT}) OVER ()",
    f"SELECT g FROM t GROUP BY g QUALIFY {_COUNT} < 0.5 * avg({_COUNT}) OVER ()",
    f"SELECT g FROM (SELECT g, {_COUNT} AS c, sum({_COUNT}) OVER () AS a FROM t GROUP BY g) "
    "ORDER BY c * 1.0 / a DESC LIMIT 2",
)
"""Comparisons of groups with values of all groups."""


def table(rows: int, groups: int, texts: int) -> pa.Table:
    ids = range(rows)
    columns = {"id": [*ids], "g": [i % groups for i in ids], "d": [i * 37 % 101 for i in ids]}
    columns |= {"p": [i * 13 % 50 for i in ids]}
    return pa.table({**columns, "x": [f"text {i // groups % texts}" for i in ids] if texts < rows
                     else [f"text {i}" for i in ids]})  # fmt: skip


def answer(call: bf.Request) -> bool | int:
    yes, number = yes_and_number(str(call.values[0]))
    return yes if call.constraint.kind == "boolean" else number


class Counted(bf.ScriptedModel):
    """A model that counts its rounds."""

    rounds = 0

    @property
    def abilities(self) -> Abilities:
        return replace(super().abilities, at_once=IN_FLIGHT)

    def answer(self, task, values):  # type: ignore[no-untyped-def]
        self.rounds += 1
        return super().answer(task, values)


def rounds(rows: pa.Table) -> None:
    worst_of_all, worst_of_half = 0.0, 0.0
    for sql in (*OF_ALL, *SHAPES):
        if "GROUP BY" not in sql:
            continue
        model = Counted(answer, batch_size=IN_FLIGHT)
        session = bf.connect(model, cache=None, progress="off")
        session.from_arrow(rows, name="t")
        frame = session.sql(sql)
        frame.collect()
        values, every = frame.trace.usage.values if frame.trace else 0, len(rows)
        share = model.rounds / -(-every // IN_FLIGHT)
        print(f"{values:7,}{model.rounds:6}{share:7.2f}  {sql}", flush=True)
        if values > 0.99 * every:
            worst_of_all = max(worst_of_all, share)
        elif values <= every / 2:
            worst_of_half = max(worst_of_half, share)
    print(
        f"at most {worst_of_all:.2f} where all are asked, {worst_of_half:.2f} where half are spared"
    )


def bookkeeping(rows: int, groups: int, sql: str) -> str:
    """The CPU seconds of a query and the megabytes by which it raises the peak of the memory, above
    those of the same aggregate of a column."""
    session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
    session.from_arrow(table(1_000, 10, 100), name="t")
    session.sql(sql).collect()  # imports what it needs
    session.from_arrow(table(rows, groups, 100), name="large")
    found = []
    for query in (sql.replace(F, "p % 3 = 0").replace(S, "p % 5"), sql):
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        session.sql(query.replace("FROM t", "FROM large")).to_arrow_table()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found.append((time.process_time() - start, (after - before) / 1024))
    (plain, room), (bounded, more) = found
    return (
        f"{plain:6.2f} s{room:6.0f} MB plain, {bounded:6.2f} s{more:6.0f} MB more bounded: "
        f"{bounded - plain:+.2f} s  {sql}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bookkeeping", action="store_true")
    parser.add_argument("--groups", type=int)
    parser.add_argument("--rows", type=int)
    args = parser.parse_args()
    if not args.bookkeeping:
        rounds(table(args.rows or 4_000, args.groups or 8, 10**9))
        return
    rows, groups = args.rows or 1_000_000, args.groups or 10_000
    if "BENCH_SQL" in os.environ:
        print(bookkeeping(rows, groups, os.environ["BENCH_SQL"]))
        return
    for sql in BOUNDED:  # a process each, for its own peak
        subprocess.run(
            [sys.executable, *sys.argv], env={**os.environ, "BENCH_SQL": sql}, check=True
        )


if __name__ == "__main__":
    main()
