"""The operator of a stage whose rows are groups: estimates in place of what a sample adds up to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.files.python_values import python_values
from blendfusion.planner.ir.nodes import Block, Expr, Field, fields
from blendfusion.planner.ir.sorts import ASC, DESC, reverse
from blendfusion.run.execution.equal_rows import keys_at
from blendfusion.run.execution.expressions import RowWise
from blendfusion.run.execution.ranges import Masks, Range, range_of, range_of_values
from blendfusion.run.observe.progress import count_noun
from blendfusion.services.approximate.bounds import Numbers
from blendfusion.services.approximate.measures import Bounds
from blendfusion.services.approximate.sample import SampledStage, range_of_constant
from blendfusion.services.decided_groups.decided_groups import SpareCounts
from blendfusion.services.decided_groups.row_answers import Survivors

_LINES = 20
"""The groups whose bounds ``show`` prints."""


class EstimatedGroups:
    """The groups of a sample, with its estimates."""

    def __init__(self, sample: SampledStage) -> None:
        self.sample = sample
        self._rowwise: RowWise | None = None
        self.table: pa.Table | None = None
        """The groups of the latest run; None before it."""
        self.bounds: dict[int, Bounds] = {}
        """The bounds of the aggregates of each of these, by their numbers among the columns."""
        self.rows = np.zeros((2, 0), dtype=np.int64)
        """The rows of each group that were asked about, and those that could have been."""

    def __str__(self) -> str:
        if self.table is None or not self.bounds:
            return "estimates in place of sums over the sample"
        return "; ".join(["estimates in place of sums over the sample", *self._certainty()])

    def __call__(
        self,
        block: Block,
        table: pa.Table,
        rowwise: RowWise,
        survivors: Survivors,
        counts: SpareCounts,
    ) -> pa.Table:
        """The groups in ``table``, with estimates where not all rows were asked about."""
        sample, n_keys = self.sample, self.sample.need.n_keys
        self.table, self.bounds, self._rowwise = table, {}, rowwise
        if not sample.bounds:
            return table
        table = _in_order(table, n_keys)
        every = np.arange(len(sample.questions))
        number = {key: i for i, key in enumerate(keys_at(sample.keys, every))}
        own = keys_at([table.column(i) for i in range(n_keys)], np.arange(len(table)))
        groups = np.array([number[key] for key in own], dtype=np.int64)
        self.rows = np.stack([sample.questions[groups], sample.rows[groups]])
        partly = self.rows[0] < self.rows[1]
        for i, bounds in sample.bounds.items():
            at = Bounds(bounds.low[groups], bounds.value[groups], bounds.high[groups])
            column = table.column(n_keys + i)
            known = partly & np.isfinite(at.value) & np.isfinite(at.high - at.low)
            table = table.set_column(
                n_keys + i, table.field(n_keys + i), _replace(column, at.value, known)
            )
            exact = range_of_values(column)
            low, high = np.where(known, at.low, exact.low), np.where(known, at.high, exact.high)
            low = np.where(partly & ~known, -np.inf, low)
            high = np.where(partly & ~known, np.inf, high)
            self.bounds[n_keys + i] = Bounds(low, at.value, high)
        self.table = table
        return table

    def lines(self, names: Sequence[str]) -> list[str]:
        """The bounds of each group, and with which certainty groups were chosen."""
        if self.table is None or not self.bounds:
            return []
        n_keys = self.sample.need.n_keys
        partly = np.flatnonzero(self.rows[0] < self.rows[1])
        missing = int((self.sample.questions < self.sample.rows).sum()) - len(partly)
        if not len(partly) and not missing:
            return []
        lines = [f"Bounds with confidence {self.sample.within.confidence:g}:"]
        shown = partly[:_LINES]
        columns = (python_values(self.table.column(i).take(shown)) for i in range(n_keys))
        keys = zip(*columns, strict=True) if n_keys else repeat(())
        for at, key in zip(shown, keys, strict=False):
            group = ", ".join(f"{names[i]} {value}" for i, value in enumerate(key))
            own = (
                f"{names[i]} {b.low[at]:,.6g} to {b.high[at]:,.6g}" for i, b in self.bounds.items()
            )
            rows = f"{self.rows[0][at]:,} of {self.rows[1][at]:,} rows asked"
            lines.append(f"  {group + ': ' if group else ''}{', '.join(own)} ({rows})")
        if len(partly) > _LINES:
            lines.append(f"  and {len(partly) - _LINES:,} groups more: see bounds()")
        if len(partly) < len(self.table):
            lines.append(f"  {len(self.table) - len(partly):,} groups are exact")
        if missing:
            groups = count_noun(missing, "group")
            lines.append(f"  {groups} may be missing: no row of the sample passes")
        return [*lines, *self._certainty()]

    def _certainty(self) -> list[str]:
        """With which certainty tests and a limit choose among the groups."""
        assert self.table is not None
        need, n = self.sample.need, len(self.table)
        notes: list[str] = []
        kept = np.ones(n, dtype=bool)
        if need.tests:
            true, possible = np.ones(n, dtype=bool), np.ones(n, dtype=bool)
            for test in need.tests:
                found = self._range(test)
                true, possible = true & found.certain, possible & found.true
            notes.append(
                f"HAVING: {true.sum():,} of {n:,} groups pass and {(~possible).sum():,} fail by their "
                f"whole interval, {(possible & ~true).sum():,} by the estimate alone"
            )
            kept = possible
        if need.has_limit and need.order and any(map(self._is_estimated, need.order)):
            notes.append(self._certainty_of_limit(kept))
        return notes

    def _certainty_of_limit(self, kept: Masks) -> str:
        need = self.sample.need
        assert need.count is not None
        found, direction = self._range(need.order[0]), need.directions[0]
        down = direction in (DESC, reverse(ASC))
        low, high = (found.low, found.high) if down else (-found.high, -found.low)
        low, high = low[kept], high[kept]
        start, end = min(need.offset, len(low)), min(need.offset + need.count, len(low))
        chosen = np.argsort(-(low + high), kind="stable")[start:end]
        # Those that are ahead of a group for sure, and those that may be (itself is one of these).
        ahead = len(low) - np.searchsorted(np.sort(low), high[chosen], side="right")
        may_be = len(low) - np.searchsorted(np.sort(high), low[chosen], side="left")
        sure = int(((ahead >= start) & (may_be <= end)).sum())
        behind = f" and behind {count_noun(start, 'other')}" if start else ""
        return (
            f"LIMIT: {sure:,} of {end - start:,} groups are ahead of all others{behind} by their "
            f"whole interval"
        )

    def _is_estimated(self, expr: Expr) -> bool:
        return bool(fields(expr) & self.bounds.keys())

    def _range(self, expr: Expr) -> Range:
        assert self.table is not None
        n = len(self.table)

        def leaf(part: Expr) -> Range | None:
            if isinstance(part, Field):
                known = range_of_values(self.table.column(part.index))  # type: ignore[union-attr]
                if part.index not in self.bounds:
                    return known
                own = self.bounds[part.index]
                return Range(own.low, own.high, known.null, known.value, known.kind)
            assert self._rowwise is not None
            return None if fields(part) else range_of_constant(part, self._rowwise, n)

        return range_of(expr, leaf, n)


def _in_order(table: pa.Table, n_keys: int) -> pa.Table:
    """Groups in the order of their keys, where these have one, so that all runs show the same."""
    keys = [(name, "ascending") for name in table.column_names[:n_keys]]
    try:
        return table.take(pc.sort_indices(table, keys)) if keys else table
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return table


def _replace(column: pa.ChunkedArray, value: Numbers, known: Masks) -> pa.Array:
    """``column`` with other values where they are ``known``, in its type."""
    numbers = np.where(known, value, 0.0)
    if pa.types.is_integer(column.type):
        numbers = np.rint(numbers)
    new = pc.cast(pa.array(numbers), column.type, safe=False)
    return pc.if_else(pa.array(known), new, column.combine_chunks())
