"""Searches one version of an index: by words (BM25), by vectors, or by both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.planner.ir.search_tables import Search
from blendfusion.services.search.build import (
    CLUSTER_ROWS,
    ROW,
    TEXT,
    TEXT_HASH,
    VECTOR,
    other_width,
)
from blendfusion.services.search.folder import State
from blendfusion.services.search.index_vectors import TextPlaces
from blendfusion.services.search.scripts import has_words, signs_side_by_side
from blendfusion.services.search.words import TextQuery, lance_query, text_query

if TYPE_CHECKING:
    import lance

SCORE, RANK = "_score", "_rank"
"""The columns that a search adds: the score, higher is better, and the rank from 1."""
_CANDIDATES = 100
_CANDIDATES_PER_ROW = 4
"""Candidates of each side of a hybrid search, per requested row; at least 100."""
_PROBED_SHARE = 4
"""A quarter of the clusters of vectors is searched, but at least 20 clusters."""
DECIMALS = 6
"""Decimals of a score: rounded scores are equal on every machine."""


@dataclass(slots=True)
class _Hits:
    """Row ids with scores, and the hash of each row as a tie-breaker."""

    ids: npt.NDArray[np.uint64]
    scores: npt.NDArray[np.float64]
    hashes: list[bytes]
    vectors: Vectors | None = None

    def best(self, k: int) -> _Hits:
        scores = np.round(self.scores, DECIMALS)
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], self.hashes[i]))[:k]
        return _Hits(self.ids[order], scores[order], [self.hashes[i] for i in order])


class Snapshot:
    """One version of an index, open for reading from any thread."""

    def __init__(self, dataset: lance.LanceDataset, state: State) -> None:
        self._dataset = dataset
        self.state = state

    @cached_property
    def rows_schema(self) -> pa.Schema:
        """The columns of the table that was indexed."""
        return pa.schema([f for f in self._dataset.schema if f.name not in _OWN])

    @cached_property
    def places(self) -> TextPlaces:
        """The positions of its texts, for their vectors; requires an index with vectors."""
        return TextPlaces(self._dataset)

    def rows(self) -> pa.Table:
        """All rows of the table that was indexed."""
        return self._dataset.to_table(columns=self.rows_schema.names)

    def check_filter(self, where: str) -> None:
        """Raises ValueError if ``where`` is not a predicate over the columns of the rows."""
        self._dataset.scanner(filter=where, columns=[ROW]).explain_plan()

    def search(
        self, search: Search, queries: Sequence[str], embedder: Embedder | None
    ) -> list[pa.Table]:
        """For each query the best rows, best first: their columns, ``_score`` and ``_rank``.

        ``search.query`` is ignored. ``embedder`` may be None in mode ``text``. Raises ValueError
        where its vectors are longer or shorter than those of the index.
        """
        wanted = {query: text_query(query) for query in queries if has_words(query)}
        vectors: dict[str, Vectors] = {}
        if search.mode != "text" and wanted:
            assert embedder is not None
            texts = [w.text if search.mode == "hybrid" else q for q, w in wanted.items()]
            made = embedder.embed(texts)
            if problem := other_width(self._dataset, made, embedder):
                raise ValueError(problem)
            vectors = dict(zip(wanted, made, strict=True))
        found = {
            query: self._rows(hits.ids.tolist(), hits.scores.tolist())
            for query, hits in (
                (query, self._hits(search, words, vectors.get(query)))
                for query, words in wanted.items()
            )
        }
        nothing = with_scores(self.rows_schema).empty_table()
        return [found.get(query, nothing) for query in queries]

    # --- hits ------------------------------------------------------------------------------------

    def _hits(self, search: Search, query: TextQuery, vector: Vectors | None) -> _Hits:
        if search.mode == "vector":
            assert vector is not None
            return self._nearest(vector, search.k, search.where).best(search.k)
        if search.mode == "text":
            return self._matching(query, search.k, search.where).best(search.k)
        assert vector is not None
        return self._both(search, query, vector).best(search.k)

    def _matching(self, query: TextQuery, k: int, where: str, *columns: str) -> _Hits:
        if query.term is None:
            return _none()
        found = self._dataset.scanner(
            columns=[ROW, "_score", *columns],
            full_text_query=lance_query(signs_side_by_side(query.term), TEXT),
            limit=k,
            filter=where or None,
            prefilter=True,
            with_row_id=True,
        ).to_table()
        return _Hits(
            found["_rowid"].to_numpy(),
            found["_score"].to_numpy().astype(np.float64),
            found[ROW].to_pylist(),
            _vectors(found[VECTOR]) if VECTOR in columns else None,
        )

    def _nearest(self, vector: Vectors, k: int, where: str) -> _Hits:
        if not vector.any():
            return _none()
        clusters = self.state.clustered // CLUSTER_ROWS
        found = self._dataset.scanner(
            columns=[ROW, "_distance"],
            nearest={
                "column": VECTOR,
                "q": vector,
                "k": k,
                "metric": "dot",
                "nprobes": max(20, clusters // _PROBED_SHARE),
            },
            filter=where or None,
            prefilter=True,
            with_row_id=True,
        ).to_table()
        cosines = 1 - found["_distance"].to_numpy().astype(np.float64)
        return _Hits(found["_rowid"].to_numpy(), cosines, found[ROW].to_pylist())

    def _both(self, search: Search, query: TextQuery, vector: Vectors) -> _Hits:
        """The sum of two scores: BM25, as a share of the best row's, and the cosine.

        The cosine is computed for rows that only the words find; rows that only the vectors find
        have no BM25 score. An operator or a phrase is a condition, so only the words then determine
        the rows.
        """
        most = candidates(search.k)
        matching = self._matching(query, most, search.where, VECTOR)
        scores: dict[int, float] = {}
        hashes: dict[int, bytes] = {}
        if len(matching.ids):
            assert matching.vectors is not None
            cosines = np.einsum("ij,j->i", matching.vectors, vector)
            sums = matching.scores / max(matching.scores.max(), 1e-9) + cosines
            scores = dict(zip(matching.ids.tolist(), sums.tolist(), strict=True))
            hashes = dict(zip(matching.ids.tolist(), matching.hashes, strict=True))
        if query.plain:
            near = self._nearest(vector, most, search.where)
            for row, cosine, digest in zip(
                near.ids.tolist(), near.scores.tolist(), near.hashes, strict=True
            ):
                scores.setdefault(row, cosine)
                hashes[row] = digest
        return _Hits(
            np.array(list(scores), dtype=np.uint64),
            np.array(list(scores.values())),
            [hashes[row] for row in scores],
        )

    # --- rows ------------------------------------------------------------------------------------

    def _rows(self, ids: Sequence[int], scores: Sequence[float]) -> pa.Table:
        """The rows of these ids, in order, with their scores and ranks."""
        schema = with_scores(self.rows_schema)
        if not ids:
            return schema.empty_table()
        found = self._dataset.scanner(
            columns=self.rows_schema.names,
            filter=f"_rowid IN ({', '.join(map(str, ids))})",
            with_row_id=True,
        ).to_table()
        place = {row: i for i, row in enumerate(found["_rowid"].to_pylist())}
        rows = found.drop_columns("_rowid").take([place[row] for row in ids])
        ranks = pa.array(np.arange(1, len(ids) + 1))
        return pa.table([*rows.columns, pa.array(scores, pa.float64()), ranks], schema=schema)


_OWN = (TEXT, VECTOR, ROW, TEXT_HASH)


def candidates(k: int) -> int:
    """How many rows each side of a hybrid search for ``k`` rows finds."""
    return max(_CANDIDATES, _CANDIDATES_PER_ROW * k)


def with_scores(rows: pa.Schema) -> pa.Schema:
    """The columns of a search's result."""
    return pa.schema([*rows, pa.field(SCORE, pa.float64()), pa.field(RANK, pa.int64())])


def _none() -> _Hits:
    return _Hits(np.zeros(0, dtype=np.uint64), np.zeros(0), [])


def _vectors(column: pa.ChunkedArray) -> Vectors:
    whole = column.combine_chunks()
    flat: Vectors = whole.flatten().to_numpy()
    return flat.reshape(len(whole), whole.type.list_size)
