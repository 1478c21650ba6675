"""Measures scans of ten million rows: of a table of SQLite or PostgreSQL, with the memory that they
take, and through Arrow Flight, beside the same frame in process.

python benchmarks/bench_remote.py sqlite --rows 10_000_000
python benchmarks/bench_remote.py postgresql://me@host/shop
python benchmarks/bench_remote.py flight
"""

from __future__ import annotations

import argparse
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import blendfusion as bf

_AT_ONCE = 500_000
_QUERY = "SELECT id, n, x FROM big.numbers"
_FILES = "SELECT id, n, x FROM numbers"


def main() -> None:
    """Run the scans of one source, each in a process of its own, and print what they took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", help="sqlite, flight, or the URL of a database of PostgreSQL")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--file", type=Path, help="the file of one scan (for this script itself)")
    given = parser.parse_args()
    if given.file is not None:
        _scan(given.source, given.file)
        return
    with tempfile.TemporaryDirectory() as name:
        if given.source == "flight":
            _flight(Path(name, "numbers.parquet"), given.rows)
        else:
            for rows in (given.rows // 10, given.rows):
                _remote(given.source, Path(name), rows)


def _remote(source: str, folder: Path, rows: int) -> None:
    """Scan so many rows of a database in a new process, whose peak memory is then its own."""
    url = _sqlite(folder, rows) if source == "sqlite" else _postgres(source, rows)
    command = [sys.executable, __file__, url, "--file", str(folder)]
    print(f"{rows:,} rows: ", end="", flush=True)
    subprocess.run(command, check=True)


def _scan(url: str, folder: Path) -> None:
    with bf.connect(None, cache=None) as session:
        session.attach(url, "big")
        before = _peak_mb()
        rows, seconds = _drained(lambda: _batches(session.sql(_QUERY)))
    print(
        f"{rows:,} read in {seconds:.1f} s, {rows / seconds / 1e6:.2f} million a second; peak memory "
        f"{_peak_mb():,.0f} MB, {before:,.0f} before the query"
    )


def _flight(file: Path, rows: int) -> None:
    """Make a table of a file's rows in process and over the loopback, in turns; the best of three."""
    import adbc_driver_flightsql.dbapi as adbc

    from blendfusion.services.server.listener import serving

    pq.write_table(pa.Table.from_batches(list(_rows(rows))), file)
    with bf.connect(None, cache=None, read_only=True) as session:
        session.register_parquet("numbers", str(file))
        server, _, address = serving(session)

        def fetched() -> Iterator[pa.RecordBatch]:
            with adbc.connect(address, autocommit=True) as connection, connection.cursor() as c:
                c.execute(_FILES)
                yield from c.fetch_arrow_table().to_batches()

        here, there = [], []
        for _ in range(3):
            here.append(_drained(lambda: session.sql(_FILES).to_arrow_table().to_batches()))
            there.append(_drained(fetched))
        server.shutdown()
    assert {count for count, _ in here + there} == {rows}
    inside, outside = (min(seconds for _, seconds in runs) for runs in (here, there))
    print(
        f"{rows:,} rows: {inside:.2f} s in process, {outside:.2f} s through Flight: "
        f"{inside / outside:.2f} of its speed"
    )


def _batches(frame: Any) -> Iterator[pa.RecordBatch]:
    return (batch.to_pyarrow() for batch in frame.execute_stream())


def _drained(batches: Callable[[], Iterable[pa.RecordBatch]]) -> tuple[int, float]:
    """The number of rows, and the seconds in which all were read."""
    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in batches())
    return rows, time.perf_counter() - start


def _rows(count: int) -> Iterator[pa.RecordBatch]:
    for first in range(0, count, _AT_ONCE):
        ids = np.arange(first, min(first + _AT_ONCE, count))
        texts = pa.array(ids % 100_000).cast(pa.string())
        yield pa.RecordBatch.from_arrays([ids, ids / 7, texts], names=["id", "n", "x"])


def _sqlite(folder: Path, rows: int) -> str:
    file = folder / f"big{rows}.db"
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE numbers (id INTEGER PRIMARY KEY, n REAL, x TEXT)")
    for batch in _rows(rows):
        values = zip(*(column.to_pylist() for column in batch.columns), strict=True)
        connection.executemany("INSERT INTO numbers VALUES (?, ?, ?)", values)
        connection.commit()
    connection.close()
    return f"sqlite:///{file}"


def _postgres(url: str, rows: int) -> str:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS numbers")
        connection.execute(
            "CREATE TABLE numbers AS SELECT i AS id, i / 7.0::double precision AS n, "
            f"(i % 100000)::text AS x FROM generate_series(0, {int(rows) - 1}) AS i"
        )
    return url


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
