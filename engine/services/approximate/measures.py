"""Counts, sums and averages of groups, estimated from a sample of their rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendfusion.run.execution.group_ranges import MeasureRows
from blendfusion.services.approximate.bounds import (
    Numbers,
    Places,
    half_width,
    shares,
    size_of_mean,
    size_of_share,
)

_OF_COUNT = 0.004
"""The part of the probability of an error that an average keeps for the number of its values."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The rows of each group with a value, the sum of the values, and that of their squares."""

    count: Numbers
    sum: Numbers
    squares: Numbers

    @classmethod
    def of(cls, part: MeasureRows, group: Places, n: int) -> Totals:
        """The totals of rows of which all is known; ``group``: the number of each row's group."""
        there = part.certain & part.value.value
        value = np.where(there, part.value.low, 0.0)
        parts = (there.astype(np.float64), value, value * value)
        return cls(*(_sums(own, group, n) for own in parts))

    def at(self, groups: Places) -> Totals:
        return Totals(self.count[groups], self.sum[groups], self.squares[groups])

    def variance(self, n: Numbers, *, of_values: bool, counts: bool) -> Numbers:
        """The variance of the values in a sample of ``n`` rows, or of what the rows add."""
        size = np.maximum(self.count if of_values else n, 1.0)
        sums, squares = (self.count, self.count) if counts else (self.sum, self.squares)
        mean = sums / size
        wide = np.maximum(squares / size - mean * mean, 0.0)
        variance: Numbers = wide * size / np.maximum(size - 1, 1.0)
        return variance


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest value of an aggregate in each group, and the estimate."""

    low: Numbers
    value: Numbers
    high: Numbers


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
        closed = MeasureRows(part.possible & ~open_, part.certain & ~open_, part.value)
        self.known = Totals.of(closed, group, n)
        """The totals of rows about which there is nothing to ask."""
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
        self._binary = np.full(n, self._counts)
        if two_values or value.kind in ("int", "bool"):
            from_zero = self._of_values | (self._least == 0)
            self._binary |= from_zero & (two_values | (self._width <= 1)) & (self._width > 0)

    @property
    def is_bounded(self) -> NDArray[np.bool_]:
        """The groups of which a sample says something."""
        return np.isfinite(self.span) & np.isfinite(self._width)

    def size(
        self, groups: Places, first: Sample, alpha: float, sure: float, share: float
    ) -> tuple[Places, NDArray[np.bool_]]:
        """(the rows that make the bounds of some groups narrow enough, as a ``first`` sample lets
        expect, with bounds that are wrong with a probability of ``alpha``; where they are enough
        for any sample, if ``sure`` is that probability)"""
        binary, left = self._binary[groups], first.left.astype(np.float64)
        n = np.maximum(first.rows, 1).astype(np.float64)
        half, width = 0.9995 * share * self.span[groups], self._width[groups]
        if self._of_values:
            alpha, sure = alpha * (1 - _OF_COUNT), sure * (1 - _OF_COUNT)
        half = half if self._of_values else half / np.maximum(left, 1)
        some = np.maximum(first.totals.count / n, 0.5 / n) if self._of_values else np.ones(len(n))
        rows = np.rint(left * some).astype(np.int64)
        size, found = (a[binary] for a in self._numbers(groups, first))
        part = (found + 0.5) / (size + 1)
        part = np.minimum(part, 1 - part)
        part = np.minimum(part + 1.3 * np.sqrt(part * (1 - part) / np.maximum(size, 1)), 0.5)
        wide = (half / np.maximum(width, 1e-300) * rows)[binary]
        as_shares = size_of_share(part, rows[binary], wide, alpha)
        for_any = size_of_share(np.full(len(part), 0.5), rows[binary], wide, sure)
        variance = self._variance(first) * (1 + 1.3 * np.sqrt(2 / n))
        deviation = np.sqrt(np.minimum(variance, width * width / 4))
        needed = size_of_mean(deviation, rows, width, half, alpha)
        enough = np.zeros(len(groups), dtype=bool)
        enough[binary] = as_shares > 0.95 * for_any
        needed[binary] = np.where(enough[binary], for_any, as_shares)
        needed = np.ceil(np.minimum(needed / some, left)).astype(np.int64)
        return needed, enough & (some >= 1)

    def bounds(self, groups: Places, first: Totals, sample: Sample, alpha: float) -> Bounds:
        """The bounds of some groups, from what is known of ``first`` rows and from a sample of the
        rest."""
        left, n = sample.left.astype(np.float64), np.maximum(sample.rows, 1).astype(np.float64)
        known, totals = self.known.at(groups), sample.totals
        count, sums = known.count + first.count, known.sum + first.sum
        if not self._of_values:
            before, found = (count, totals.count) if self._counts else (sums, totals.sum)
            low, high = self._means(groups, sample, left, alpha)
            return Bounds(before + left * low, before + left * found / n, before + left * high)
        some = left * totals.count / n
        low, high = self._means(groups, sample, some, alpha * (1 - _OF_COUNT))
        of_values = totals.count.astype(np.int64)
        sizes = shares(of_values, sample.rows, sample.left, alpha * _OF_COUNT)
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
        width, least = self._width[groups], self._least[groups]
        size, found = self._numbers(groups, sample)
        totals = sample.totals
        added = totals.count if self._counts else totals.sum
        mean = np.where(size > 0, added / np.maximum(size, 1), least + width / 2)
        half = half_width(np.sqrt(self._variance(sample)), size, rows, width, alpha)
        low, high = mean - half, mean + half
        binary = self._binary[groups] & (size > 0)
        sampled = size[binary].astype(np.int64)
        whole = np.maximum(np.rint(rows[binary]).astype(np.int64), sampled)
        bounds = shares(np.rint(found[binary]).astype(np.int64), sampled, whole, alpha)
        low[binary], high[binary] = (least[binary] + width[binary] * b / whole for b in bounds)
        return low, high

    def _numbers(self, groups: Places, sample: Sample) -> tuple[Numbers, Numbers]:
        """(the rows of a sample that have a value, or all; those with the greater one of two
        values)"""
        totals, n = sample.totals, sample.rows.astype(np.float64)
        if self._counts:
            return n, totals.count
        size = totals.count if self._of_values else n
        width = np.where(self._width[groups] > 0, self._width[groups], 1.0)
        least = np.where(np.isfinite(self._least[groups]), self._least[groups], 0.0)
        return size, np.where(self._binary[groups], (totals.sum - least * size) / width, 0.0)

    def _variance(self, sample: Sample) -> Numbers:
        return sample.totals.variance(
            sample.rows.astype(np.float64), of_values=self._of_values, counts=self._counts
        )


def _widths(low: Numbers, high: Numbers, group: Places, n: int) -> Numbers:
    """The greatest difference of two values in each group."""
    return _greatest(high, group, n) + _greatest(-low, group, n)


def _sums(values: Numbers, group: Places, n: int) -> Numbers:
    return np.bincount(group, weights=values, minlength=n).astype(np.float64)


def _greatest(values: Numbers, group: Places, n: int) -> Numbers:
    found = np.full(n, -np.inf)
    np.maximum.at(found, group, values)
    return found
