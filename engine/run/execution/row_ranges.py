"""The ranges of expressions on rows, before any question about them is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blendfusion.planner.ir.necessary import ALWAYS, never_fails, not_null
from blendfusion.planner.ir.nodes import Ask, Expr, Field, asks, fields, needs_model
from blendfusion.run.execution.ranges import Range, range_of, range_of_answers, range_of_values
from blendfusion.run.execution.scratch_context import Workbench


class RowRanges:
    """The ranges of expressions on the rows of a table. One plan computes all parts of them that
    need no answer."""

    def __init__(
        self, exprs: Sequence[Expr], table: pa.Table, workbench: Callable[[], Workbench]
    ) -> None:
        self._table = table
        self._ranges: dict[Expr, Range] = {}
        parts = [e for e in exprs if not needs_model(e)]
        parts += [p for e in exprs for p in plain_parts(e)]
        tests = [not_null(ask) for e in exprs for ask in asks(e)]
        parts += [test for test in tests if test != ALWAYS]
        wanted = [p for p in dict.fromkeys(parts) if not isinstance(p, Field)]
        values = workbench().columns(wanted, table) if wanted else []
        self.plain: dict[Expr, pa.ChunkedArray] = dict(zip(wanted, values, strict=True))
        """The values of parts that need no answer."""

    def of(self, expr: Expr) -> Range:
        """The range of one of the expressions."""
        return range_of(expr, self._leaf, len(self._table))

    def range_with(
        self, expr: Expr, values: Mapping[Expr, Range], places: NDArray[np.int64]
    ) -> Range:
        """The range of one of the expressions on some rows, if parts of it have these ``values``
        there."""

        def leaf(part: Expr) -> Range | None:
            found = values.get(part) if needs_model(part) else None
            if found is not None:
                return found
            own = self._leaf(part)
            return None if own is None else own.take(places)

        return range_of(expr, leaf, len(places))

    def _leaf(self, expr: Expr) -> Range | None:
        if expr in self._ranges:
            return self._ranges[expr]
        if isinstance(expr, Ask):
            test = not_null(expr)
            n = len(self._table)
            present = np.ones(n, dtype=bool)
            if test != ALWAYS:
                present = range_of_values(self.plain[test]).true
            found = range_of_answers(expr, n, present)
        elif isinstance(expr, Field):
            found = range_of_values(self._table.column(expr.index))
        elif expr in self.plain:
            found = range_of_values(self.plain[expr])
        else:
            return None
        self._ranges[expr] = found
        return found


def plain_parts(expr: Expr) -> list[Expr]:
    """The largest parts of an expression without calls that have a value on every row."""
    if not needs_model(expr) and never_fails(expr):
        return [expr]
    return [] if isinstance(expr, Ask) else [p for c in expr.children for p in plain_parts(c)]


def may_decide_rows(expr: Expr) -> bool:
    """Whether the ranges of a condition's answers may decide it on some rows: it has numbers with
    bounds, beside columns."""
    found = [*asks(expr)]
    plain = all(ask.call.ingredient.kind.asks_model and ask.domain is None for ask in found)
    beside = any(fields(part) for part in plain_parts(expr))
    return plain and beside and any(ask.call.is_bounded for ask in found)
