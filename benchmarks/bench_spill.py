"""Measures the memory of a query over many distinct short values, each asked once.

python benchmarks/bench_spill.py 10_000_000 --spill-above 256 --chunk-rows 262_144
"""

from __future__ import annotations

import argparse
import itertools
import resource
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf
from blendfusion.models.stores.answer_spill import AnswerSpill
from blendfusion.types import Request

_AT_ONCE = 100_000


def main() -> None:
    """Run one query, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("values", type=int)
    parser.add_argument("--twice", action="store_true", help="each value stands in two rows")
    parser.add_argument("--spill-above", type=int, default=1024)
    parser.add_argument("--chunk-rows", type=int, default=1_048_576)
    parser.add_argument("--trace-calls", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "t.parquet", given.values, 2 if given.twice else 1)
        marks: list[float] = []  # CPU seconds at every tenth of the values
        calls = itertools.count()

        def answer(call: Request) -> bool:
            if next(calls) % -(-given.values // 10) == 0:
                marks.append(time.process_time())
            return len(call.values[0] or "") % 2 == 0

        model = bf.ScriptedModel(answer, fingerprint="even", batch_size=16_384)
        model.calls = deque(maxlen=10)  # type: ignore[assignment]  # it would keep all requests
        rooms: list[tuple[AnswerSpill, object]] = []
        answers = AnswerSpill.answers

        def noted(room: AnswerSpill) -> object:
            rooms.append((room, answers(room)))  # which keeps their files open
            return rooms[-1][1]

        AnswerSpill.answers = noted  # type: ignore[method-assign, assignment]
        with bf.connect(
            model,
            cache=folder / "answers.sqlite",
            cache_size=100_000,
            progress="off",
            spill_above=given.spill_above,
            spill_folder=name,
            chunk_rows=given.chunk_rows,
            trace_calls=given.trace_calls,
        ) as session:
            session.register_parquet("t", str(folder / "t.parquet"))
            frame = session.sql("SELECT count(*) AS n FROM t WHERE llm_filter('Even?', x)")
            before, start, began = _peak_mb(), time.perf_counter(), time.process_time()
            (row,) = frame.to_pylist()
            seconds, ended = time.perf_counter() - start, time.process_time()
            work = ended - began
            spilled = max((room.spilled_bytes for room, _ in rooms), default=0)
            stored = (folder / "answers.sqlite").stat().st_size
        asked = frame.trace.usage.values
        print(
            f"{asked:,} values asked, {row['n']:,} rows; {seconds:,.0f} s, "
            f"{work / asked * 1e6:.1f} µs of CPU a value; peak memory {_peak_mb():,.0f} MB "
            f"({before:,.0f} before the query); {spilled / asked:.0f} bytes a value in "
            f"temporary files, {stored / asked:.0f} in the file of stored answers"
        )
        tenths = [b - a for a, b in itertools.pairwise([*marks, ended])]
        shown = ", ".join(f"{tenth * 10 / asked * 1e6:.1f}" for tenth in tenths)
        print(
            f"µs of CPU a value in each tenth: {shown}; last over first {tenths[-1] / tenths[0]:.2f}"
        )


def _write(path: Path, values: int, times: int) -> None:
    writer = None
    for _ in range(times):
        for start in range(0, values, _AT_ONCE):
            numbers = range(start, min(values, start + _AT_ONCE))
            table = pa.table({"x": [f"value {n * 2654435761 % 2**32:x}" for n in numbers]})
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    assert writer is not None
    writer.close()


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    main()
