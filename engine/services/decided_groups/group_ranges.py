"""The ranges of what the aggregates of groups can be while some answers are unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blendfusion.planner.ir.aggregates import has_order, is_of_distinct
from blendfusion.planner.ir.nodes import Expr, Measure, Node
from blendfusion.run.execution.ranges import (
    EXACT,
    WHOLE,
    Masks,
    Numbers,
    Range,
    unknown_range,
    widen,
)

Places = NDArray[np.int64]

_WRAPS = 2.0**62
"""Sums of 64-bit numbers below this do not wrap around."""


@dataclass(frozen=True, slots=True)
class GroupedRows:
    """Some rows, those of one group behind another: ``starts`` has the first row of each group."""

    starts: Places
    n: int

    def sums(self, values: Numbers | Masks) -> Numbers:
        with np.errstate(invalid="ignore"):  # infinities of both signs
            total: Numbers = np.add.reduceat(values.astype(np.float64), self.starts)
        return total

    def greatest(self, values: Numbers) -> Numbers:
        found: Numbers = np.maximum.reduceat(values, self.starts)
        return found

    @property
    def places(self) -> Places:
        """The number of each row's group."""
        lengths = np.diff(self.starts, append=self.n)
        return np.repeat(np.arange(len(self.starts)), lengths)


@dataclass(frozen=True, slots=True)
class MeasureRows:
    """The rows of which an aggregate may have a value (``possible``), those of which it has one for
    certain, and the range of the value."""

    possible: Masks
    certain: Masks
    value: Range


def rows_of_measure(
    measure: Measure, present: Range, column: Callable[[Expr], Range]
) -> MeasureRows:
    """The rows that an aggregate counts, given which rows its group has (``present``)."""
    possible, certain = present.true, present.certain
    if measure.filter is not None:
        kept = column(measure.filter)
        possible, certain = possible & kept.true, certain & kept.certain
    value = column(decisive_value(measure))
    return MeasureRows(possible & value.value, certain & value.value & ~value.null, value)


def is_bounded(measure: Measure) -> bool:
    """Whether known answers bound the aggregate, so that a test of it may need no others."""
    if measure.n_args != 1:
        return False
    if measure.n_sorts:
        return has_order(measure)
    return measure.name == "count" if is_of_distinct(measure) else measure.name in _RANGES


def has_extreme(measure: Measure) -> bool:
    """Whether the aggregate is the value of one row, so that the first rows by value decide it."""
    return measure.name in ("min", "max", "bool_or", "bool_and") or has_order(measure)


def decisive_value(measure: Measure) -> Expr:
    """The value by which rows decide the aggregate: its argument, or the place of the row in its
    order."""
    if not has_order(measure):
        return measure.args[0]
    return Node("place", measure.template, measure.exprs[: measure.n_sorts])


def range_of_aggregate(name: str, rows: MeasureRows, groups: GroupedRows) -> Range:
    """The range of an aggregate in each group, as DataFusion would compute it."""
    return _RANGES[name](rows, groups)


def range_of_distinct(rows: MeasureRows, codes: Places, groups: GroupedRows) -> Range:
    """The range of a number of distinct values. ``codes``: equal ones in a group are equal values;
    -1 is a value that nobody knows yet."""
    known = codes >= 0
    own = groups.places
    n = len(groups.starts)
    low = _distinct(own, codes, rows.certain & known, n)
    some = np.minimum(groups.sums(rows.certain & ~known), 1.0)
    high = _distinct(own, codes, rows.possible & known, n) + groups.sums(rows.possible & ~known)
    return _always(np.maximum(low, some), high, "int")


def values_counted(rows: MeasureRows, codes: Places, groups: GroupedRows) -> Masks:
    """The rows whose value their group counts already, because some row has it for certain."""
    known = codes >= 0
    pairs = groups.places * (int(codes.max(initial=0)) + 1) + codes
    return np.asarray(known & np.isin(pairs, pairs[rows.certain & known]))


