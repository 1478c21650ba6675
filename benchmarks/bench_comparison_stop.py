"""What is saved where an answer ends as soon as the comparisons with it are decided?

    python benchmarks/bench_comparison_stop.py [--data FOLDER] [--rows 60] [--model
    smollm2|gemma|FILE]

One query a line, over the first rows of open slices of public sets (restaurant8k, ag_news). Each is
run with and without the stop, in pieces that take turns, so that other load on the machine falls on
both; the rows that come out must be the same.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf

BOOKINGS, NEWS = "restaurant8k/utterances.parquet", "ag_news/articles.parquet"
QUERIES = (
    (BOOKINGS, "llm_int('For how many people?', text) > 4"),
    (BOOKINGS, "llm_int('For how many people?', text) BETWEEN 2 AND 3"),
    (BOOKINGS, "llm_map('Who is speaking?', text) = 'a customer'"),
    (NEWS, "llm_date('When did it happen?', text) >= DATE '2004-01-01'"),
    (NEWS, "llm_map('Which company is it about?', text) = 'Google'"),
    (NEWS, "llm_map('Which company is it about?', text) LIKE 'The %'"),
    (NEWS, "llm_map('Which company is it about?', text) LIKE '%Google%'"),
)
PIECE = 10
"""Rows that are asked about before the other way has its turn."""


def texts(data: Path, name: str, rows: int) -> list[str]:
    table = pq.read_table(data / name).slice(0, rows).to_pylist()
    return [row.get("text") or f"{row['title']}. {row['description']}" for row in table]


class Way:
    """One way to run queries, and what it spent."""

    def __init__(self, model: str, rules_off: str) -> None:
        self._session = bf.connect(model, cache=None, progress="off")
        self._session.sql(f"SET blendfusion.rules_off = '{rules_off}'")
        self.rows: list[int] = []
        self.completion = self.evaluated = 0
        self.seconds = 0.0

    def begin(self, condition: str) -> None:
        """Forget what was spent; load the weights and compute what all questions begin with."""
        self._ask(condition, ["Nothing of interest."], 0)
        self.rows, self.completion, self.evaluated, self.seconds = [], 0, 0, 0.0

    def run(self, condition: str, piece: Sequence[str], first: int) -> None:
        started = time.perf_counter()
        self._ask(condition, piece, first)
        self.seconds += time.perf_counter() - started

    def _ask(self, condition: str, piece: Sequence[str], first: int) -> None:
        table = pa.table({"id": range(first, first + len(piece)), "text": piece})
        self._session.register_record_batches("data", [table.to_batches()])
        frame = self._session.sql(f"SELECT id FROM data WHERE {condition} ORDER BY id")
        self.rows += frame.to_pydict()["id"]
        self.completion += frame.trace.usage.completion_tokens
        self.evaluated += frame.trace.usage.evaluated_tokens
        self._session.deregister_table("data")
        self._session.clear_cache()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("BLENDFUSION_DATA"),
        help="the folder with the sets (default: the environment variable BLENDFUSION_DATA)",
    )
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data is missing: where the data sets are")
    stop, full = Way(given.model, ""), Way(given.model, "comparison_stop")
    print(f"{given.model}, {given.rows} rows a query; tokens a row without the stop and with it")
    print(f"{'condition':62} {'written':>13} {'computed':>13} {'time':>6} {'rows':>5}")
    for name, condition in QUERIES:
        column = texts(given.data, name, given.rows)
        for way in (full, stop):
            way.begin(condition)
        for first in range(0, len(column), PIECE):
            turns = (full, stop) if first // PIECE % 2 else (stop, full)
            for way in turns:
                way.run(condition, column[first : first + PIECE], first)
        if stop.rows != full.rows:
            raise SystemExit(f"{condition}: other rows with the stop: {stop.rows}, {full.rows}")
        written, computed = (
            f"{a / len(column):5.1f} → {b / len(column):5.1f}"
            for a, b in ((full.completion, stop.completion), (full.evaluated, stop.evaluated))
        )
        ratio = stop.seconds / full.seconds
        print(f"{condition:62} {written} {computed} {ratio:6.2f} {len(stop.rows):5}", flush=True)


if __name__ == "__main__":
    main()
