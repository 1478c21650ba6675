"""Keeps the rows that the stages of a view's query gave, so that a refresh computes new ones alone.

A stage computes each of its rows from one row of its source. So the rows of the source are divided
into pieces, whose bounds depend on nothing but the rows around them: rows that were inserted,
corrected or deleted change the pieces in which they are, and no others. For a piece whose digest is
known, the rows of the last run are used again with their answers: none of them is looked up.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_layouts import plain_batch, plain_schema
from blendfusion.datafusion.arrow_types import is_text
from blendfusion.places.whole_file import replacing
from blendfusion.planner.ir.nodes import Ask, Block, Expr, Field, asks, walk
from blendfusion.run.execution.executor import ADDED_COLUMN, Divide
from blendfusion.run.execution.pipeline import Counts
from blendfusion.services.replay.digests import table_digest
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.planner.stages.split import Stage
    from blendfusion.udfs.ask.dispatcher import Dispatcher

_PIECES, _MADE_WITH = b"pieces", b"made with"
_ROWS_OF_A_BATCH, _BYTES_OF_A_BATCH = 65_536, 1 << 26
_LEAST, _MOST, _BITS = 64, 8_192, 8
"""The rows of a piece: at least and at most so many, and 2 ** _BITS + _LEAST on average."""
_RANDOM = np.random.default_rng(46)
_OF_BYTES = _RANDOM.integers(0, 1 << 63, 256, dtype=np.uint64)
_OF_COLUMNS = _RANDOM.integers(0, 1 << 63, 64, dtype=np.uint64) | np.uint64(1)

Place: TypeAlias = tuple[int, int]
"""The first row of a piece's output, and the number of its rows."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """The output of a stage."""

    table: pa.Table
    places: dict[str, Place]
    """The rows of each piece by its digest."""


