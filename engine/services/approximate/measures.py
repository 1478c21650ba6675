"""Counts, sums and averages of groups, estimated from a sample of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendfusion.run.execution.ranges import WHOLE
from blendfusion.services.approximate.bounds import Numbers, Places, means, shares, size_of_share
from blendfusion.services.decided_groups.group_ranges import MeasureRows

_OF_COUNT = 0.004
"""The part of the probability of an error that an average keeps for the number of its values."""
_LAST = 20
"""Where as few rows or a twentieth would be left, all are asked about: what so few add is no
normal number."""
_LAST_PART = 1.05
"""Where a group has at most so many times the rows of a sample, all of them are asked about."""
_CAUTION, _FEW = 0.85, 100
"""The part of the rows that seem to be needed that come next, where these are many more than those
so far: a small sample may let expect too many. Of less than ``_FEW``, three times as many at most.
"""


@dataclass(frozen=True, slots=True)
class Totals:
    """The rows of each group with a value, the sum of the values, and the sums of the powers of
    their places on the scale of the group, from 0 to 1."""

    count: Numbers
    sum: Numbers
    powers: tuple[Numbers, Numbers, Numbers]

    def at(self, groups: Places) -> Totals:
        one, two, three = (power[groups] for power in self.powers)
        return Totals(self.count[groups], self.sum[groups], (one, two, three))


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of an aggregate in each group, and the estimate."""

    low: Numbers
    value: Numbers
    high: Numbers

    def replace_at(self, groups: Places, new: Bounds) -> None:
        self.low[groups], self.value[groups], self.high[groups] = new.low, new.value, new.high


@dataclass(frozen=True, slots=True)
class Sample:
    """The sample of some groups: its rows, and the totals of these; ``left``: the rows of which it
    is a sample."""

    rows: Places
    totals: Totals
    left: Places


