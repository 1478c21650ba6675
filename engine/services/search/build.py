"""Builds or updates an index: embeds and adds new rows, and deletes missing ones.

It reads the table once, in chunks. Every written chunk is a version of the dataset, so that the
next build continues after a kill. Readers keep the served version until the build is complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.errors import QueryError, by_surface
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.services.search.folder import Folder, Spec, State
from blendfusion.services.search.hashes import HASH, IndexedRows, row_hashes, text_hashes
from blendfusion.services.search.scripts import texts_with_words

if TYPE_CHECKING:
    import lance

TEXT, VECTOR, ROW, TEXT_HASH = "_text", "_vector", "_row", "_text_hash"
"""The columns of an index beside those of its rows."""
CHUNK_ROWS = 8_192
CHUNK_BYTES = 16 * 1024 * 1024
"""Maximum bytes that are read, embedded and written at once, and lost if a build is killed."""
CLUSTERED_ROWS = 100_000
"""Rows from which on vectors are searched by clusters; below, all of them are compared."""
CLUSTER_ROWS = 4_096
_LOOSE_SHARE = 0.2
"""Share of the rows that may come or go before the full-text index is rebuilt; until then its
statistics count deleted rows."""
_MOST_FRAGMENTS = 32
_INDEXING_MB = 512
"""Memory in MB for building the full-text index; above it the library writes parts and merges them.
"""
_DELETED_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an update. A changed row counts as one removed and one added."""

    name: str
    path: Path
    rows: int
    """Rows that searches can find now."""
    added: int
    removed: int
    blank: int
    """Rows of the table without any text, which are not in the index."""
    embedded: int
    """Texts that were embedded."""
    seconds: float
    rebuilt: str | None = None
    """The reason for a rebuild; None for an update, and for the first build."""

    def __str__(self) -> str:
        parts = [f"{self.rows:,} rows", f"{self.added:,} added", f"{self.removed:,} removed"]
        if self.blank:
            parts.append(f"{self.blank:,} without text")
        parts += [f"{self.embedded:,} texts embedded", f"{self.seconds:.2f} s"]
        again = f", rebuilt: {self.rebuilt}" if self.rebuilt else ""
        return f"index '{self.name}': {', '.join(parts)}{again}"


def build(
    name: str,
    folder: Folder,
    spec: Spec,
    batches: Iterable[pa.RecordBatch],
    embedder: Embedder | None,
    table: str | None = None,
) -> IndexReport:
    """Update the index in ``folder`` to the rows of ``batches``, and serve it. ``table``: their
    name.

    A batch has the columns of ``spec.schema`` and then each row's text, '' or NULL for none. Waits
    for another writer. Exceptions of the batches and the embedder pass through; readers then keep
    the previous version, and the next build reuses the embedded vectors.
    """
    with folder.writing():
        return _Build(name, folder, spec, embedder, table).run(batches)