def _distinct(own: Places, codes: Places, mask: Masks, n: int) -> Numbers:
    values = int(codes.max(initial=0)) + 1
    pairs = np.unique(own[mask] * values + codes[mask])
    return np.bincount(pairs // values, minlength=n).astype(np.float64)


def weight(measure: Measure, rows: MeasureRows) -> Numbers:
    """How far the answers about a row can move an aggregate, from 0 to 2."""
    value = rows.value
    if has_extreme(measure):
        high = value.high if measure.name in ("max", "bool_or") else -value.low
        return np.where(rows.possible, 1.0 + _share(high), 0.0)
    if measure.name in ("sum", "avg") and not is_of_distinct(measure):
        low, high = _parts(rows)
        return _share(high - low)
    return np.where(rows.possible & ~(rows.certain & value.single), 1.0, 0.0)


def _share(values: Numbers) -> Numbers:
    """Numbers on a scale from 0 to 1."""
    finite = values[np.isfinite(values)]
    least, most = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    least = min(least, 0.0)
    scale = most - least or 1.0
    return np.clip((np.clip(values, least, most) - least) / scale, 0.0, 1.0)


def _parts(rows: MeasureRows) -> tuple[Numbers, Numbers]:
    """The least and the most that each row adds to a sum."""
    value = rows.value
    low = np.where(rows.certain, value.low, np.minimum(value.low, 0.0))
    high = np.where(rows.certain, value.high, np.maximum(value.high, 0.0))
    return np.where(rows.possible, low, 0.0), np.where(rows.possible, high, 0.0)


def _always(low: Numbers, high: Numbers, kind: str) -> Range:
    never = np.zeros(len(low), dtype=bool)
    return Range(low, high, never, ~never, kind)


def _count(rows: MeasureRows, groups: GroupedRows) -> Range:
    return _always(groups.sums(rows.certain), groups.sums(rows.possible), "int")


def _sum(rows: MeasureRows, groups: GroupedRows) -> Range:
    low, high = _sums(rows, groups)
    null = groups.sums(rows.certain) == 0
    value = groups.sums(rows.possible) > 0
    return Range(low, high, null, value, kind_of_sum(rows.value.kind))


def kind_of_sum(kind: str) -> str:
    """The kind of a sum; narrow numbers have sums of 64 bits."""
    return {"narrow": "int"}.get(kind, kind) if kind in (*WHOLE, "float") else "other"


def _adds(rows: MeasureRows) -> bool:
    return rows.value.kind in (*WHOLE, "float")


def _sums(rows: MeasureRows, groups: GroupedRows) -> tuple[Numbers, Numbers]:
    least, most = _parts(rows)
    low, high = groups.sums(least), groups.sums(most)
    size = groups.sums(np.maximum(np.abs(least), np.abs(most)))
    return _round(low, high, size, whole=_whole(least, most))


def _whole(*values: Numbers) -> bool:
    """Whether all of these are whole numbers, whose sums are exact in any order."""
    return all(bool((v == np.rint(v)).all()) for v in values)


def _round(low: Numbers, high: Numbers, size: Numbers, *, whole: bool) -> tuple[Numbers, Numbers]:
    wide = widen(low, high, size)
    inexact = ~(size <= EXACT) if whole else np.ones(len(low), dtype=bool)
    low, high = np.where(inexact, wide[0], low), np.where(inexact, wide[1], high)
    unbounded = ~(size < _WRAPS)
    return np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)


def _average(rows: MeasureRows, groups: GroupedRows) -> Range:
    certain, possible = groups.sums(rows.certain), groups.sums(rows.possible)
    if not _adds(rows):
        return replace(unknown_range(len(certain)), null=certain == 0, value=possible > 0)
    value = rows.value
    own = np.where(rows.certain, value.low, 0.0), np.where(rows.certain, value.high, 0.0)
    size = groups.sums(np.maximum(np.abs(own[0]), np.abs(own[1])))
    sums = _round(groups.sums(own[0]), groups.sums(own[1]), size, whole=_whole(*own))
    others = rows.possible & ~rows.certain
    n = possible - certain
    least = -groups.greatest(np.where(others, -value.low, -np.inf))
    most = groups.greatest(np.where(others, value.high, -np.inf))
    with np.errstate(all="ignore"):
        # Those that may be left out count all or not at all: any other mean lies in between.
        low = np.fmin(sums[0] / certain, (sums[0] + n * least) / (certain + n))
        high = np.fmax(sums[1] / certain, (sums[1] + n * most) / (certain + n))
    low = np.where(n > 0, low, sums[0] / np.maximum(certain, 1))
    high = np.where(n > 0, high, sums[1] / np.maximum(certain, 1))
    wide = widen(low, high, np.maximum(np.abs(low), np.abs(high)))
    low, high = np.where(n > 0, wide[0], low), np.where(n > 0, wide[1], high)
    unbounded = ~np.isfinite(low) | ~np.isfinite(high)
    low, high = np.where(unbounded, -np.inf, low), np.where(unbounded, np.inf, high)
    return Range(low, high, certain == 0, possible > 0, "float")


def _most(rows: MeasureRows, groups: GroupedRows) -> Range:
    low = groups.greatest(np.where(rows.certain, rows.value.low, -np.inf))
    high = groups.greatest(np.where(rows.possible, rows.value.high, -np.inf))
    null, value = groups.sums(rows.certain) == 0, groups.sums(rows.possible) > 0
    # Where no row is certain, the one that comes has at least the least value of all.
    least = -groups.greatest(np.where(rows.possible, -rows.value.low, -np.inf))
    low = np.where(null, least, low)
    low, high = np.where(value, low, 0.0), np.where(value, high, 0.0)
    return Range(low, high, null, value, rows.value.kind)


def _least(rows: MeasureRows, groups: GroupedRows) -> Range:
    value = rows.value
    turned = Range(-value.high, -value.low, value.null, value.value, value.kind)
    found = _most(MeasureRows(rows.possible, rows.certain, turned), groups)
    return Range(-found.high, -found.low, found.null, found.value, found.kind)


_RANGES: dict[str, Callable[[MeasureRows, GroupedRows], Range]] = {
    "count": _count,
    "sum": _sum,
    "avg": _average,
    "min": _least,
    "max": _most,
    "bool_or": _most,
    "bool_and": _least,
    "first_value": _least,
    "last_value": _least,
}