class _Pieces:
    """The pieces that a run reads, in their order; those that are in ``kept`` need not run."""

    def __init__(self, kept: _Rows | None) -> None:
        self._kept = kept
        self._digests: list[str] = []

    def divide(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the pieces that must run, with the numbers of these."""
        known = {} if self._kept is None else self._kept.places
        for batch, bounds in whole_pieces(batches):
            begin, numbers = 0, list[np.ndarray]()
            for first, end in pairwise(bounds):
                piece = batch.slice(first, end - first)
                digest = table_digest(pa.Table.from_batches([piece]))
                if digest not in known:
                    numbers.append(np.full(end - first, len(self._digests), np.int64))
                elif numbers:
                    yield _with_numbers(batch.slice(begin), numbers)
                if digest in known:
                    begin, numbers = end, []
                self._digests.append(digest)
            if numbers:
                yield _with_numbers(batch.slice(begin), numbers)

    def join(self, made: pa.Table) -> _Rows | None:
        """The output of all pieces in their order. ``made``: that of those that ran, with their
        numbers. None if the output that was kept has other types."""
        numbers, made = made.column(made.num_columns - 1), made.select(range(made.num_columns - 1))
        if self._kept is not None and self._kept.table.schema.types != made.schema.types:
            return None
        counts = np.bincount(numbers.to_numpy(), minlength=len(self._digests)).tolist()
        known = {} if self._kept is None else self._kept.places
        places, slices, begin, at = dict[str, Place](), [made.slice(0, 0)], 0, 0
        for number, digest in enumerate(self._digests):
            place = known.get(digest)
            table = made if place is None or self._kept is None else self._kept.table
            start, count = (begin, counts[number]) if place is None else place
            begin += count if place is None else 0
            places[digest] = at, count
            at += count
            if count:
                slices.append(table.slice(start, count).rename_columns(made.column_names))
        # In one chunk, as DataFusion's order of equal keys and sums of floats depend on chunks.
        return _Rows(pa.concat_tables(slices).combine_chunks(), places)


class KeptRows:
    """The rows of the stages of one view in its folder. ``reads``: a digest of the settings and the
    models of which rows may be used again; None: none may."""

    def __init__(self, folder: Path, *, reads: str | None) -> None:
        self._folder, self._reads = folder, reads
        self._made: dict[str, _Rows] = {}

    def tables(
        self,
        stage: Stage,
        dispatcher: Dispatcher,
        counts: Counts,
        here: Callable[[Divide], Iterator[pa.Table]],
    ) -> Generator[pa.Table, None, None] | None:
        """The output of a stage; None for one of which a row depends on more than one row."""
        key = key_of(stage.block)
        questions = [ask for e in stage.block.exprs for ask in asks(e)]
        if (
            not questions
            or key is None
            or any(dispatcher.targets_of(ask.call) is not None for ask in questions)
        ):
            return None
        return self._tables(key, counts, here)

    def _tables(
        self, key: str, counts: Counts, here: Callable[[Divide], Iterator[pa.Table]]
    ) -> Generator[pa.Table, None, None]:
        found: _Rows | None = None
        for kept in (self._load(key), None):
            pieces = _Pieces(kept)
            found = pieces.join(pa.concat_tables(here(pieces.divide)))
            if found is not None:
                break
            counts.restart()
        assert found is not None
        self._made[key] = found
        yield found.table

    def _file(self, key: str) -> Path:
        return self._folder / f"stage-{key}.arrow"

    def _load(self, key: str) -> _Rows | None:
        """The rows of a stage as they were kept; None without any that may be used again, or for a
        damaged file."""
        if self._reads is None:
            return None
        with suppress(OSError, pa.ArrowException, ValueError, KeyError, TypeError):
            with pa.ipc.open_stream(self._file(key)) as reader:
                if reader.schema.metadata[_MADE_WITH].decode() != self._reads:
                    return None
                places = json.loads(reader.schema.metadata[_PIECES])
                table = reader.read_all().replace_schema_metadata(None)
            starts = [start + count for start, count in places.values()]
            if max(starts, default=0) <= len(table):
                return _Rows(table, {digest: (a, n) for digest, (a, n) in places.items()})
        return None

    def save(self, made_with: str) -> None:
        """Keep the rows of the stages of this run, and no others. ``made_with``: a digest of its
        settings and models."""
        self.clear({self._file(key).name for key in self._made})
        for key, rows in self._made.items():
            known = {_PIECES: json.dumps(rows.places), _MADE_WITH: made_with}
            table = rows.table.replace_schema_metadata(known)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with replacing(self._file(key)) as part:
                owned = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with (
                    os.fdopen(owned, "wb") as stream,
                    pa.ipc.new_stream(stream, table.schema, options=options) as writer,
                ):
                    writer.write_table(table, max_chunksize=_ROWS_OF_A_BATCH)

    def clear(self, names: Collection[str] = ()) -> None:
        """Delete the kept rows, except files of these names."""
        for file in self._folder.glob("stage-*.arrow"):
            if file.name not in names:
                file.unlink(missing_ok=True)


def key_of(block: Block) -> str | None:
    """A digest of what a row-wise stage computes, equal in every session; None for a stage of which
    a row depends on more than one row of its source, or on more than that and its calls."""
    if block.has_limit or block.until is not None or block.once:
        return None
    for part in (part for expr in block.exprs for part in walk(expr)):
        if part.rels or (isinstance(part, Ask) and not _is_plain(part.call)):
            return None
    text = repr([[_form(e) for e in block.where], [_form(e) for e in block.select]])
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _is_plain(call: Call) -> bool:
    """Whether an answer of a call depends on its values and literals alone."""
    kind, task = call.ingredient.kind, call.task
    beside = kind.whole_column or kind.has_body or kind.images or kind.audio or call.in_bytes
    return not (task.subqueries or beside or task.images or call.review or call.calibrated)


def _form(expr: Expr) -> tuple[object, ...]:
    if isinstance(expr, Field):
        return (expr.index,)
    children = tuple(map(_form, expr.children))
    return (
        (expr.call.name, children)
        if isinstance(expr, Ask)
        else (expr.name, expr.template, children)
    )


def whole_pieces(
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
    """The rows of batches in plain types, with the bounds of their pieces. A piece goes on in the
    next batch, since another run may divide the same rows into other batches."""
    waiting = list[pa.RecordBatch]()
    for each in chain(batches, (None,)):
        if each is not None:
            waiting.append(plain_batch(each, plain_schema(each.schema)))
            rows, size = (sum(map(of, waiting)) for of in (len, attrgetter("nbytes")))
            if rows < _ROWS_OF_A_BATCH and size < _BYTES_OF_A_BATCH:
                continue
        if waiting:
            batch = pa.concat_batches(waiting)
            bounds = bounds_of(batch)
            ended = bounds if each is None else bounds[:-1] or bounds
            yield batch, ended
            waiting = [batch.slice(ended[-1])]


def bounds_of(batch: pa.RecordBatch) -> list[int]:
    """The first rows of the pieces of a batch in plain types, and the number of its rows. A piece
    ends behind a row whose texts and numbers have a sum of a certain form."""
    length = batch.num_rows
    sums = np.zeros(length, np.uint64)
    for factor, column in zip(
        np.resize(_OF_COLUMNS, batch.num_columns), batch.columns, strict=True
    ):
        sums += factor * _sums(column)
    tops = (sums * _OF_COLUMNS[0]) >> np.uint64(64 - _BITS)
    ends = np.flatnonzero(tops == 2**_BITS - 1) + 1
    found = [0]
    for end in [*ends.tolist(), length]:
        while end - found[-1] > _MOST:
            found.append(found[-1] + _MOST)
        if end - found[-1] >= _LEAST:
            found.append(end)
    return found if found[-1] == length else [*found, length]


def _sums(column: pa.Array) -> np.ndarray:
    """A number for each row, equal for equal values: the sum of random numbers, one for each two
    bytes of a text that follow one another, or the bits of a number; 0 for NULL and others."""
    kind = column.type
    if is_text(kind):
        plain = pc.fill_null(column, "").cast(pa.large_binary())
        _, offsets, data = plain.buffers()
        ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
        random = _OF_BYTES[np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]]
        ends = ends - ends[0]
        running = np.zeros(ends[-1] + 1, np.uint64)
        np.cumsum(random[:-1] * random[1:], out=running[1:-1])
        sums: np.ndarray = running[np.maximum(ends[1:] - 1, ends[:-1])] - running[ends[:-1]]
        return sums
    if pa.types.is_primitive(kind) and kind.bit_width == 64 and not pa.types.is_temporal(kind):
        values: np.ndarray = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        return values.view(np.uint64)
    return np.zeros(len(column), np.uint64)


def _with_numbers(batch: pa.RecordBatch, numbers: list[np.ndarray]) -> pa.RecordBatch:
    """The first rows of a batch with these numbers."""
    column = np.concatenate(numbers)
    return batch.slice(0, len(column)).append_column(ADDED_COLUMN, pa.array(column))
