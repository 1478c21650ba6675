"""Tables of a LanceDB database, searched by the indexes that the database has."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.planner.ir.lineage import Column
from blendfusion.planner.ir.search_tables import MODES, Mode, Search
from blendfusion.services.scans.lance_table import (
    StorageOptions,
    opened_table,
    place_of,
    require_lance,
)
from blendfusion.services.search.folder import State
from blendfusion.services.search.index import Index
from blendfusion.services.search.snapshot import DECIMALS, SCORE, Snapshot, candidates, with_scores
from blendfusion.services.search.words import lance_query, text_query

if TYPE_CHECKING:
    import lance

_ENDING = ".lance"
_ID = "_rowid"


def _uri(database: object) -> str | os.PathLike[str]:
    """A place, also of a connection of LanceDB. Raises ArgumentError for anything else."""
    place = getattr(database, "uri", database)
    if isinstance(place, str | os.PathLike):
        return place
    raise ArgumentError(
        f"a {type(database).__name__} is no place of a database",
        hint="Give its folder or URI: session.attach_lancedb('data/db').",
    )


def tables_at(
    uri: str | os.PathLike[str], storage_options: StorageOptions | None = None
) -> dict[str, str]:
    """The places of the tables of a database, by their names. Raises QueryError if there is
    none, ModelNotFound without the extra 'search'."""
    require_lance("lancedb")
    import lancedb

    place = place_of(_uri(uri))
    folder = url2pathname(place.removeprefix("file://")) if place.startswith("file://") else place
    if "://" not in folder and not Path(folder).is_dir():
        raise QueryError(f"cannot read the database '{place}': there is no such folder")
    names: list[str] = []
    page: str | None = None
    try:
        database = lancedb.connect(folder, storage_options=dict(storage_options or {}) or None)
        while True:
            listed = database.list_tables(page_token=page)
            names += listed.tables
            page = listed.page_token
            if not page:
                break
    except (OSError, ValueError, RuntimeError) as problem:
        detail = str(problem).split("\n")[0].partition(", /")[0]  # the lines of Lance's own source
        remote = "://" in place
        raise QueryError(
            f"cannot read the database '{place}': {detail}",
            hint="Credentials and the region come from the environment (AWS_REGION, …) or storage_options."
            if remote
            else None,
        ) from problem
    if not names:
        raise QueryError(
            f"'{place}' has no table of LanceDB",
            hint="A database is a folder of tables, NAME.lance. Of one table, use register_lance.",
        )
    return {name: f"{folder.rstrip('/')}/{name}{_ENDING}" for name in sorted(names)}


class AttachedIndex(Index):
    """A table at ``place``, with the full-text indexes that it has. ``vectors``: its vector column
    has vectors of ``embedder``."""

    def __init__(
        self,
        name: str,
        place: str,
        embedder: Callable[[], Embedder],
        *,
        vectors: bool,
        storage_options: StorageOptions | None = None,
    ) -> None:
        super().__init__(name, Path(place), embedder)
        self._uri, self._storage = place, storage_options
        self._has_vectors = vectors
        self._latest: AttachedSnapshot | None = None

    @property
    def searchable(self) -> bool:
        """Whether any mode is possible."""
        return bool(self._modes())

    def snapshot(self) -> AttachedSnapshot:
        with self._lock:
            dataset = opened_table(self._uri, self._storage)
            if self._latest is None or self._latest.state.version != dataset.version:
                self._latest = AttachedSnapshot(dataset, self._uri)
            return self._latest

    def serves(self, column: Column) -> bool:
        return False  # its vectors are not stored by the hashes of their texts

    def _moved_on(self) -> bool:
        return False

    def _modes(self) -> tuple[Mode, ...]:
        snapshot = self.snapshot()
        by_vector = self._has_vectors and bool(snapshot.vector_columns)
        if snapshot.text_columns:
            return MODES if by_vector else ("text",)
        return ("vector",) if by_vector else ()

    def _lacks(self, mode: str) -> QueryError:
        if mode != "vector" and not self.snapshot().text_columns:
            return QueryError(
                f"{self._place} has no full-text index, which mode => '{mode}' needs",
                hint="Create one with LanceDB, or use mode => 'vector'.",
            )
        return QueryError(
            f"{self._place} has no vectors of this session's embedder",
            hint="Use mode => 'text', or attach_lancedb(uri, vectors=True) if it made them.",
        )

    def _checked_embedder(self) -> Embedder:
        return self._embedder()

    @property
    def _place(self) -> str:
        return f"the table '{self._uri}'"


class AttachedSnapshot(Snapshot):
    """One version of an attached table."""

    def __init__(self, dataset: lance.LanceDataset, uri: str) -> None:
        state = State(uri, dataset.version, 0, (), None, None, None)
        super().__init__(dataset, state)
        self.text_columns = [
            index.field_names[0]
            for index in dataset.describe_indices()
            if index.index_type == "Inverted"
        ]
        """The columns with a full-text index."""
        self.vector_columns = [
            field.name
            for field in dataset.schema
            if pa.types.is_fixed_size_list(field.type)
            and pa.types.is_floating(field.type.value_type)
        ]

    @property
    def rows_schema(self) -> pa.Schema:
        schema: pa.Schema = self._dataset.schema
        return schema.remove_metadata()

    def check_filter(self, where: str) -> None:
        self._dataset.scanner(filter=where, columns=self.rows_schema.names[:1]).explain_plan()

    def search(
        self, search: Search, queries: Sequence[str], embedder: Embedder | None
    ) -> list[pa.Table]:
        wanted = [query for query in dict.fromkeys(queries) if query.strip()]
        vectors: dict[str, Vectors] = {}
        if search.mode != "text" and wanted:
            assert embedder is not None
            vectors = dict(zip(wanted, embedder.embed(wanted), strict=True))
        found = {q: self._best(self._scores(search, q, vectors.get(q)), search.k) for q in wanted}
        nothing = with_scores(self.rows_schema).empty_table()
        return [found.get(query, nothing) for query in queries]

    def _scores(self, search: Search, query: str, vector: Vectors | None) -> dict[int, float]:
        """The scores of rows, by their ids."""
        most = candidates(search.k) if search.mode == "hybrid" else search.k
        words = {} if search.mode == "vector" else self._by_words(query, most, search.where)
        if vector is None:
            return words
        near = self._by_vector(vector, most, search.where)
        top = max(words.values(), default=1.0) or 1.0
        return (
            {row: words.get(row, 0.0) / top + near.get(row, 0.0) for row in {**words, **near}}
            if search.mode == "hybrid"
            else near
        )

    def _by_words(self, query: str, most: int, where: str) -> dict[int, float]:
        term = text_query(query).term
        scores: dict[int, float] = {}
        for column in self.text_columns if term is not None else ():
            assert term is not None
            found = self._scan(where, full_text_query=lance_query(term, column), limit=most)
            for row, score in zip(found[_ID].to_pylist(), found[SCORE].to_pylist(), strict=True):
                scores[row] = max(score, scores.get(row, 0.0))
        return scores

    def _by_vector(self, vector: Vectors, most: int, where: str) -> dict[int, float]:
        column = self._vector_column(len(vector))
        if not vector.any():
            return {}
        metric = self._metric(column)
        nearest = {"column": column, "q": vector, "k": most, "metric": metric}
        found = self._scan(where, nearest=nearest)
        distances = found["_distance"].to_numpy().astype(np.float64)
        scores = 1 / (1 + distances) if metric == "l2" else 1 - distances
        return dict(zip(found[_ID].to_pylist(), scores.tolist(), strict=True))

    def _scan(self, where: str, **more: Any) -> pa.Table:
        score = "_distance" if "nearest" in more else SCORE
        return self._dataset.scanner(
            columns=[score], filter=where or None, prefilter=True, with_row_id=True, **more
        ).to_table()

    def _vector_column(self, size: int) -> str:
        for name in self.vector_columns:
            if self.rows_schema.field(name).type.list_size == size:
                return str(name)
        raise QueryError(
            f"no vector column of '{self.state.dataset}' has {size} dimensions, as the session's "
            "embedder has",
            hint="Connect with the embedder that made the vectors.",
        )

    def _metric(self, column: str) -> str:
        """The metric of the index of a column; cosine without one."""
        for index in self._dataset.describe_indices():
            if index.field_names == [column]:
                return str(index.details.get("metric_type", "cosine")).lower()
        return "cosine"

    def _best(self, scores: dict[int, float], k: int) -> pa.Table:
        """The best rows, with their scores and ranks; among equals, the earlier row."""
        rounded = {row: round(score, DECIMALS) for row, score in scores.items()}
        best = sorted(rounded, key=lambda row: (-rounded[row], row))[:k]
        return self._rows(best, [rounded[row] for row in best])