class Estimate:
    """One aggregate in all groups. ``part``: its rows before any is asked about, those ``open`` to
    questions; ``group``: the number of each row's group; ``two_values``: whether its value is one
    of two."""

    def __init__(
        self,
        name: str,
        part: MeasureRows,
        open_: NDArray[np.bool_],
        group: Places,
        n: int,
        *,
        two_values: bool,
    ) -> None:
        self._of_values = name == "avg"
        self._counts = name == "count"
        value, possible = part.value, part.possible & part.value.value
        low, high = (np.ones(len(group)),) * 2 if self._counts else (value.low, value.high)
        some = possible & open_
        if self._of_values:
            span = _widths(
                np.where(possible, low, np.inf), np.where(possible, high, -np.inf), group, n
            )
        else:
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
            added = np.ones(len(group)) if self._counts else np.where(some, high - low, 0.0)
            span = _sums(added, group, n)
        self.span = span
        """The greatest difference that there can be, of two values, or of two sums."""
        self._least = -_greatest(np.where(some, -low, -np.inf), group, n)
        width = _widths(np.where(some, low, np.inf), np.where(some, high, -np.inf), group, n)
        self._width = np.where(width > 0, width, 0.0)
        self.binary = np.full(n, self._counts)
        """The groups whose bounds are those of a number of rows, and exact."""
        if two_values or value.kind in (*WHOLE, "bool"):
            sometimes = open_ & ~(part.certain & part.value.value & ~part.value.null)
            always = ~np.bincount(group, weights=sometimes, minlength=n).astype(bool)
            from_zero = always if self._of_values else self._least == 0
            self.binary |= from_zero & (two_values | (self._width <= 1)) & (self._width > 0)
        closed = MeasureRows(part.possible & ~open_, part.certain & ~open_, part.value)
        self.known = self.totals(closed, group)
        """The totals of rows about which there is nothing to ask."""

    @property
    def is_bounded(self) -> NDArray[np.bool_]:
        """The groups of which a sample says something."""
        return np.isfinite(self.span) & np.isfinite(self._width)

    def totals(self, part: MeasureRows, group: Places) -> Totals:
        """The totals of rows of which all is known; ``group``: the number of each row's group."""
        n, there = len(self.span), part.certain & part.value.value
        value = np.where(there, part.value.low, 0.0)
        least, width = self._scale
        place = np.clip((value - least[group]) / width[group], 0.0, 1.0)
        one, two, three = (_sums(np.where(there, place**k, 0.0), group, n) for k in (1, 2, 3))
        count = _sums(there.astype(np.float64), group, n)
        return Totals(count, _sums(value, group, n), (one, two, three))

    @property
    def _scale(self) -> tuple[Numbers, Numbers]:
        """The least value of each group, and its distance from the greatest one."""
        least = np.where(np.isfinite(self._least), self._least, 0.0)
        width = np.where(np.isfinite(self._width) & (self._width > 0), self._width, 1.0)
        return least, width

    def room(self, groups: Places, sample: Sample, share: float) -> Numbers:
        """How many rows the bounds of a number of rows may be apart; of groups with ``binary``
        ones."""
        half = self._half(groups, share) / np.maximum(self._width[groups], 1e-300)
        rows = self.known.at(groups).count + sample.left if self._of_values else 1.0
        return np.asarray(2 * half * rows * (1 + 1e-9))

    def size_for_any(self, groups: Places, rows: Places, alpha: float, share: float) -> Places:
        """The rows that make bounds narrow enough, whatever is found; of groups with ``binary``
        ones."""
        none = np.zeros(len(groups))
        sample = Sample(rows, Totals(none, none, (none, none, none)), rows)
        half = 0.9995 * self.room(groups, sample, share) / 2
        size = size_of_share(np.full(len(groups), 0.5), rows, half, alpha)
        return np.where(size * _LAST_PART >= rows, rows, size)

    def rarer(self, groups: Places, sample: Sample) -> Places:
        """How often the rarer of two values was found."""
        size, found = self._numbers(groups, sample)
        return np.rint(np.minimum(found, size - found)).astype(np.int64)

    def size_of_more(self, groups: Places, sample: Sample, bounds: Bounds, share: float) -> Places:
        """The rows to ask about in all, by how wide bounds are so far; those that are there where
        they are narrow enough."""
        wide = (bounds.high - bounds.low) / (2 * self._half(groups, share) * (1 + 1e-9))
        n, rows = sample.rows.astype(np.float64), sample.left.astype(np.float64)
        with np.errstate(all="ignore"):
            variance = n / (1 - n / rows) * wide**2
            size = np.where(n < rows, variance / (1 + variance / rows), rows)
        size = np.where(size > 1.3 * n, _CAUTION * size, 1.01 * size)
        most = np.where(n < _FEW, 3 * n, rows)
        size = np.maximum(np.minimum(size, most), n + np.maximum(2, n // 40))
        size = np.where(rows - size < np.maximum(_LAST, rows // 20), rows, size)
        needed = np.where(wide > 1, np.ceil(np.minimum(size, rows)), n)
        return np.asarray(needed).astype(np.int64)

    def _half(self, groups: Places, share: float) -> Numbers:
        """Half of the width that bounds may have."""
        half: Numbers = share * self.span[groups]
        return half

    def bounds(self, groups: Places, sample: Sample, alpha: float) -> Bounds:
        """The bounds of some groups, from what is known of some rows and a sample of the others."""
        left, n = sample.left.astype(np.float64), np.maximum(sample.rows, 1).astype(np.float64)
        known, totals = self.known.at(groups), sample.totals
        count, sums = known.count, known.sum
        if not self._of_values:
            before, found = (count, totals.count) if self._counts else (sums, totals.sum)
            low, high = self._means(groups, sample, left, alpha)
            return Bounds(before + left * low, before + left * found / n, before + left * high)
        some = left * totals.count / n
        of_count = 0.0 if self.binary[groups].all() else _OF_COUNT
        low, high = self._means(groups, sample, some, alpha * (1 - of_count))
        of_values = totals.count.astype(np.int64)
        least, most = shares(of_values, sample.rows, sample.left, alpha * of_count)
        sizes = np.where(self.binary[groups], sample.left, [least, most])
        corners = [
            (sums + size * mean) / np.maximum(count + size, 1e-300)
            for size in (own.astype(np.float64) for own in sizes)
            for mean in (low, high)
        ]
        with np.errstate(all="ignore"):
            value = (sums + left / n * totals.sum) / (count + some)
        return Bounds(np.min(corners, axis=0), value, np.max(corners, axis=0))

    def _means(
        self, groups: Places, sample: Sample, rows: Numbers, alpha: float
    ) -> tuple[Numbers, Numbers]:
        """The bounds of the mean of ``rows`` that a sample is of."""
        least, width = (own[groups] for own in self._scale)
        size, found = self._numbers(groups, sample)
        absent = (-least / width, size - sample.totals.count)
        powers = [own + absent[1] * absent[0] ** k for k, own in enumerate(sample.totals.powers, 1)]
        low, high = means((powers[0], powers[1], powers[2]), size, rows, alpha)
        binary = self.binary[groups] & (size > 0)
        sampled = size[binary].astype(np.int64)
        whole = np.maximum(np.rint(rows[binary]).astype(np.int64), sampled)
        bounds = shares(np.rint(found[binary]).astype(np.int64), sampled, whole, alpha)
        low[binary], high[binary] = (b / whole for b in bounds)
        return least + width * low, least + width * high

    def _numbers(self, groups: Places, sample: Sample) -> tuple[Numbers, Numbers]:
        """(the rows of a sample that have a value, or all; those with the greater one of two
        values)"""
        totals, n = sample.totals, sample.rows.astype(np.float64)
        if self._counts:
            return n, totals.count
        size = totals.count if self._of_values else n
        least, width = (own[groups] for own in self._scale)
        return size, np.where(self.binary[groups], (totals.sum - least * size) / width, 0.0)


def _widths(low: Numbers, high: Numbers, group: Places, n: int) -> Numbers:
    """The greatest difference of two values in each group."""
    return _greatest(high, group, n) + _greatest(-low, group, n)


def _sums(values: Numbers, group: Places, n: int) -> Numbers:
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)


def _greatest(values: Numbers, group: Places, n: int) -> Numbers:
    found = np.full(n, -np.inf)
    np.maximum.at(found, group, values)
    return found
