"""Small DataFusion plans over one chunk of rows, for the expressions between two model calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from datafusion import ScalarUDF, SessionConfig, SessionContext

from blendfusion.datafusion.arrow_layouts import plain_batch, plain_schema
from blendfusion.datafusion.substrait.write import write
from blendfusion.datafusion.substrait_io import batches_of, frame_of, relation_of
from blendfusion.planner.ir.builders import is_bigint_literal, literal, project
from blendfusion.planner.ir.nodes import Expr, Field, Node, StoredRows, fields, substitute

_TABLE = "rows"
_SLOT = 0
_INDIRECT = (pa.DictionaryType, pa.RunEndEncodedType, pa.UnionType)
"""Types whose values are elsewhere, and with them whether they are NULL."""


class Workbench:
    """Evaluates DataFusion expressions on tables, in the order of their rows.

    It has a context with one partition, so that it does not affect the session, and rows keep their
    order. ``functions`` are the user's functions in the expressions; ``settings`` are those of the
    session, such as its time zone. For one thread at a time.
    """

    def __init__(
        self, functions: Iterable[ScalarUDF] = (), settings: SessionConfig | None = None
    ) -> None:
        config = settings or SessionConfig()
        config = config.with_target_partitions(1).with_create_default_catalog_and_schema(True)
        self._context = SessionContext(config)
        for function in functions:
            self._context.register_udf(function)
        self._relations: dict[pa.Schema, bytes] = {}

    def columns(self, exprs: Sequence[Expr], table: pa.Table) -> list[pa.ChunkedArray]:
        """One array per expression, over the columns of ``table`` by position."""
        found = [_without_plan(e, table) for e in exprs]
        planned = [e for e, values in zip(exprs, found, strict=True) if values is None]
        others = iter(self._compute(planned, table) if planned else [])
        return [next(others) if values is None else values for values in found]

    def _compute(self, exprs: Sequence[Expr], table: pa.Table) -> list[pa.ChunkedArray]:
        table, exprs = _narrow(table, exprs)
        self._context.register_record_batches(_TABLE, [batches_of(table)])
        try:
            if table.schema not in self._relations:
                self._relations[table.schema] = relation_of(self._context, _TABLE)
            source = StoredRows(_SLOT, table.num_columns)
            plan, stored = project(source, tuple(exprs)), {_SLOT: self._relations[table.schema]}
            frame = frame_of(self._context, write(plan, stored))
            try:
                schema = plain_schema(frame.schema())
            except pa.lib.ArrowException:
                # DataFusion names an expression by its text; Arrow's C interface takes no NUL byte.
                names = [str(i) for i in range(len(exprs))]
                frame = frame_of(self._context, write(plan, stored, names))
                schema = plain_schema(frame.schema())
            found = [plain_batch(batch, schema) for batch in frame.collect()]
        finally:
            self._context.deregister_table(_TABLE)
        return [
            pa.chunked_array([b.column(i) for b in found], type=schema.field(i).type)
            for i in range(len(exprs))
        ]


def _without_plan(expr: Expr, table: pa.Table) -> pa.ChunkedArray | None:
    """The values of a literal, or of a test of a column for NULL; None of anything else."""
    if not isinstance(expr, Node):
        return None
    if expr.name == "is_not_null" and isinstance(expr.children[0], Field):
        column = table.column(expr.children[0].index)
        return None if isinstance(column.type, _INDIRECT) else column.is_valid()
    value = literal(expr)
    if isinstance(value, bool) or (isinstance(value, int) and is_bigint_literal(expr)):
        return pa.chunked_array([pa.repeat(pa.scalar(value), len(table))])
    return None


def _narrow(table: pa.Table, exprs: Sequence[Expr]) -> tuple[pa.Table, list[Expr]]:
    """The table with only the columns that are read, named by position, and the expressions over
    it. It has at least one column, to keep its number of rows."""
    used = sorted(set().union(*(fields(e) for e in exprs)))
    place = {old: Field(new) for new, old in enumerate(used)}
    columns = [table.column(i) for i in used] or [pa.nulls(len(table), pa.bool_())]
    moved = [
        substitute(e, lambda part: place[part.index] if isinstance(part, Field) else None)
        for e in exprs
    ]
    return pa.table(columns, names=[str(i) for i in range(len(columns))]), moved
