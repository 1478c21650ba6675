"""What dbt asks an adapter for: relations, columns, and the writing of models and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import agate
import pyarrow as pa
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.blendfusion.connections import BlendFusionConnectionManager, OpenSession
from dbt.adapters.blendfusion.views import CATALOG
from dbt.adapters.sql import SQLAdapter
from dbt_common.clients.agate_helper import Integer, table_from_rows
from dbt_common.exceptions import DbtRuntimeError

from blendfusion import Session

_TYPES: tuple[tuple[type, pa.DataType], ...] = (
    (Integer, pa.int64()),
    (agate.Number, pa.float64()),
    (agate.Boolean, pa.bool_()),
    (agate.Date, pa.date32()),
    (agate.DateTime, pa.timestamp("us")),
)
"""The types of a seed's columns, of which others are texts."""
_CATALOG_NAMES = (
    *("table_database", "table_schema", "table_name", "table_type", "table_comment"),
    *("table_owner", "column_name", "column_index", "column_type", "column_comment"),
)


class BlendFusionAdapter(SQLAdapter):
    """Tables lie in the attached database of the target, views in the session."""

    ConnectionManager = BlendFusionConnectionManager

    @classmethod
    def date_function(cls) -> str:
        return "now()"

    @property
    def _open(self) -> OpenSession:
        return BlendFusionConnectionManager.opened(self.config.credentials)

    @property
    def _session(self) -> Session:
        return self._open.session

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge"]

    # --- what is there ---------------------------------------------------------------------------

    def list_schemas(self, database: str) -> list[str]:
        database = database.strip('"')  # dbt quotes it
        if database in self._session.attached:
            return list(self._session.attached[database].database.schemas())
        return sorted({schema for schema, _, _ in self._tables(database)})

    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema in self.list_schemas(database)

    def create_schema(self, relation: BaseRelation) -> None:
        if relation.database == CATALOG:
            return  # made with its first view
        raise DbtRuntimeError(
            f"the database '{relation.database}' has no schema '{relation.schema}': make it there, "
            f"or name one of {', '.join(self.list_schemas(relation.database))}"
        )

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        place = {"database": schema_relation.database, "schema": schema_relation.schema}
        return [
            self.Relation.create(identifier=name, type=kind, **place)
            for schema, name, kind in self._tables(schema_relation.database)
            if schema == schema_relation.schema
        ]

    def _tables(self, catalog: str) -> list[tuple[str, str, str]]:
        """(schema, name, 'view' or 'table') of each table of a catalog."""
        found = self._session.sql(
            "SELECT table_schema AS s, table_name AS n, table_type AS t "
            "FROM information_schema.tables WHERE table_catalog = $catalog ORDER BY 1, 2",
            param_values={"catalog": catalog},
        ).to_pylist()
        kinds = {"VIEW": "view"}
        return [(row["s"], row["n"], kinds.get(row["t"], "table")) for row in found]

    def get_columns_in_relation(self, relation: BaseRelation) -> list[Any]:
        fields = self._session.table(relation.render()).schema()
        return [self.Column(field.name, str(field.type)) for field in fields]

    def _get_one_catalog(
        self, information_schema: Any, schemas: set[str], used_schemas: Any
    ) -> agate.Table:
        database = information_schema.database
        rows = []
        for schema in schemas:
            place = self.Relation.create(database=database, schema=schema)
            for found in self.list_relations_without_caching(place):
                head = database, schema, found.identifier, str(found.type), None, None
                for index, column in enumerate(self.get_columns_in_relation(found), 1):
                    rows.append((*head, column.name, index, column.dtype, None))
        return self._catalog_filter_table(table_from_rows(rows, _CATALOG_NAMES), used_schemas)

    # --- what is made ----------------------------------------------------------------------------

    @available
    def keep_view(self, relation: BaseRelation, sql: str) -> None:
        """Make a view that the next runs of dbt have, too."""
        with self.connections.exception_handler(sql):
            self._open.views.keep(relation.schema, relation.identifier, sql)

    @available
    def renew_views(self) -> None:
        """Plan the views again, after a table that they may read was replaced."""
        self._open.views.create_all()

    @available
    def write_rows(self, relation: BaseRelation, sql: str, key: Any) -> int:
        """Add the rows of a query to a table, those with an equal ``key`` replaced. Returns the
        number of rows."""
        keys = [key] if isinstance(key, str) else list(key or [])
        with self.connections.exception_handler(sql):
            report = self._session.sql(sql).write_table(
                relation.render(), mode="upsert" if keys else "append", key=keys or None
            )
        return report.rows

    @available
    def load_seed(
        self, relation: BaseRelation, seed: agate.Table, column_types: Mapping[str, str]
    ) -> int:
        """Make the table of a seed. Returns the number of rows."""
        rows = pa.table(
            {
                column.name: _array(column.data_type, [row[at] for row in seed.rows])
                for at, column in enumerate(seed.columns)
            }
        )
        columns = ", ".join(
            _selected(self.quote(n), column_types.get(n)) for n in rows.column_names
        )
        sql = f"CREATE OR REPLACE TABLE {relation.render()} AS SELECT {columns} FROM $rows"
        with self.connections.exception_handler(sql):
            self._session.sql(sql, rows=rows)
        return rows.num_rows

    def drop_relation(self, relation: BaseRelation) -> None:
        if not relation.is_view:
            raise _refusal("drop", relation)
        self.cache_dropped(relation)
        self._open.views.keep(relation.schema, relation.identifier, None)

    def truncate_relation(self, relation: BaseRelation) -> None:
        raise _refusal("truncate", relation)

    def rename_relation(self, from_relation: BaseRelation, to_relation: BaseRelation) -> None:
        raise _refusal("rename", from_relation)

    def drop_schema(self, relation: BaseRelation) -> None:
        raise _refusal("drop", relation)


def _array(kind: Any, values: Iterable[Any]) -> pa.Array:
    """The values of a column of a seed."""
    found = next((own for theirs, own in _TYPES if isinstance(kind, theirs)), pa.string())
    texts = pa.types.is_string(found)
    change = str if texts else float if pa.types.is_floating(found) else lambda value: value
    return pa.array([None if value is None else change(value) for value in values], found)


def _selected(column: str, kind: str | None) -> str:
    return column if kind is None else f"CAST({column} AS {kind}) AS {column}"


def _refusal(verb: str, relation: BaseRelation) -> DbtRuntimeError:
    return DbtRuntimeError(
        f"to {verb} {relation.render()} is left to the tools of its database: BlendFusion only writes"
    )
