"""One segment of stored answers: a table ordered by key, and the file that holds it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from blendfusion.models.stores.entry import Row
from blendfusion.models.stores.key import KEY_BYTES

SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary(KEY_BYTES), nullable=False),
        pa.field("text", pa.string()),
        pa.field("finish", pa.string(), nullable=False),
        pa.field("logprob", pa.float64()),
        pa.field("used", pa.int64(), nullable=False),
        pa.field("mark", pa.int64(), nullable=False),
    ]
)
_SIZES = 4
"""Bits: a segment of the next size class has about sixteen times the rows."""


class BrokenSegment(Exception):
    """The bytes are not those that were written under this name."""


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of the name of a file: names in order are segments by age."""

    milliseconds: int
    rows: int
    random: str
    digest: str

    def __str__(self) -> str:
        return f"{self.milliseconds:013d}-{self.rows}-{self.random}-{self.digest}.parquet"

    @classmethod
    def parse(cls, name: str) -> Name:
        """Raises BrokenSegment for a name of something else."""
        try:
            milliseconds, rows, random, digest = name.removesuffix(".parquet").split("-")
            return cls(int(milliseconds), int(rows), random, digest)
        except ValueError as problem:
            raise BrokenSegment from problem

    @property
    def size_class(self) -> int:
        """Segments of one class have about the same number of rows."""
        return (self.rows.bit_length() - 1) // _SIZES


class Segment:
    """Answers in the order of their keys. ``begun``: when the first of them came."""

    def __init__(self, table: pa.Table, begun: float = 0.0) -> None:
        self.table = table
        self.begun = begun

    @classmethod
    def of(cls, rows: Sequence[Row], begun: float) -> Segment:
        """A segment of these rows, which are ordered by their distinct keys."""
        columns = [
            pa.array(c, t) for c, t in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
        ]
        return cls(pa.Table.from_arrays(columns, schema=SCHEMA), begun)

    @classmethod
    def read(cls, name: str, data: bytes) -> Segment:
        """The segment in a file. Raises BrokenSegment."""
        known = Name.parse(name)
        if _digest(data) != known.digest:
            raise BrokenSegment
        try:
            table = pq.read_table(pa.BufferReader(data)).cast(SCHEMA)
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, MemoryError) as problem:
            raise BrokenSegment from problem
        return cls(table.combine_chunks(), known.milliseconds / 1000)

    def to_file(self) -> tuple[str, bytes]:
        """The name of a new file, and its bytes."""
        sink = pa.BufferOutputStream()
        pq.write_table(self.table, sink, compression="zstd")
        data = sink.getvalue().to_pybytes()
        # Two processes that merge the same at once write two files.
        name = Name(int(self.begun * 1000), len(self.table), secrets.token_hex(4), _digest(data))
        return str(name), data

    @cached_property
    def _keys(self) -> NDArray[np.bytes_]:
        return keys_of(self.table)

    def among(self, keys: Sequence[bytes]) -> list[Row]:
        """The rows of those of ``keys`` that are here."""
        here = self._keys
        if not len(here):
            return []
        wanted = np.array(keys, dtype=here.dtype)
        places = np.searchsorted(here, wanted)
        places = places[(places < len(here)) & (here[np.minimum(places, len(here) - 1)] == wanted)]
        return _rows(self.table.take(pa.array(places))) if len(places) else []

    def rows(self) -> list[Row]:
        """All rows, in order."""
        return _rows(self.table)


def merge_segments(segments: Sequence[Segment]) -> pa.Table:
    """The answers of segments, the oldest first, in the order of their keys; of equal keys the
    oldest stays."""
    table = pa.concat_tables([SCHEMA.empty_table(), *(s.table for s in segments)]).combine_chunks()
    _, first = np.unique(keys_of(table), return_index=True)  # ordered, and the first of equal ones
    return table.take(pa.array(first)).combine_chunks()


def keys_of(table: pa.Table) -> NDArray[np.bytes_]:
    """The keys as numpy compares them: bytes of one length."""
    chunks = table["key"].combine_chunks()
    array: Any = chunks.chunk(0) if isinstance(chunks, pa.ChunkedArray) else chunks
    dtype = np.dtype(f"S{KEY_BYTES}")
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(
        array.buffers()[1], dtype, count=len(array), offset=array.offset * KEY_BYTES
    )


def _rows(table: pa.Table) -> list[Row]:
    columns = [column.to_pylist() for column in table.columns]
    return cast("list[Row]", list(zip(*columns, strict=True)))


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
