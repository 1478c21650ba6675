"""What does a Session cost on queries that ask nothing: TPC-H, against plain DataFusion?

    python benchmarks/bench_tpch.py [--scale 0.2] [--rounds 20]

Each of the 22 queries runs alternately in a plain DataFusion context and in a Session over the same
Parquet files, from the SQL text to the Arrow table; the ratio is that of the medians. Beside it, what the
query takes with its model predicate (a scripted model), and how many values that asks.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from datafusion import SessionContext

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import tpch
from scripts import Counted, spoken


def seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def alternating(
    first: Callable[[], object], second: Callable[[], object], rounds: int
) -> tuple[list[float], list[float]]:
    """The seconds of both, each round in the other order, so that neither always runs warm."""
    taken: tuple[list[float], list[float]] = ([], [])
    first(), second()
    for i in range(rounds):
        pair = ((0, first), (1, second))
        for which, run in pair if i % 2 == 0 else reversed(pair):
            taken[which].append(seconds(run))
    return taken


def compare(folder: Path, rounds: int) -> None:
    plain, counted = SessionContext(), Counted(spoken)
    for context in (plain, counted.session):
        tpch.register(context, folder)
    print(f"{'query':6} {'plain ms':>9} {'session ms':>10} {'ratio':>6}", end="")
    print(f" {'with a call ms':>15} {'values asked':>13}")
    totals = [0.0, 0.0]
    ratios = []
    placed = tpch.placed()
    for name, sql in tpch.queries().items():
        taken = alternating(
            lambda sql=sql: plain.sql(sql).to_arrow_table(),
            lambda sql=sql: counted.session.sql(sql).to_arrow_table(),
            rounds,
        )
        medians = [statistics.median(of) for of in taken]
        totals = [total + median for total, median in zip(totals, medians, strict=True)]
        ratios.append(medians[1] / medians[0])
        asked = counted.asked(placed[name].sql)
        counted.session.clear_cache()
        asking = seconds(lambda sql=placed[name].sql: counted.rows(sql))
        print(
            f"{name:6} {medians[0] * 1e3:9.1f} {medians[1] * 1e3:10.1f} {ratios[-1]:6.3f}"
            f" {asking * 1e3:15.1f} {asked:13,}",
            flush=True,
        )
    print(f"{'all':6} {totals[0] * 1e3:9.1f} {totals[1] * 1e3:10.1f} {totals[1] / totals[0]:6.3f}")
    print(f"ratios: median {statistics.median(ratios):.3f}, largest {max(ratios):.3f}")


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
