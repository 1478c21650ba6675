"""A bounded sample of a stream of batches; the whole stream if it is small."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from blendfusion.datafusion.arrow_layouts import plain_batch, plain_schema

MOST_ROWS = 100_000
MOST_BYTES = 64 * 1024 * 1024
SAMPLE_SHARE = 0.5
"""Maximum share of the bounds that the sample of a larger stream has."""
MOST_SECONDS = 0.2
"""Maximum seconds for reading the rest of a large stream."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Sampled rows of a stream, and the number of its rows. Text is in a layout that Arrow can
    filter."""

    table: pa.Table
    rows: int
    """Rows seen; all rows of the stream if ``counted``."""
    counted: bool

    @property
    def complete(self) -> bool:
        return self.counted and self.table.num_rows == self.rows

    @property
    def scale(self) -> float:
        """Rows per sampled row, at least 1."""
        return self.rows / self.table.num_rows if self.table.num_rows else 1.0

    def __str__(self) -> str:
        of = f"{self.rows:,}" if self.counted else f"more than {self.rows:,}"
        return f"sample of {self.table.num_rows:,} of {of} rows"


def first_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, most_rows: int = MOST_ROWS
) -> Sample:
    """The first ``most_rows`` rows of the batches, or fewer if those exceed ``MOST_BYTES``; no
    further batch is read."""
    schema = plain_schema(schema)
    kept: list[pa.RecordBatch] = []
    room, size = most_rows, 0
    for batch in batches:
        if room == 0 or size > MOST_BYTES:
            rows = sum(b.num_rows for b in kept) + batch.num_rows
            return Sample(pa.Table.from_batches(kept, schema), rows, counted=False)
        if batch.num_rows > room:
            kept.append(plain_batch(batch.slice(0, room), schema))
            rows = sum(b.num_rows for b in kept) + batch.num_rows - room
            return Sample(pa.Table.from_batches(kept, schema), rows, counted=False)
        kept.append(plain_batch(batch, schema))
        room -= batch.num_rows
        size += kept[-1].nbytes
    return Sample(pa.Table.from_batches(kept, schema), most_rows - room, counted=True)


def any_rows(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    *,
    most_rows: int = MOST_ROWS,
    most_bytes: int = MOST_BYTES,
    seconds: float = MOST_SECONDS,
) -> Sample:
    """All rows if they are at most ``most_rows`` and ``most_bytes``; else a uniform sample of the
    rows read (with a fixed seed). A large stream is read for at most ``seconds``."""
    schema = plain_schema(schema)
    chance = np.random.default_rng(0)
    kept: list[pa.RecordBatch] = []
    rows, kept_rows, kept_bytes, share = 0, 0, 0, 1.0
    deadline = float("inf")

    def part(batch: pa.RecordBatch, of: float) -> pa.RecordBatch:
        return batch.filter(pa.array(chance.random(batch.num_rows) < of))

    for batch in batches:
        rows += batch.num_rows
        new = plain_batch(batch, schema)
        kept.append(new if share == 1.0 else part(new, share))
        kept_rows += kept[-1].num_rows
        kept_bytes += kept[-1].nbytes
        bound = 1.0 if share == 1.0 else SAMPLE_SHARE
        if kept_rows > most_rows * bound or kept_bytes > most_bytes * bound:
            if share == 1.0:
                deadline = perf_counter() + seconds
            while kept_rows > most_rows * SAMPLE_SHARE or kept_bytes > most_bytes * SAMPLE_SHARE:
                share /= 2
                kept = [part(b, 0.5) for b in kept]
                kept_rows = sum(b.num_rows for b in kept)
                kept_bytes = sum(b.nbytes for b in kept)
        if perf_counter() > deadline:
            return Sample(pa.Table.from_batches(kept, schema), rows, counted=False)
    return Sample(pa.Table.from_batches(kept, schema), rows, counted=True)


def distinct_in_all(rows: float, sampled_rows: int, distinct: int, once: int) -> float:
    """Distinct values in ``rows`` rows, extrapolated from a sample of ``sampled_rows`` with
    ``distinct`` values, ``once`` of them in a single row.

    The estimator is Duj1 of Haas and Stokes (1998), as in PostgreSQL's ANALYZE. If all sampled
    values are distinct, all rows are; if none occurs once, the sample has all values.

    >>> distinct_in_all(1000, 100, 100, 100), distinct_in_all(1000, 100, 5, 0)
    (1000.0, 5.0)
    """
    if sampled_rows == 0 or rows <= sampled_rows:
        return float(distinct)
    return distinct * sampled_rows / (sampled_rows - once + once * sampled_rows / rows)
