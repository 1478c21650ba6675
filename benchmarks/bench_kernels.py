"""What could compiled kernels gain where 1,000,000 distinct values all have stored answers?

    python benchmarks/bench_kernels.py [--rows 1000000] [--rounds 3]

A query over distinct values, of one column and of two, whose answers are in memory or in a file.
The CPU time of each part that a kernel could take over, and Amdahl's bound: how many times faster
the query would be if that part took no time at all. A kernel stays in native/ only if the query
gains three times by it."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa

import blendfusion as bf
from blendfusion.models.stores.key import Keys
from blendfusion.models.stores.memory import AnswerStore, MemoryStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.evaluate import evaluate

QUERIES = {
    "one column": "SELECT count(*) FROM t WHERE llm_filter('Is there a seven?', x)",
    "two columns": "SELECT count(*) FROM t WHERE llm_filter('Is there a seven?', x, y)",
}
PARTS: dict[str, tuple[tuple[object, str], ...]] = {
    "distinct values and their places": ((evaluate, "distinct"),),
    "keys of stored answers": ((Keys, "of_each"),),
    "look-ups and all that surrounds them": ((Dispatcher, "ask"),),
    "answers to Arrow": ((evaluate, "outcomes"), (evaluate, "arrow")),
}
"""What is timed, and what does it; parts within others are taken from those."""


def table(rows: int) -> pa.Table:
    texts = [f"Customer note number {i} of the set, received by mail." for i in range(rows)]
    return pa.table({"x": texts, "y": [f"branch {i % 1000}" for i in range(rows)]})


@contextmanager
def timed(seconds: dict[str, float]) -> Iterator[None]:
    """Meanwhile each of PARTS adds its time, less that of the parts within it."""
    within: list[float] = []

    def around(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            within.append(0.0)
            start = process_time()
            try:
                return function(*args, **kwargs)
            finally:
                taken = process_time() - start
                seconds[name] += taken - within.pop()
                if within:
                    within[-1] += taken

        return run

    with ExitStack() as undo:
        for name, functions in PARTS.items():
            for owner, attribute in functions:
                function = getattr(owner, attribute)
                setattr(owner, attribute, around(name, function))
                undo.callback(setattr, owner, attribute, function)
        yield


def measure(query: str, store: AnswerStore, data: pa.Table, rounds: int) -> None:
    model = bf.ScriptedModel(lambda call: "7" in str(call.values[0]), fingerprint="benchmark")
    session = bf.connect(model, cache=store, progress="off")
    session.register_record_batches("t", [data.to_batches(max_chunksize=65_536)])

    def run() -> float:
        start = process_time()
        frame = session.sql(query)
        frame.to_arrow_table()
        taken = process_time() - start
        asked.append(frame.trace.usage.values)
        return taken

    asked: list[int] = []
    run()
    plain, instrumented = [], []
    parts: defaultdict[str, float] = defaultdict(float)
    for _ in range(rounds):  # the clocks themselves cost nothing that is seen
        plain.append(run())
        with timed(parts):
            instrumented.append(run())
    assert set(asked[1:]) == {0}, "every value was to be stored"
    whole = statistics.median(plain)
    print(f"  the query {whole:8.2f} s of CPU time (least {min(plain):.2f})")
    shares = {name: taken / sum(instrumented) for name, taken in parts.items()}
    shares["all else"] = 1 - sum(shares.values())
    for name, share in shares.items():
        print(f"  {name:40} {share:6.1%}   bound {1 / (1 - share):5.2f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    data = table(arguments.rows)
    for columns, query in QUERIES.items():
        with tempfile.TemporaryDirectory() as folder:
            stores: dict[str, AnswerStore] = {
                "memory": MemoryStore(),
                "a file": SqliteStore(Path(folder) / "answers.sqlite"),
            }
            for where, store in stores.items():
                print(f"{arguments.rows:,} distinct values of {columns}, answers in {where}")
                measure(query, store, data, arguments.rounds)
                store.close()


if __name__ == "__main__":
    main()
