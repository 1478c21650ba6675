"""What does a Session cost on queries that ask nothing: TPC-H, against plain DataFusion?

    python benchmarks/bench_tpch.py [--scale 0.2] [--rounds 20]

Each of the 22 queries runs alternately in a plain DataFusion context and in a Session over the same
Parquet files, from the SQL text to the Arrow table; the ratio is that of the medians, by the clock
and of CPU time, which a busy machine disturbs less. Beside it, what the query takes with its model
predicate (a scripted model), and how many values that asks."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import pyarrow as pa
from datafusion import SessionContext

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import tpch
from scripts import Counted, spoken


@dataclass
class Taken:
    """Seconds of every run of one query in one context, by the clock and of the CPU."""

    clock: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def run(self, what: Callable[[], object]) -> None:
        clock, cpu = perf_counter(), process_time()
        what()
        self.clock.append(perf_counter() - clock)
        self.cpu.append(process_time() - cpu)

    def milliseconds(self) -> float:
        return statistics.median(self.clock) * 1e3


def alternating(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[Taken, Taken]:
    """What both take, each round in the other order, so that neither always runs warm."""
    first(), second()
    taken = (Taken(), Taken())
    pairs = list(zip(taken, (first, second), strict=True))
    for _ in range(rounds):
        pairs.reverse()
        for of, run in pairs:
            of.run(run)
    return taken


def _table(context: SessionContext, sql: str) -> pa.Table:
    return context.sql(sql).to_arrow_table()


def compare(folder: Path, rounds: int) -> None:
    plain, counted = SessionContext(), Counted(spoken)
    for context in (plain, counted.session):
        tpch.register(context, folder)
    print(f"{'query':6} {'plain ms':>9} {'session ms':>10} {'ratio':>6} {'of CPU':>7}", end="")
    print(f" {'with a call ms':>15} {'values asked':>13}")
    by_clock, by_cpu = [], []
    placed = tpch.placed()
    for name, sql in tpch.queries().items():
        own, ours = alternating(
            partial(_table, plain, sql),
            partial(_table, counted.session, sql),
            rounds,
        )
        by_clock.append(ours.milliseconds() / own.milliseconds())
        by_cpu.append(statistics.median(ours.cpu) / statistics.median(own.cpu))
        asked = counted.asked(placed[name].sql)
        counted.session.clear_cache()
        asking = Taken()
        asking.run(partial(counted.rows, placed[name].sql))
        print(
            f"{name:6} {own.milliseconds():9.1f} {ours.milliseconds():10.1f} "
            f"{by_clock[-1]:6.3f} {by_cpu[-1]:7.3f} {asking.milliseconds():15.1f} {asked:13,}",
            flush=True,
        )
    for name, ratios in (("by the clock", by_clock), ("of the CPU", by_cpu)):
        print(f"ratios {name}: median {statistics.median(ratios):.3f}, largest {max(ratios):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.2, help="gigabytes of data, about")
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    if tpch.generator() is None:
        parser.error("tpchgen-cli is missing: pip install tpchgen-cli")
    with tempfile.TemporaryDirectory() as folder:
        tpch.generate(Path(folder), given.scale)
        compare(Path(folder), given.rounds)


if __name__ == "__main__":
    main()
