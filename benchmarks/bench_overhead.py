"""What does the engine itself cost, with a model that costs nothing?

Run with ``python -m pytest benchmarks/bench_overhead.py`` (pytest-benchmark prints the table and
the ratios between the rows of a group), and ``python benchmarks/bench_overhead.py`` for the ratios
in one interleaved run and for the memory of 5,000,000 rows.

1,000,000 rows, 1,000 distinct texts of about 55 characters. The stock functions do what one writes
without an engine: a Python function of DataFusion's that goes through its rows.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import SessionContext, udf

import blendfusion as bf
from blendfusion.udfs.evaluate.distinct import encode

ROWS = 1_000_000
DISTINCT = 1_000
LIKE = "SELECT count(*) FROM t WHERE x LIKE '%7 of%'"
OURS = "SELECT count(*) FROM t WHERE llm_filter('Is there a seven?', x)"
LOOP = "SELECT count(*) FROM t WHERE loop(x)"
PER_ROW = "SELECT count(*) FROM t WHERE per_row(x)"


def holds(text: str) -> bool:
    return "7 of" in text


def table(rows: int) -> pa.Table:
    rng = random.Random(1)
    texts = [f"Customer note number {i} of the set, received by mail." for i in range(DISTINCT)]
    picks = pa.array([rng.randrange(DISTINCT) for _ in range(rows)], pa.int32())
    return pa.table({"id": pa.array(range(rows)), "x": pa.array(texts).take(picks)})


def session(data: pa.Table) -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: holds(str(call.values[0]))), progress="off")
    made.register_record_batches("t", [data.to_batches(max_chunksize=65_536)])
    _stock(made, data)
    return made


def _stock(context: SessionContext, data: pa.Table) -> None:
    model = bf.ScriptedModel(lambda call: holds(str(call.values[0])))
    task = bf.Task("llm_filter", "Is there a seven?", bf.Constraint("boolean"), ("x",))

    def loop(column: pa.Array) -> pa.Array:
        return pa.array([holds(value.as_py()) for value in column])

    def per_row(column: pa.Array) -> pa.Array:
        return pa.array([model.answer(task, [(v.as_py(),)])[0].text == "true" for v in column])

    for name, function in (("loop", loop), ("per_row", per_row)):
        context.register_udf(udf(function, [pa.string()], pa.bool_(), "stable", name))


def count(context: Any, sql: str) -> int:
    if isinstance(context, bf.Session):
        context.clear_cache()  # every run asks all 1,000 values
    return int(context.sql(sql).to_arrow_table().column(0)[0].as_py())


@pytest.fixture(scope="module")
def context() -> bf.Session:
    return session(table(ROWS))


@pytest.mark.benchmark(group="one predicate over 1,000,000 rows")
@pytest.mark.parametrize(
    "sql", [LIKE, OURS, LOOP], ids=["built-in LIKE", "llm_filter", "stock loop"]
)
def test_overhead(benchmark: Any, context: bf.Session, sql: str) -> None:
    expected = count(context, LIKE)
    assert benchmark(count, context, sql) == expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--memory", action="store_true", help="only: peak memory of 5,000,000 rows")
    parser.add_argument("--parts", action="store_true", help="only: what no engine can leave out")
    arguments = parser.parse_args()
    if arguments.memory:
        _memory()
        return
    if arguments.parts:
        _parts(arguments.rounds)
        return
    context = session(table(ROWS))
    # In pairs, so that a noisy neighbour disturbs both; the slow loops apart from the fast ones.
    like, ours = _pairs(context, LIKE, OURS, arguments.rounds)
    again, loop = _pairs(context, OURS, LOOP, max(3, arguments.rounds // 5))
    per_row = _seconds(lambda: count(context, PER_ROW))
    print(f"{'query over 1,000,000 rows, 1,000 distinct':44} {'median ms':>10} {'min ms':>8}")
    for name, taken in (
        ("built-in LIKE", like),
        ("llm_filter, beside LIKE", ours),
        ("llm_filter, beside the stock function", again),
        ("stock function, bare loop", loop),
        ("stock function, model asked per row", [per_row]),
    ):
        print(f"{name:44} {statistics.median(taken) * 1e3:10.1f} {min(taken) * 1e3:8.1f}")
    print(f"llm_filter / LIKE: {_ratio(ours, like)}")
    print(f"stock function, bare loop / llm_filter: {_ratio(loop, again)}")
    print(
        f"stock function, model asked per row / llm_filter: {per_row / statistics.median(again):.0f}"
    )
    subprocess.run([sys.executable, __file__, "--memory"], check=True)


def _parts(rounds: int) -> None:
    """The parts of such a query, alternately in one run: least time and CPU time of all threads."""
    data = table(ROWS)
    context, few = session(data), session(data.slice(0, 10))
    column = pa.chunked_array([b.column("x") for b in data.to_batches(max_chunksize=65_536)])
    codes = pa.array(encode(column)[1])
    answers = pa.array([holds(text or "") for text in encode(column)[0]])
    runs: dict[str, Callable[[], object]] = {
        "built-in LIKE": partial(count, context, LIKE),
        "fetch the column's batches": context.sql("SELECT x FROM t").collect,
        "number the distinct texts (dictionary_encode)": lambda: encode(column),
        "an answer for each row, and their count": lambda: pc.sum(answers.take(codes)),
        "plan and run the query over ten rows": partial(count, few, OURS),
        "llm_filter, 1,000 values asked": partial(count, context, OURS),
    }
    least = dict.fromkeys(runs, (math.inf, math.inf))
    for _ in range(rounds):
        for name, run in runs.items():
            start = process_time()
            wall = _seconds(run)
            taken = wall, process_time() - start
            least[name] = min(least[name][0], taken[0]), min(least[name][1], taken[1])
    like, *parts, _ = least.values()
    rows = {**least, "the four parts": tuple(map(sum, zip(*parts, strict=True)))}
    print(f"{'':48} {'ms':>6} {'LIKE':>5} {'CPU ms':>7} {'LIKE':>5}")
    for name, (wall, cpu) in rows.items():
        ratios = wall / like[0], cpu / like[1]
        print(f"{name:48} {wall * 1e3:6.1f} {ratios[0]:5.2f} {cpu * 1e3:7.1f} {ratios[1]:5.2f}")


def _pairs(context: bf.Session, first: str, second: str, rounds: int) -> tuple[list[float], ...]:
    """The seconds of two queries, run one after the other ``rounds`` times."""
    pairs = [
        [_seconds(partial(count, context, sql)) for sql in (first, second)] for _ in range(rounds)
    ]
    return tuple(map(list, zip(*pairs, strict=True)))


def _ratio(slow: list[float], fast: list[float]) -> str:
    median = statistics.median(s / f for s, f in zip(slow, fast, strict=True))
    return f"{median:.2f} (median of pairs), {min(slow) / min(fast):.2f} (of the minima)"


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


def _memory() -> None:
    data = table(5_000_000)
    context = session(data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counted = count(context, OURS)
    streamed = sum(
        batch.to_pyarrow().num_rows
        for batch in context.sql("SELECT id, x FROM t WHERE llm_filter('Is there a seven?', x)")
    )
    assert counted == streamed
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"5,000,000 rows: peak {after / 1e6:.2f} GB, of which the table itself {before / 1e6:.2f} GB"
    )


if __name__ == "__main__":
    main()
