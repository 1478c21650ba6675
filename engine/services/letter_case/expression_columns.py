"""The columns that an expression of DataFusion names, given other names."""

from __future__ import annotations

from collections.abc import Callable

from datafusion import Expr, SessionContext

from blendfusion.datafusion.columns import Column
from blendfusion.datafusion.expression_messages import (
    COLUMN,
    PLACES,
    change_fields,
    message_field,
    message_fields,
    within,
)
from blendfusion.udfs.declare.arguments import quoted_name

Renaming = Callable[[Column], Column]


def with_columns(expr: Expr, renaming: Renaming, context: SessionContext) -> Expr:
    """``expr`` with every column as ``renaming`` gives it; Python's functions in it must be
    registered in ``context``. Raises what DataFusion raises for an expression that it cannot
    encode: one with a subquery."""
    by_name = SessionContext.with_python_udf_inlining(context, enabled=False)
    return Expr.from_bytes(_expression(expr.to_bytes(by_name), renaming), by_name)


def _expression(data: bytes, renaming: Renaming) -> bytes:
    def kind(number: int, content: bytes) -> bytes:
        if number == COLUMN:
            return _column(content, renaming)
        return within(content, PLACES.get(number, {}), lambda part: _expression(part, renaming))

    return change_fields(data, kind)


def _column(data: bytes, renaming: Renaming) -> bytes:
    parts = {number: content for number, _, content in message_fields(data) if content is not None}
    relation = parts.get(2, b"")
    named = b"".join(content or b"" for _, _, content in message_fields(relation)).decode()
    named = ".".join(map(quoted_name, named.split("."))) if named else ""  # it comes without
    column = renaming(Column(parts.get(1, b"").decode(), named))
    written = message_field(1, column.name.encode())
    if not column.relation:
        return written
    return written + message_field(2, message_field(1, column.relation.encode()))
