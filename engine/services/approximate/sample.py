"""The operator of a stage that asks about a sample of the rows of each group.

The rows of a group come in a random order. For numbers of rows, a first few show how many are
needed; the next ones, which are a sample of the rest whatever the first ones were, give the bounds.
Where these turn out too wide, more rows come, for a part of the probability of an error that was
kept for them. So the bounds hold together, at whichever of them a group ends. For means, a few more
rows come, and all so far give the bounds, until these are narrow enough. In the end all rows of a
group are asked about, and it has no error.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from blendfusion.run.execution.decided_groups import SpareCounts
from blendfusion.run.execution.equal_rows import ranks
from blendfusion.run.execution.expressions import Column, Rows, RowWise
from blendfusion.run.execution.group_ranges import MeasureRows, rows_of_measure
from blendfusion.run.execution.ranges import Range, range_of_values
from blendfusion.run.execution.row_answers import RowAnswers, Survivors, codes_of, places_of
from blendfusion.services.approximate.bounds import Places
from blendfusion.services.approximate.measures import Bounds, Estimate, Sample, Totals
from blendfusion.services.approximate.within import Within

_FIRST, _MORE, _PART = 20, 60, 12
"""The first rows of a group; where fewer than for any answers may be enough, the least number of
these, and their part of what is needed."""
_KEPT, _KEPT_OF_SURE = 0.1, 0.002
"""The part of the probability of an error that is kept for further rows; and where none should be
needed."""
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
        self._first = self.questions
        """The first rows of each group, which show how many are needed."""
        unknown = np.full(n, -np.inf), np.full(n, np.nan), np.full(n, np.inf)
        self.bounds = {i: Bounds(*(u.copy() for u in unknown)) for i in self._columns}

    def ask_all(self) -> None:
        """Asks until the bounds of all groups are narrow enough."""
        unbounded = ~np.all([e.is_bounded for e in self._estimates.values()], axis=0)
        self._ask(np.where(unbounded, self.rows, _FIRST))
        exact = np.any([e.binary for e in self._estimates.values()], axis=0)
        left = np.flatnonzero(self.questions < self.rows)
        self._ask_for_numbers(left[exact[left]])
        self._ask_for_means(np.flatnonzero(self.questions < self.rows))

    def _ask_for_numbers(self, left: Places) -> None:
        """Asks until bounds of numbers of rows are narrow enough."""
        error = 1 - self._within.confidence
        self._first = self.questions.copy()
        size, enough = self._sizes(left, error)
        self._ask_at(left[~enough], np.maximum(_MORE, size[~enough] // _PART))
        left = left[self.questions[left] < self.rows[left]]
        self._first = self.questions.copy()
        alphas = np.full(self._n, error * (1 - _KEPT))
        size, enough = self._sizes(left, error)
        alphas[left[enough]] = error * (1 - _KEPT_OF_SURE)
        kept = error - alphas
        while len(left):
            whole = 1.05 * size > self.rows[left] - self._first[left]
            self._ask_at(left, np.where(whole, self.rows[left], self._first[left] + size))
            left, size = left[~whole], size[~whole]
            for own in np.unique(alphas[left]):
                self._narrow(left[alphas[left] == own], float(own))
            wide = self._is_wide(left)
            left, size = left[wide], np.ceil(size[wide] * 1.3).astype(np.int64)
            alphas[left] = kept[left] = kept[left] / 2

    def _ask_for_means(self, left: Places) -> None:
        """Asks until bounds of means are narrow enough."""
        alpha = _PART_OF_MEANS * (1 - self._within.confidence)
        while len(left):
            wanted = self.questions[left]
            for i, estimate in self._estimates.items():
                own = ~estimate.binary[left]
                groups = left[own]
                sample = Sample(self.questions[groups], self._totals(i, groups), self.rows[groups])
                none = np.zeros(len(groups))
                first = Totals(none, none, (none, none, none))
                new = estimate.bounds(groups, first, sample, alpha)
                self.bounds[i].replace_at(groups, new)
                size = estimate.size_of_more(groups, sample, new, self._within.share)
                wanted[own] = np.maximum(wanted[own], size)
            wide = wanted > self.questions[left]
            self._ask_at(left[wide], wanted[wide])
            left = left[wide]
            left = left[self.questions[left] < self.rows[left]]

    def _sizes(self, groups: Places, error: float) -> tuple[Places, NDArray[np.bool_]]:
        """(the rows that some groups need behind the first ones; whether these are enough whatever
        the answers are, so that nothing must be kept for further ones)"""
        share, alphas = self._within.share, (error * (1 - _KEPT), error * (1 - _KEPT_OF_SURE))
        sizes, enough = np.zeros(len(groups), dtype=np.int64), np.ones(len(groups), dtype=bool)
        for i, estimate in self._estimates.items():
            own = estimate.binary[groups]
            some = groups[own]
            size, sure = estimate.size(some, self._sample(i, some, first=True), *alphas, share)
            sizes[own] = np.maximum(sizes[own], size)
            enough[own] &= sure
        return sizes, enough

    def _has_two_values(self, i: int) -> bool:
        """Whether an aggregate reads one of two constants, or a truth value."""
        (value,) = self._need.measures[i].args
        return isinstance(value, Field) and has_two_values(
            self._answers.block.select[value.index], self._rowwise
        )

    def _narrow(self, some: Places, alpha: float) -> None:
        """Narrows the bounds of numbers of rows of some groups by all that was asked."""
        for i, estimate in self._estimates.items():
            groups = some[estimate.binary[some]]
            first = self._sample(i, groups, first=True).totals
            new = estimate.bounds(groups, first, self._sample(i, groups, first=False), alpha)
            old = self.bounds[i]
            low = np.maximum(old.low[groups], new.low)
            high = np.minimum(old.high[groups], new.high)
            old.replace_at(groups, Bounds(low, np.clip(new.value, low, high), high))

    def _is_wide(self, groups: Places) -> NDArray[np.bool_]:
        wide = np.zeros(len(groups), dtype=bool)
        for i, estimate in self._estimates.items():
            width = self.bounds[i].high[groups] - self.bounds[i].low[groups]
            too_wide = width > 2 * self._within.share * estimate.span[groups] * (1 + 1e-9)
            wide |= estimate.binary[groups] & too_wide
        return wide

    def _sample(self, i: int, groups: Places, *, first: bool) -> Sample:
        start = self._first[groups]
        rows, left = self.questions[groups] - start, self.rows[groups] - start
        if first:
            rows = start
        return Sample(rows, self._totals(i, groups, first=first), left)

    def _totals(self, i: int, groups: Places, *, first: bool | None = None) -> Totals:
        """The totals of what was asked of some groups; of the first rows, or of those behind."""
        chosen = np.zeros(self._n, dtype=bool)
        chosen[groups] = True
        some = chosen[self._group] & (self._rank < self.questions[self._group])
        if first is not None:
            some &= (self._rank < self._first[self._group]) == first
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
