"""How often do the bounds of estimates hold, and how many rows are asked about?

    python benchmarks/bench_error_bars.py [--runs 1000]

Each line is one size of group and one share of yes answers; each run draws a group, and estimates it
within 0.02 with confidence 0.95: the number of yes answers, the sum of a number that is 1, 2, 5, 10
or 40 over these, and the mean of a score from 0 to 10 (normal, deviation 2). "held" is the share of
runs whose bounds contain the result of all answers, "asked" the mean number of rows, and "of textbook"
that number as a part of the mean size that textbooks give: (1.96 s / half of the width)² for the
deviation s of what a row adds, with the correction for the size of the group. The groups of many runs
are those of one query. Rows of equal texts are sampled as others are, and answered once, so that many
runs take little time."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import blendfusion as bf

SIZES = (20, 200, 2_000, 20_000, 100_000)
SHARES = (0.01, 0.1, 0.3, 0.5)
STATISTICS = {
    "count": "count(*) FILTER (WHERE llm_filter('f', x))",
    "sum": "sum(p) FILTER (WHERE llm_filter('f', x))",
    "avg": "avg(llm_score('s', x))",
}
_MOST_ROWS = 2_000_000
"""Rows of one query."""


def groups(size: int, share: float, runs: int) -> Iterator[pa.Table]:
    """Tables of groups, as many as ``runs`` in all. The answers stand in the texts."""
    at_once = max(1, _MOST_ROWS // size)
    for start in range(0, runs, at_once):
        n = min(at_once, runs - start)
        source = np.random.default_rng(1_000 * size + start + round(100 * share))
        yes = np.zeros((n, size), dtype=bool)
        for row in yes:
            row[source.permutation(size)[: max(1, round(size * share))]] = True
        score = np.clip(source.normal(10 * share, 2, n * size), 0, 10).round(1)
        columns = {
            "g": np.repeat(np.arange(n), size),
            "p": source.choice([1, 2, 5, 10, 40], n * size),
            "yes": yes.ravel(),
            "score": score,
        }
        texts = pa.array([f"{y} {s / 10}" for y in (0, 1) for s in range(101)])
        text = 101 * yes.ravel() + np.rint(10 * score).astype(np.int64)
        yield pa.table({**columns, "x": texts.take(pa.array(text))})


def answer(call: bf.Request) -> bool | float:
    yes, score = str(call.values[0]).split()
    return yes == "1" if call.constraint.kind == "boolean" else float(score)


def added(name: str, table: pa.Table, size: int) -> np.ndarray:
    """What each row adds to the statistic of its group, a group a line."""
    yes, score, p = (table[column].to_numpy() for column in ("yes", "score", "p"))
    values = {"count": yes.astype(float), "sum": p * yes, "avg": score}[name]
    return np.asarray(values.reshape(-1, size))


def textbook(name: str, table: pa.Table, size: int) -> np.ndarray:
    """The size of a sample of each group, by textbooks."""
    weights = table["p"].to_numpy().reshape(-1, size).mean(axis=1)
    half = 0.02 * {"count": 1.0, "sum": weights, "avg": 10.0}[name]
    n = (1.96 * added(name, table, size).std(axis=1) / half) ** 2
    return np.asarray(n / (1 + n / size))


def measured(name: str, size: int, share: float, runs: int) -> str:
    held = questions = needed = 0.0
    for seed, table in enumerate(groups(size, share, runs)):
        session = bf.connect(bf.ScriptedModel(answer), cache=None, progress="off")
        session.from_arrow(table, name="t")
        sql = f"SELECT g, {STATISTICS[name]} AS v FROM t GROUP BY g"
        frame = session.sql(sql, approximate=bf.Within(0.02, seed=seed))
        frame.collect()
        own = added(name, table, size)
        truth, bounds = own.mean(axis=1) if name == "avg" else own.sum(axis=1), frame.bounds()
        needed += textbook(name, table, size).sum()
        held += len(truth) - bounds.num_rows
        questions += size * (len(truth) - bounds.num_rows)
        if bounds.num_rows:
            right = truth[bounds["t.g"].to_numpy()]
            room = 1e-9 * np.abs(right)
            low, high = bounds["low"].to_numpy(), bounds["high"].to_numpy()
            held += ((low <= right + room) & (right <= high + room)).sum()
            questions += bounds["asked"].to_numpy().sum()
    return f"{held / runs:8.3f}{questions / runs:9.0f}{questions / needed:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="runs a line")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES, help="sizes of groups")
    parser.add_argument("--shares", type=float, nargs="*", default=SHARES, help="of yes answers")
    parser.add_argument("--statistics", nargs="*", default=[*STATISTICS], help="some of these")
    parser.add_argument("--most-rows", type=int, default=10**9, help="rows of all runs of a line")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'rows':>8}{'share':>6}"
        + "".join(f"{n:>9}: held, asked, of textbook" for n in arguments.statistics)
    )
    for size in arguments.sizes:
        for share in arguments.shares:
            runs = min(arguments.runs, max(1, arguments.most_rows // size))
            line = "   ".join(measured(name, size, share, runs) for name in arguments.statistics)
            print(f"{size:8,}{share:6}   {line}   ({runs:,} runs)", flush=True)


if __name__ == "__main__":
    main()