class _Build:
    def __init__(
        self,
        name: str,
        folder: Folder,
        spec: Spec,
        embedder: Embedder | None,
        table: str | None,
    ) -> None:
        self._name = name
        self._table = table
        self._folder = folder
        self._spec = spec
        self._embedder = embedder
        self._start = perf_counter()
        self._added = self._blank = self._embedded = 0
        self._served = folder.state()
        self._dataset = open_dataset(folder.dataset(spec.dataset))
        self._donor = self._dataset
        """The dataset whose vectors of known texts are reused, with its rows."""
        self._donated: IndexedRows | None = None

    def run(self, batches: Iterable[pa.RecordBatch]) -> IndexReport:
        rebuilt = self._prepare()
        known = self._indexed_rows(self._dataset)
        if self._donor is self._dataset:
            self._donated = known
        for chunk in _chunks(batches):
            self._add(chunk, known)
        removed = self._remove(known.gone_ids())
        if self._dataset is None:
            self._dataset = self._write(self._empty(), None)
        self._settle(self._dataset, self._added + removed)
        rows = self._dataset.count_rows()
        seconds = perf_counter() - self._start
        return IndexReport(
            self._name,
            self._folder.path,
            rows,
            self._added,
            removed,
            self._blank,
            self._embedded,
            seconds,
            rebuilt,
        )

    # --- before ----------------------------------------------------------------------------------

    def _prepare(self) -> str | None:
        """Drop unused versions, and return the reason for a rebuild, if any."""
        served = self._served
        if served is None:
            self._folder.drop_others(self._spec.dataset)
            return None
        self._folder.drop_others(self._spec.dataset, served.dataset)
        if served.dataset != self._spec.dataset:
            if served.embedder == self._spec.embedder:
                self._donor = open_dataset(self._folder.dataset(served.dataset), served.version)
            return self._difference(served)
        if self._dataset is not None:
            old = [v["version"] for v in self._dataset.versions() if v["version"] < served.version]
            if old:
                # Only this process writes here, so files of no version were left by a killed
                # writer.
                self._dataset.cleanup_old_versions(versions=old, delete_unverified=True)
        return None

    def _difference(self, served: State) -> str:
        if served.columns != self._spec.columns:
            return f"it was over {', '.join(served.columns)}"
        if served.embedder != self._spec.embedder:
            name = served.embedder_name
            return "it had no vectors" if name is None else f"its vectors were of {name}"
        if served.language != self._spec.language:
            return f"its language was {served.language}"
        return "the table has other columns"

    def _indexed_rows(self, dataset: lance.LanceDataset | None) -> IndexedRows:
        if dataset is None:
            none = pa.chunked_array([pa.array([], HASH)])
            return IndexedRows(none, none, pa.chunked_array([pa.array([], pa.uint64())]))
        found = dataset.scanner(columns=[ROW, TEXT_HASH], with_row_id=True).to_table()
        return IndexedRows(found[ROW], found[TEXT_HASH], found["_rowid"])

    # --- rows ------------------------------------------------------------------------------------

    def _add(self, chunk: pa.Table, known: IndexedRows) -> None:
        *columns, texts = (column.combine_chunks() for column in chunk.columns)
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(texts), ""), True)
        if pc.any(blank).as_py():
            kept = pc.invert(blank)
            self._blank += len(kept) - pc.sum(kept, min_count=0).as_py()
            columns, texts = [c.filter(kept) for c in columns], texts.filter(kept)
        if not len(texts):
            return
        hashes = row_hashes(columns)
        new = pa.array(known.new(hashes))
        if not len(new):
            return
        texts = texts.take(new)
        words = texts_with_words(texts)
        arrays = [*(c.take(new) for c in columns), words, hashes.take(new), text_hashes(texts)]
        schema = _schema(self._spec, None)
        if self._embedder is not None:
            vectors = self._vectors(texts, arrays[-1])
            arrays.append(pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]))
            schema = _schema(self._spec, vectors.shape[1])
        self._dataset = self._write(pa.Table.from_arrays(arrays, schema=schema), self._dataset)
        self._added += len(new)

    def _vectors(self, texts: pa.Array, hashes: pa.Array) -> Vectors:
        """One vector per text: that of an indexed row with this text, else a new one from the
        embedder."""
        assert self._embedder is not None
        if self._donated is None:
            self._donated = self._indexed_rows(self._donor)
        places, ids = self._donated.with_text(hashes)
        missing = np.setdiff1d(np.arange(len(texts)), places)
        wanted = list(dict.fromkeys(texts.take(pa.array(missing)).to_pylist()))
        self._embedded += len(wanted)
        made = self._embedder.embed(wanted)
        self._check_width(made)
        number = {text: i for i, text in enumerate(wanted)}
        of = [number[text] for text in texts.take(pa.array(missing)).to_pylist()]
        if not len(places):
            return made[of]
        assert self._donor is not None
        # Repeated ids would be returned once.
        distinct, again = np.unique(ids, return_inverse=True)
        stored = self._donor.scanner(
            columns=[VECTOR], filter=_with_ids(distinct), with_row_id=True
        ).to_table()
        stored = stored.sort_by("_rowid")
        flat = stored[VECTOR].combine_chunks().flatten().to_numpy()
        old = flat.reshape(len(distinct), -1)
        vectors = np.empty((len(texts), old.shape[1]), dtype=np.float32)
        vectors[places] = old[again]
        if len(missing):
            vectors[missing] = made[of]
        return vectors

    def _check_width(self, made: Vectors) -> None:
        assert self._embedder is not None
        earlier = self._dataset or self._donor
        problem = other_width(earlier, made, self._embedder) if earlier is not None else ""
        if problem:
            raise QueryError(
                f"index '{self._name}': {problem}",
                hint=f"Delete '{self._folder.path}' to build the index again.",
            )

    def _remove(self, ids: np.ndarray) -> int:
        for start in range(0, len(ids), _DELETED_AT_ONCE):
            assert self._dataset is not None
            self._dataset.delete(_with_ids(ids[start : start + _DELETED_AT_ONCE]))
        return len(ids)

    def _empty(self) -> pa.Table:
        width = None
        if self._embedder is not None:
            width = self._embedder.embed(["text"]).shape[1]
        return _schema(self._spec, width).empty_table()

    def _write(self, table: pa.Table, dataset: lance.LanceDataset | None) -> lance.LanceDataset:
        import lance

        path = self._folder.dataset(self._spec.dataset)
        mode = "create" if dataset is None else "append"
        try:
            return lance.write_dataset(table, path, mode=mode)
        except (OSError, ValueError) as problem:
            raise QueryError(
                f"index '{self._name}': these rows cannot be written: {problem}",
                hint="Leave columns out"
                + by_surface(": session.index(name, session.sql('SELECT …')).", " of the file."),
            ) from problem

    # --- indexes ---------------------------------------------------------------------------------

    def _settle(self, dataset: lance.LanceDataset, changed: int) -> None:
        """Index the rows of the dataset, and serve it."""
        served, rows = self._served, dataset.count_rows()
        same = served is not None and served.dataset == self._spec.dataset
        if served is not None and same and not changed and served.version == dataset.version:
            if served.table != self._table:
                self._folder.serve(replace(served, table=self._table))
            return
        loose = changed + (served.loose if served is not None and same else 0)
        if len(dataset.get_fragments()) > _MOST_FRAGMENTS:
            dataset.optimize.compact_files()
        indexed = {index.name for index in dataset.describe_indices()}
        if TEXT not in indexed or loose > _LOOSE_SHARE * rows:
            words = self._spec.language is not None
            dataset.create_scalar_index(
                TEXT,
                "FTS",
                name=TEXT,
                replace=True,
                with_position=True,
                stem=words,
                remove_stop_words=words,
                language=self._spec.language or "English",
                memory_limit=_INDEXING_MB,
            )
            loose = 0
        clustered = served.clustered if served is not None and same else 0
        if self._embedder is not None and rows >= max(CLUSTERED_ROWS, 2 * clustered):
            dataset.create_index(
                VECTOR,
                "IVF_FLAT",
                name=VECTOR,
                metric="dot",
                replace=True,
                num_partitions=rows // CLUSTER_ROWS,
            )
            clustered = rows
        dataset.optimize.optimize_indices()
        self._folder.serve(
            State(
                self._spec.dataset,
                dataset.version,
                rows,
                self._spec.columns,
                self._spec.language,
                self._spec.embedder,
                None if self._embedder is None else self._embedder.name,
                loose,
                clustered,
                self._table,
            )
        )


