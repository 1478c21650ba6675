"""Opaque tables (leaves): plans without calls that DataFusion runs unchanged.

Substrait has no form for some plans (UNNEST, recursive queries) and some types (vectors). During
planning, such a plan is a table with its columns; afterwards, the name refers to the plan itself,
as a view. Nothing is stored: DataFusion reads a view as a part of the surrounding plan and pushes
filters, limits and columns into it, and its rows stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from threading import RLock
from weakref import WeakValueDictionary

import pyarrow as pa
from datafusion import DataFrame, Expr, SessionContext, col
from datafusion.catalog import SchemaProvider, Table

from blendfusion.datafusion.planned_types import planned_schema
from blendfusion.datafusion.substrait_io import batches_of
from blendfusion.errors import PlanError
from blendfusion.planner.ir.opaque_names import CATALOG, QUERIES, TABLES, leaf_name
from blendfusion.udfs.declare.arguments import quoted_name

_SERIALS = count(1)
_MOST_DIGITS = 38
"""The digits of a decimal in 128 bits."""


class Leaf:
    """One plan behind a name, which exists as long as the leaf is held."""

    def __init__(
        self, name: str, schema: str, table: Table, view: Table, retyped: Sequence[pa.DataType]
    ) -> None:
        self.name = name
        self.schema = schema
        self.retyped = retyped
        """The types in the plan of columns that have another one here."""
        self._table = table
        self._view = view
        self._open = False
        self._binding = RLock()

    @property
    def rounds(self) -> bool:
        """Whether arithmetic with a column may give other digits here than in the plan."""
        return any(map(pa.types.is_decimal, self.retyped))

    @property
    def sql(self) -> str:
        """The leaf's name in SQL."""
        return f"{CATALOG}.{self.schema}.{quoted_name(self.name)}"

    def open(self) -> None:
        """Make the name refer to the plan from now on."""
        self._open = True

    @contextmanager
    def bind(self, view: DataFrame) -> Iterator[None]:
        """Make the name refer to another plan within this context; other threads wait. Its columns
        keep their names, of which an expression without an alias has one after its table."""
        names, found = self._table.schema.names, view.schema().names
        if found != names:
            pairs = zip(found, names, strict=True)
            view = view.select(*(col(quoted_name(old)).alias(new) for old, new in pairs))
        with self._binding:
            before, self._view = self._view, Table(view)
            try:
                yield
            finally:
                self._view = before

    def provider(self) -> Table:
        return self._view if self._open else self._table


class Leaves(SchemaProvider):
    """A schema of the leaves that are held. It lists none, since they are private to their
    frames."""

    def __init__(self) -> None:
        self._leaves: WeakValueDictionary[str, Leaf] = WeakValueDictionary()

    def add(self, leaf: Leaf) -> None:
        self._leaves[leaf.name] = leaf

    def names(self) -> set[str]:
        """The names of the leaves that are held."""
        return set(self._leaves)

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # what DataFusion reads it as
        return []

    def table(self, name: str) -> Table | None:
        leaf = self._leaves.get(name)
        return None if leaf is None else leaf.provider()

    def table_exist(self, name: str) -> bool:
        return name in self._leaves


class LeafMaker:
    """Makes the leaves of one session."""

    def __init__(self) -> None:
        self._schemas = {TABLES: Leaves(), QUERIES: Leaves()}
        self._scratch = SessionContext()

    def schemas(self) -> dict[str, Leaves]:
        """The schemas of leaves, by name."""
        return self._schemas

    def make(self, frame: DataFrame, schema: str, text: str) -> Leaf:
        """A leaf of ``frame``, which has no calls. Raises PlanError for unsupported columns."""
        view, retyped = surviving(frame)
        return self._add(planned_schema(view), schema, text, Table(view), retyped=retyped)

    def placeholder(self, columns: pa.Schema, text: str) -> Leaf:
        """A leaf that is only a table with these columns."""
        return self._add(columns, TABLES, text, None, retyped=())

    def _add(
        self,
        columns: pa.Schema,
        schema: str,
        text: str,
        view: Table | None,
        *,
        retyped: Sequence[pa.DataType],
    ) -> Leaf:
        name = leaf_name(next(_SERIALS), text)
        self._scratch.register_record_batches(
            quoted_name(name), [batches_of(columns.empty_table())]
        )
        try:
            table = self._scratch.catalog().schema().table(name)
        finally:
            self._scratch.deregister_table(quoted_name(name))
        leaf = Leaf(name, schema, table, view or table, retyped)
        self._schemas[schema].add(leaf)
        return leaf


def surviving(frame: DataFrame) -> tuple[DataFrame, list[pa.DataType]]:
    """``frame`` with only columns of supported types, and the types of those that have a new
    one."""
    schema = planned_schema(frame)
    if len(set(schema.names)) < len(schema.names):
        raise PlanError("columns of one name in a plan that Substrait cannot express")
    columns: list[Expr] = []
    retyped = []
    for field in schema:
        kind = surviving_type(field.type)
        if kind is None:
            continue
        column = col(quoted_name(field.name))
        if kind != field.type:
            retyped.append(field.type)
            column = column.cast(kind).alias(field.name)
        columns.append(column)
    if not columns:
        raise PlanError("no column of a type that can be expressed in Substrait")
    if len(columns) == len(schema) and not retyped:
        return DataFrame(frame.df), []
    return DataFrame(DataFrame.select(frame, *columns).df), retyped


def surviving_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that represents ``kind`` in a plan: a list for a vector, text for a dictionary of
    texts, for no type a boolean, which is compared with nothing else; ``kind`` itself for most
    types; None without one.

    >>> surviving_type(pa.list_(pa.float32(), 3))
    ListType(list<item: float>)
    """
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return surviving_type(kind.value_type)
    if pa.types.is_decimal(kind) and kind.precision <= _MOST_DIGITS:
        return pa.decimal128(kind.precision, kind.scale)
    return pa.bool_() if pa.types.is_null(kind) else _surviving_inside(kind)


def _surviving_inside(kind: pa.DataType) -> pa.DataType | None:
    """The same, inside another type."""
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind):
        field = _surviving_field(kind.value_field)
        return None if field is None else pa.list_(field)
    if pa.types.is_large_list(kind):
        field = _surviving_field(kind.value_field)
        return None if field is None else pa.large_list(field)
    if pa.types.is_struct(kind):
        kept = [f for f in map(_surviving_field, kind) if f is not None]
        return pa.struct(kept) if len(kept) == kind.num_fields else None
    return None if _is_dropped(kind) else kind


def _surviving_field(field: pa.Field) -> pa.Field | None:
    kind = _surviving_inside(field.type)
    return None if kind is None else field.with_type(kind)


def _is_dropped(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return bool(_surviving_inside(kind.storage_type) != kind.storage_type)
    if pa.types.is_map(kind):
        inner = (kind.key_type, kind.item_type)
        return any(_surviving_inside(part) != part for part in inner)
    if pa.types.is_dictionary(kind):
        return bool(_surviving_inside(kind.value_type) != kind.value_type)
    return any(
        test(kind)
        for test in (
            pa.types.is_null,
            pa.types.is_float16,
            pa.types.is_decimal32,
            pa.types.is_decimal64,
            pa.types.is_run_end_encoded,
            pa.types.is_union,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )
