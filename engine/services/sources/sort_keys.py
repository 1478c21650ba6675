"""ORDER BY as DataFusion sorts: NULL where the query puts it, texts by their bytes, and the zero
with a sign before the one without."""

from __future__ import annotations

from sqlglot import exp

from blendfusion.services.sources.database import Column
from blendfusion.services.sources.scan_advice import SortKey
from blendfusion.services.sources.text_patterns import by_bytes


def order_keys(column: Column, key: SortKey, dialect: str) -> list[exp.Expr]:
    """The keys of ORDER BY for a column."""
    value = by_bytes(column, dialect) if column.kind == "text" else column.here
    found: list[exp.Expr] = [
        exp.Ordered(this=value, desc=key.descending, nulls_first=key.nulls_first)
    ]
    if column.kind == "float":
        text = exp.cast(column.here, "CHAR" if dialect == "mysql" else "VARCHAR")
        sign = exp.Like(this=text, expression=exp.Literal.string("-0%"))
        tie = exp.case().when(sign, exp.Literal.number(0)).else_(exp.Literal.number(1))
        found.append(exp.Ordered(this=tie, desc=key.descending, nulls_first=not key.descending))
    return found
