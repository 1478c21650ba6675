"""A schema of tables that queries name."""

from __future__ import annotations

import pyarrow as pa
from datafusion.catalog import SchemaProvider, Table


class NamedTables(SchemaProvider):
    """A schema that keeps each table as it was when the latest query named it. ``table_names`` is
    empty."""

    def __init__(self) -> None:
        self.tables: dict[str, pa.Table] = {}

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # what DataFusion reads it as
        return []

    def table(self, name: str) -> Table | None:
        import pyarrow.dataset as pads

        rows = self.tables.get(name)
        return None if rows is None else Table(pads.dataset(rows))

    def table_exist(self, name: str) -> bool:
        return name in self.tables
