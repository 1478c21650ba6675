"""Searches as DataFusion tables: the name encodes the search, and a scan runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion.catalog import SchemaProvider, Table

from blendfusion.planner.ir.search_tables import Search
from blendfusion.services.scans.python_table import ScannedTable, Scanner, scan_of

if TYPE_CHECKING:
    from blendfusion.services.search.indexes import Indexes


class SearchTables(SchemaProvider):
    """A schema with a table for every search of a session's indexes. It lists none of them."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # what DataFusion reads it as
        return []

    def table(self, name: str) -> Table | None:
        try:
            search = Search(**json.loads(name))
        except (ValueError, TypeError):
            return None
        return Table(SearchRows(self._indexes, search))

    def table_exist(self, name: str) -> bool:
        return name.startswith("{")


class SearchRows(ScannedTable):
    """The rows of a search, which runs when the first row is read, not during planning."""

    def __init__(self, indexes: Indexes, search: Search) -> None:
        super().__init__()
        self._indexes = indexes
        self._search = search
        self._schema = indexes.index(search.index).schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        query = self._search.query
        assert query is not None
        rows = self._indexes.search(self._search, [query], self._schema)[0]
        return scan_of(rows)(columns, where, batch_size)
