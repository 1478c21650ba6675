"""The indexes of a session, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
from datafusion import ScalarUDF, udf

from blendfusion.errors import QueryError, close_matches
from blendfusion.models.embedders.embedder import Embedder, Vectors
from blendfusion.planner.ir.lineage import column_of
from blendfusion.planner.ir.nodes import Expr, Plan
from blendfusion.planner.ir.search_tables import Search
from blendfusion.services.search.index import Index
from blendfusion.services.search.index_vectors import stored_vectors


class Indexes:
    """The indexes that a session has built or opened."""

    def __init__(self, embedder: Callable[[], Embedder]) -> None:
        self._embedder = embedder
        self._indexes: dict[str, Index] = {}
        self.functions: dict[str, str] = {}
        """The indexes that functions of query texts search, by the names of these."""
        self._failed: Exception | None = None
        """The latest exception of a search."""

    def open(self, name: str, path: Path) -> None:
        """Search the index in ``path`` as ``name`` from now on. Raises QueryError if there is
        none."""
        index = Index(name, path, self._embedder)
        index.snapshot()
        self.attach(index)

    def attach(self, index: Index) -> None:
        """Search ``index`` by its name from now on."""
        self._indexes[index.name] = index

    @property
    def names(self) -> Collection[str]:
        return self._indexes.keys()

    def index(self, name: str) -> Index:
        """The index of this name. Raises QueryError, naming close matches."""
        found = self._indexes.get(name)
        if found is None:
            near = close_matches(name, self._indexes)
            raise QueryError(
                f"no index '{name}'",
                hint=f"{near} Build or open one: session.index('{name}', columns=['…']), "
                f"session.open_index('{name}', path).".strip(),
            )
        return found

    def serve(self, text: Expr, over: Plan) -> bool:
        """Whether one of the indexes has the vectors of an expression over a plan."""
        column = column_of(text, over)
        return column is not None and any(index.serves(column) for index in self._indexes.values())

    def vectors(self, fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors in the indexes: see ``stored_vectors``."""
        return stored_vectors(self._indexes, fingerprint, keys)

    def check(self, name: str, query: str | None, k: object, mode: object, where: object) -> Search:
        """A search with these arguments: see ``Index.check``."""
        return self.index(name).check(query, k, mode, where)

    def search(self, search: Search, queries: Sequence[str], schema: pa.Schema) -> list[pa.Table]:
        """The best rows for each query: see ``Index.search``. Raises QueryError if the columns of
        the index no longer match ``schema``, with which the query was planned."""
        try:
            found = self.index(search.index).search(search, queries)
            if any(not table.schema.equals(schema) for table in found):
                raise QueryError(
                    f"the index '{search.index}' has other columns than when this query was planned",
                    hint="Create the frame again.",
                )
            return found
        except Exception as problem:
            self._failed = problem
            raise

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Raise the original exception of a search inside DataFusion, which passes on only its
        text."""
        try:
            yield
        except Exception as problem:
            failed = self._failed
            if failed is None or not _tells_of(problem, failed):
                raise
            raise failed from None

    def function(self, search: Search, *, keeps_empty: bool) -> ScalarUDF:
        """A function of query texts that gives each row the list of its best rows, as structs.

        ``keeps_empty``: an empty result is a list of one NULL, as in an outer join.
        """
        schema = self.index(search.index).schema
        hit = pa.struct(list(schema))

        def run(queries: pa.Array) -> pa.Array:
            encoded = queries.fill_null("").dictionary_encode()
            tables = self.search(search, encoded.dictionary.to_pylist(), schema)
            return _lists(tables, encoded.indices.to_numpy(), hit, keeps_empty=keeps_empty)

        key = repr((search, keeps_empty, str(hit)))
        name = f"llm_search_{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"
        self.functions[name] = search.index
        # Volatile, so that the search of a literal does not run during planning.
        return udf(run, [pa.string()], pa.list_(hit), "volatile", name)


def _tells_of(problem: Exception, failed: Exception) -> bool:
    """Whether the text of ``problem`` contains the message of ``failed``, in either form of
    quoting."""
    texts = [str(problem), str(failed).split("\n")[0]]
    whole, part = ("".join(filter(str.isalnum, text)) for text in texts)
    return part in whole


def _lists(
    tables: Sequence[pa.Table], rows: np.ndarray, hit: pa.StructType, *, keeps_empty: bool
) -> pa.Array:
    """For each row the list of the structs from its table."""
    structs = [
        struct for table in tables for struct in table.to_struct_array().chunks if len(struct)
    ]
    every = pa.concat_arrays([pa.array([], hit), *structs])
    counts = np.array([len(table) for table in tables], dtype=np.int64)
    starts = np.cumsum(counts) - counts
    taken = counts[rows]
    if keeps_empty:
        taken = np.maximum(taken, 1)
    ends = np.cumsum(taken)
    # The positions of each row's structs in sequence, from its start.
    places = np.repeat(starts[rows] - (ends - taken), taken) + np.arange(
        ends[-1] if len(ends) else 0
    )
    nothing = np.repeat(counts[rows] == 0, taken)
    values = every.take(pa.array(places, mask=nothing))
    return pa.ListArray.from_arrays(np.concatenate([[0], ends]).astype(np.int32), values)