def open_dataset(path: Path, version: int | None = None) -> lance.LanceDataset | None:
    """The dataset at ``path`` at its latest or another version; None if there is none."""
    import lance

    try:
        return lance.dataset(path, version=version)
    except (OSError, ValueError):
        return None


def other_width(dataset: lance.LanceDataset, made: Vectors, embedder: Embedder) -> str:
    """The problem with vectors that are longer or shorter than those of an index, or ''."""
    width = dataset.schema.field(VECTOR).type.list_size
    if not len(made) or made.shape[1] == width:
        return ""
    return (
        f"its vectors have {width} numbers, and those of {embedder.name} have {made.shape[1]}: "
        "another model has that name by now"
    )


def _schema(spec: Spec, width: int | None) -> pa.Schema:
    own = [(TEXT, pa.string()), (ROW, HASH), (TEXT_HASH, HASH)]
    if width is not None:
        own.append((VECTOR, pa.list_(pa.float32(), width)))
    return pa.schema([*spec.schema, *(pa.field(name, kind) for name, kind in own)])


def _with_ids(ids: Sequence[int] | np.ndarray) -> str:
    return f"_rowid IN ({', '.join(map(str, ids))})"


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in tables of ``CHUNK_ROWS``, or of fewer that take ``CHUNK_BYTES``."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, CHUNK_ROWS - rows)
            start += part.num_rows
            waiting.append(part)
            rows += part.num_rows
            size += part.nbytes
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield pa.Table.from_batches(waiting)
                waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
