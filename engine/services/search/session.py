"""The part of a session that searches: its embedder and its indexes."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from blendfusion.errors import QueryError
from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.models.embedders.cache import Stored
    from blendfusion.models.embedders.embedder import Vectors
    from blendfusion.planner.ir.search_tables import Mode
    from blendfusion.planner.rules.similar_first import Pays
    from blendfusion.services.scans.lance_table import StorageOptions
    from blendfusion.services.search.build import IndexReport
    from blendfusion.services.search.indexes import Indexes


class Searching(FrameSources):
    """A context with indexes that ``llm_search`` reads."""

    @cached_property
    def indexes(self) -> Indexes:
        """The indexes that the session has built or opened."""
        from blendfusion.planner.ir.search_tables import SEARCHES
        from blendfusion.services.search.indexes import Indexes
        from blendfusion.services.search.tables import SearchTables

        indexes = Indexes(self.lazy_embedder)
        self.lazy_embedder.stored = _held_by(indexes)
        self.add_hidden_schema(SEARCHES, SearchTables(indexes))
        return indexes

    @property
    def similar_first_pays(self) -> Pays:
        """Where the rule ``similar_first`` orders rows: also over rows of an index."""
        if self.options.similar_first is True or "indexes" not in vars(self):
            return super().similar_first_pays
        return self.indexes.serve

    def telling(self) -> AbstractContextManager[None]:
        """Raise the original exception of a search inside DataFusion, which passes on only its
        text."""
        return self.indexes.telling() if "indexes" in vars(self) else super().telling()

    def register_lance(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        storage_options: StorageOptions | None = None,
    ) -> None:
        """Register the Lance (or LanceDB) table in the folder, or at the URI, ``path`` as ``name``.

        ``storage_options``: those of its object store, as LanceDB names them, such as
        ``{"aws_endpoint": "https://minio.example"}``; by default the environment's.
        Columns and filters go into Lance's own scan; every query reads the latest version. Raises
        QueryError if there is none, ModelNotFound without the extra 'search'.
        """
        from blendfusion.services.scans.lance_table import lance_table

        self.register_table(name, lance_table(path, storage_options))
        self.note_registration("register_lance", name, path, {"storage_options": storage_options})

    def attach_lancedb(
        self,
        uri: str | os.PathLike[str],
        *,
        vectors: bool = False,
        storage_options: StorageOptions | None = None,
    ) -> tuple[str, ...]:
        """Make the tables of a LanceDB database tables of this session, by their names, which are
        returned.

        ``uri`` is a folder, or a URI of an object store, with credentials from the environment or
        ``storage_options`` (as LanceDB names them, such as ``{"aws_endpoint": …}``); a connection
        of LanceDB stands for its own. A table is also searchable by ``llm_search`` under its name:
        by words, where the database has a full-text index, and by vectors, where ``vectors`` states
        that its vector column has vectors of this session's embedder. Columns, filters and
        ``where`` go into Lance's scans; every query reads the latest version. Raises QueryError for
        a place without tables, or for a name that a table of the session has; ModelNotFound without
        the extra 'search'.
        """
        from blendfusion.services.search.database_index import AttachedIndex, tables_at

        found = tables_at(uri, storage_options)
        taken = [name for name in found if self.table_exist(f'"{name}"')]
        if taken:
            raise QueryError(
                f"the session has a table '{taken[0]}' already",
                hint="Attach the database to a session of its own, or deregister the table.",
            )
        for name, place in found.items():
            self.register_lance(f'"{name}"', place, storage_options=storage_options)
            index = AttachedIndex(
                name,
                place,
                self.lazy_embedder,
                vectors=vectors,
                storage_options=storage_options,
            )
            if index.searchable:
                self.indexes.attach(index)
        return tuple(found)

    def index(
        self,
        name: str,
        source: object = None,
        *,
        columns: str | Sequence[str] | None = None,
        path: str | os.PathLike[str] | None = None,
        language: str | None = "English",
        vectors: bool = True,
    ) -> IndexReport:
        """Build or update the index ``name`` over a table, for ``llm_search``: see docs/search.md.

        ``source`` is a table name (None: the name of the index), a frame, or an Arrow table.
        ``columns`` are the searched columns (None: all text columns). ``path`` is a folder for the
        index alone (None: one in the user's cache folder). ``language`` determines stems and stop
        words (None: neither). ``vectors=False`` leaves out embeddings.

        Only new rows are embedded, and missing rows are deleted; searches see the previous version
        until the update is complete. Raises QueryError for missing tables or columns, ModelNotFound
        without the extra 'search'.
        """
        from blendfusion.services.search.indexing import default_path, make_index

        place = default_path(name) if path is None else Path(path).expanduser()
        embedder = self.embedder if vectors else None
        report = make_index(self, name, source, columns, place, language, embedder)
        self.indexes.open(name, place)
        return report

    def open_index(self, name: str, path: str | os.PathLike[str] | None = None) -> None:
        """Make the index in ``path``, built by any session, searchable as ``name``. Raises
        QueryError if there is none."""
        from blendfusion.services.scans.lance_table import require_lance
        from blendfusion.services.search.indexing import default_path

        require_lance()
        place = default_path(name) if path is None else Path(path).expanduser()
        self.indexes.open(name, place)

    def search(
        self,
        name: str,
        query: str,
        k: int = 5,
        *,
        mode: Mode | None = None,
        where: str | None = None,
    ) -> Frame:
        """The best ``k`` rows of the index ``name`` for ``query``, best first, with ``_score``
        (higher is better) and ``_rank`` (from 1).

        ``mode`` is 'text' (BM25), 'vector', or 'hybrid', the default for an index with vectors.
        ``where`` is SQL over the index's columns and restricts the search, while ``filter`` on the
        frame drops rows among the best ``k``. The search runs with the frame.
        """
        from blendfusion.services.search.snapshot import RANK
        from blendfusion.services.search.sources import table_of

        search = self.indexes.check(name, query, k, mode, where)
        return self.new_frame(self.table(table_of(search)).sort(RANK))


def _held_by(indexes: Indexes) -> Stored:
    """Looks up vectors in a session's indexes, for its embedder. The indexes hold the embedder, so
    it must not hold them."""
    held = weakref.ref(indexes)

    def stored_vectors(fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        found = held()
        return {} if found is None else found.vectors(fingerprint, keys)

    return stored_vectors
