"""The operator of a stage that asks about a sample of the rows of each group.

The rows of a group come in a random order. For numbers of rows, bounds are computed at sizes that
are known beforehand, and a group ends at the first one at which they are narrow enough: a rare
value needs few rows. For means, a few more rows come, and all so far give the bounds, until these
are narrow enough. In the end all rows of a group are asked about, and it has no error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    GroupNeed,
    Node,
    fields,
    literal_like,
    needs_model,
)
from blendfusion.run.execution.equal_rows import ranks
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.ranges import Range, range_of_values
from blendfusion.run.execution.row_codes import Column
from blendfusion.services.approximate.bounds import Numbers, Places, shares
from blendfusion.services.approximate.measures import Bounds, Estimate, Sample, Totals
from blendfusion.services.approximate.within import Within
from blendfusion.services.decided_groups.decided_groups import SpareCounts
from blendfusion.services.decided_groups.group_ranges import MeasureRows, rows_of_measure
from blendfusion.services.decided_groups.row_answers import (
    RowAnswers,
    Survivors,
    codes_of,
    places_of,
)

_FIRST, _STEP = 20, 1.05
"""The first rows of a group, and by how much each size of a sample exceeds the one before."""
_OF_LAST = 0.998
"""The part of the probability of an error that bounds of numbers of rows use at the last size,
which is enough whatever is found."""
_PART_OF_MEANS = 0.9
"""The part of the probability of an error that bounds of means use: they are approximations, and
are looked at several times."""


class SampledStage:
    """The sample of a stage in its latest run, and its bounds by group."""

    def __init__(self, within: Within, need: GroupNeed) -> None:
        self.within, self.need = within, need
        self.keys: list[pa.Array] = []
        """The keys of the groups, column by column; none before a run, or where all was asked."""
        self.bounds: dict[int, Bounds] = {}
        """The bounds of the aggregates that depend on answers, by number."""
        self.questions = self.rows = np.zeros(0, dtype=np.int64)
        """The rows of each group that were asked about, and those that could have been."""

    def __str__(self) -> str:
        if not len(self.rows):
            return f"a sample of each group, until {self.within}"
        some, rows = int(self.questions.sum()), int(self.rows.sum())
        return f"a sample of each group, until {self.within}: {some:,} of {rows:,} rows"

    def __call__(
        self,
        block: Block,
        table: pa.Table,
        rowwise: RowWise,
        survivors: Survivors,
        counts: SpareCounts,
    ) -> pa.Table:
        """The rows of ``block`` over ``table``. Those that nobody asked about are missing, or have
        NULL in place of answers."""
        self.keys, self.bounds = [], {}
        rows = RowAnswers(block, table, rowwise, survivors)
        keys = [rows.value(i) for i in range(self.need.n_keys)]
        codes = codes_of(keys, len(table)) if len(table) else None
        if codes is None or rowwise.cascades(block.exprs):
            rows.ask(np.arange(len(rows)), range(block.width))
            return rows.output(np.ones(len(rows), dtype=bool))
        first, codes = np.unique(codes, return_index=True, return_inverse=True)[1:]
        codes = codes.reshape(-1)
        chosen = self._groups_within_limit(
            [key.take(pa.array(first)) for key in keys], block, rowwise
        )
        if len(chosen) < len(first):
            kept = table.filter(pa.array(np.isin(codes, chosen)))
            return self(block, kept, rowwise, survivors, counts)
        self.keys = [key.take(pa.array(first)) for key in keys]
        self.keys = [k.combine_chunks() if isinstance(k, pa.ChunkedArray) else k for k in self.keys]
        groups = _Groups(self, rows, rowwise, codes, len(first))
        groups.ask_all()
        self.bounds, self.questions, self.rows = groups.bounds, groups.questions, groups.rows
        counts.spared = rows.n_spared
        return rows.output(np.ones(len(rows), dtype=bool))

    def _groups_within_limit(
        self, keys: Sequence[Column], block: Block, rowwise: RowWise
    ) -> Places:
        """The groups that a limit may read, where no answer decides this: by their keys."""
        need, n = self.need, len(keys[0]) if keys else 1
        read = max((i for e in need.order for i in fields(e)), default=-1)
        tested = any(map(needs_model, block.where)) or need.tests
        if need.count is None or tested or read >= need.n_keys or not keys:
            return np.arange(n)
        table = pa.table(keys, [str(i) for i in range(len(keys))])
        columns = rowwise.columns(need.order, Rows(table))
        known = [places_of(*own) for own in zip(columns, need.directions, strict=True)]
        places = [own for own in known if own is not None]
        end = need.offset + need.count
        if len(places) < len(known) or end >= n:
            return np.arange(n)
        if not places:
            return np.arange(end)
        place = np.unique(np.stack(places), axis=1, return_inverse=True)[1].reshape(-1)
        return np.flatnonzero(place <= np.sort(place)[max(end - 1, 0)])


def has_two_values(expr: Expr, rowwise: RowWise) -> bool:
    """Whether an expression is a CASE with two constants, perhaps cast."""
    while isinstance(expr, Node) and expr.name == "cast":
        expr = expr.children[0]
    if not isinstance(expr, Node) or expr.name != "if_then" or not len(expr.children) % 2:
        return False
    results = (*expr.children[1::2], expr.children[-1])
    if not all(map(literal_like, results)):
        return False
    values = [range_of_constant(e, rowwise, 1) for e in dict.fromkeys(results)]
    return len({float(v.low[0]) for v in values if v.value[0]}) == 2


def dependent_columns(need: GroupNeed, block: Block) -> dict[int, list[int]]:
    """The columns with calls that each aggregate reads, of those that depend on answers."""
    tested = any(map(needs_model, block.where))
    found: dict[int, list[int]] = {}
    for i, measure in enumerate(need.measures):
        read = sorted({c for e in measure.exprs for c in fields(e)})
        own = [c for c in read if needs_model(block.select[c])]
        if own or tested:
            found[i] = own
    return found


def part_before_last(error: float) -> float:
    """The part of the probability of an error that bounds use at each size before the last one. A
    group ends at one of several sizes: together, they are wrong with no more than all of it. The
    numbers were chosen by computing that, for shares on a grid (test_error_bars)."""
    return max(0.87 + 0.06 * math.log(error), 0.1)


def are_narrow(sample: Sample, found: Places, room: Numbers, alpha: float) -> NDArray[np.bool_]:
    """The groups whose samples, with so many ``found`` rows, have bounds no wider than ``room``."""
    least, most = shares(found, sample.rows, sample.left, alpha)
    return most - least <= room


def sizes_of_samples(most: int) -> Places:
    """The sizes at which samples may end: the same ones for each group and all answers."""
    sizes = [_FIRST]
    while sizes[-1] < most:
        sizes.append(math.ceil(_STEP * sizes[-1]))
    return np.array(sizes, dtype=np.int64)


def next_sizes(sample: Sample, found: Places, room: Numbers, alpha: float) -> Places:
    """The next sizes at which bounds may be narrow enough: if none of the rarer rows is found."""
    sizes = sizes_of_samples(int(sample.left.max(initial=0)))
    low = np.searchsorted(sizes, sample.rows, side="right")
    high = np.searchsorted(sizes, sample.left)
    while (low < high).any():
        middle = (low + high) // 2
        n = np.minimum(sizes[np.minimum(middle, len(sizes) - 1)], sample.left)
        narrow = are_narrow(replace(sample, rows=n), found, room, alpha)
        high = np.where(narrow & (low < high), middle, high)
        low = np.where(~narrow & (low < high), middle + 1, low)
    return np.minimum(sizes[np.minimum(low, len(sizes) - 1)], sample.left)


class _Groups:
    """The rows of all groups, in a random order each."""

    def __init__(
        self, sample: SampledStage, answers: RowAnswers, rowwise: RowWise, codes: Places, n: int
    ) -> None:
        self._within, self._need, self._answers = sample.within, sample.need, answers
        self._rowwise = rowwise
        self._columns = dependent_columns(sample.need, answers.block)
        """The columns with calls of the aggregates that depend on answers."""
        shuffled = np.random.default_rng(sample.within.seed).permutation(len(codes))
        order = shuffled[np.argsort(codes[shuffled], kind="stable")]
        answers.arrange(order)
        group, every = codes[order], np.arange(len(order))
        parts = {i: self._rows_of(i, every) for i in self._columns}
        open_ = np.zeros(len(order), dtype=bool)
        for part in parts.values():
            open_ |= part.possible & ~(part.certain & part.value.single)
        self._estimates = {
            i: Estimate(
                self._need.measures[i].name,
                part,
                open_,
                group,
                n,
                two_values=self._has_two_values(i),
            )
            for i, part in parts.items()
        }
        self._places = np.flatnonzero(open_)
        """The rows about which there is something to ask, those of a group together."""
        self._group, self._n = group[self._places], n
        self._rank = ranks(self._group)
        self.rows = np.bincount(self._group, minlength=n)
        self.questions = np.zeros(n, dtype=np.int64)
        unknown = np.full(n, -np.inf), np.full(n, np.nan), np.full(n, np.inf)
        self.bounds = {i: Bounds(*(u.copy() for u in unknown)) for i in self._columns}

    def ask_all(self) -> None:
        """Ask until the bounds of all groups are narrow enough."""
        unbounded = ~np.all([e.is_bounded for e in self._estimates.values()], axis=0)
        self._ask(np.where(unbounded, self.rows, _FIRST))
        exact = np.any([e.binary for e in self._estimates.values()], axis=0)
        left = np.flatnonzero(self.questions < self.rows)
        self._ask_for_numbers(left[exact[left]])
        self._ask_for_means(np.flatnonzero(self.questions < self.rows))

    def _ask_for_numbers(self, left: Places) -> None:
        """Ask until the bounds of counts are narrow enough."""
        error, share = 1 - self._within.confidence, self._within.share
        alpha = part_before_last(error) * error
        wide = {i: left[e.binary[left]] for i, e in self._estimates.items()}
        last = {i: np.full(self._n, 0) for i in wide}
        for i, groups in wide.items():
            last[i][groups] = self._estimates[i].size_for_any(
                groups, self.rows[groups], _OF_LAST * error, share
            )
        sizes = {i: self.questions.copy() for i in wide}
        while any(map(len, wide.values())):
            for i, estimate in self._estimates.items():
                due = wide[i][self.questions[wide[i]] >= sizes[i][wide[i]]]
                at_last = self.questions[due] >= last[i][due]
                self._update_bounds(i, due[at_last], _OF_LAST * error)
                due = due[~at_last]
                sample = self._update_bounds(i, due, alpha)
                found, room = estimate.rarer(due, sample), estimate.room(due, sample, share)
                narrow = are_narrow(sample, found, room, alpha)
                more = next_sizes(sample, found, room, alpha)
                sizes[i][due] = np.where(narrow, 0, np.minimum(more, last[i][due]))
                wide[i] = wide[i][self.questions[wide[i]] < sizes[i][wide[i]]]
            wanted = self.rows.copy()
            for i, groups in wide.items():
                wanted[groups] = np.minimum(wanted[groups], sizes[i][groups])
            groups = np.unique(np.concatenate([*wide.values()]))
            self._ask_at(groups, wanted[groups])

    def _update_bounds(self, i: int, groups: Places, alpha: float) -> Sample:
        """The sample of some groups, by which the bounds of an aggregate are."""
        sample = Sample(self.questions[groups], self._totals(i, groups), self.rows[groups])
        self.bounds[i].replace_at(groups, self._estimates[i].bounds(groups, sample, alpha))
        return sample

    def _ask_for_means(self, left: Places) -> None:
        """Asks until bounds of means are narrow enough."""
        alpha = _PART_OF_MEANS * (1 - self._within.confidence)
        while len(left):
            wanted = self.questions[left]
            for i, estimate in self._estimates.items():
                own = ~estimate.binary[left]
                groups = left[own]
                sample = Sample(self.questions[groups], self._totals(i, groups), self.rows[groups])
                new = estimate.bounds(groups, sample, alpha)
                self.bounds[i].replace_at(groups, new)
                size = estimate.size_of_more(groups, sample, new, self._within.share)
                wanted[own] = np.maximum(wanted[own], size)
            wide = wanted > self.questions[left]
            self._ask_at(left[wide], wanted[wide])
            left = left[wide]
            left = left[self.questions[left] < self.rows[left]]

    def _has_two_values(self, i: int) -> bool:
        """Whether an aggregate reads one of two constants, or a truth value."""
        (value,) = self._need.measures[i].args
        return isinstance(value, Field) and has_two_values(
            self._answers.block.select[value.index], self._rowwise
        )

    def _totals(self, i: int, groups: Places) -> Totals:
        """The totals of what was asked of some groups."""
        chosen = np.zeros(self._n, dtype=bool)
        chosen[groups] = True
        some = chosen[self._group] & (self._rank < self.questions[self._group])
        part = self._rows_of(i, self._places[some])
        return self._estimates[i].totals(part, self._group[some]).at(groups)

    def _ask_at(self, groups: Places, sizes: Places | int) -> None:
        wanted = self.questions.copy()
        wanted[groups] = sizes
        self._ask(wanted)

    def _ask(self, wanted: Places) -> None:
        """Asks about so many rows of each group in all."""
        wanted = np.clip(wanted, self.questions, self.rows)
        more = (self._rank >= self.questions[self._group]) & (self._rank < wanted[self._group])
        columns = sorted({c for own in self._columns.values() for c in own})
        self._answers.ask(self._places[more], columns)
        self.questions = wanted

    def _rows_of(self, i: int, places: Places) -> MeasureRows:
        present = self._answers.present.take(places)
        return rows_of_measure(self._need.measures[i], present, lambda e: self._column(e, places))

    def _column(self, expr: Expr, places: Places) -> Range:
        if isinstance(expr, Field):
            return self._answers.columns[expr.index].take(places)
        return range_of_constant(expr, self._rowwise, len(places))


def range_of_constant(expr: Expr, rowwise: RowWise, n: int) -> Range:
    """The value of an expression that reads no column, ``n`` times."""
    row = pa.table({"0": pa.nulls(1, pa.bool_())})
    found = range_of_values(rowwise.workbench().columns([expr], row)[0])
    return found.take(np.zeros(n, dtype=np.int64))
