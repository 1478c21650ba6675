"""Evaluates a subquery in the place of a literal, to columns of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import Expr, col

from blendfusion.errors import QueryError
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.session import Session


def standing_alone(session: Session, query: str, shown: str) -> Frame:
    """The frame of a query that stands alone; nothing runs. Raises QueryError, which names it as
    ``shown``."""
    try:
        return session.sql(query)
    except QueryError as problem:
        hint = problem.hint
        if problem.message.startswith("unknown column"):
            hint = f"{hint or ''} The subquery sees no column of the query around it.".strip()
        raise QueryError(f"{shown}: {problem.message}", hint=hint) from problem


def text_columns(frame: Frame, shown: str) -> list[Expr]:
    """The columns of ``frame`` as texts, by names of their own. Raises QueryError for what has no
    text."""
    schema = frame.schema()
    texts = []
    for place, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            raise QueryError(
                f"{shown} gives values of type {kind}", hint="Select a column of texts."
            )
        texts.append(col(quoted_name(name)).cast(pa.string()).alias(f"part_{place}"))
    return texts
