"""The state of groups: which of them the tests keep, and what is still to be asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.planner.ir.aggregates import has_order, is_of_distinct, order_of_first
from blendfusion.planner.ir.nodes import (
    Direction,
    Expr,
    Field,
    GroupNeed,
    Measure,
    Node,
    fields,
    has_window,
    needs_model,
    walk,
    windows,
)
from blendfusion.planner.ir.sorts import ASC, DESC, reverse
from blendfusion.planner.ir.windows import order_of
from blendfusion.run.execution import equal_rows
from blendfusion.run.execution.expressions import RowWise
from blendfusion.run.execution.ranges import (
    WHOLE,
    Masks,
    Numbers,
    Range,
    range_of,
    range_of_values,
    unknown_range,
)
from blendfusion.services.decided_groups.answer_combinations import AnswerCombinations
from blendfusion.services.decided_groups.group_ranges import (
    GroupedRows,
    MeasureRows,
    Places,
    decisive_value,
    has_extreme,
    is_bounded,
    kind_of_sum,
    range_of_aggregate,
    range_of_distinct,
    rows_of_measure,
    values_counted,
    weight,
)
from blendfusion.services.decided_groups.row_answers import RowAnswers, codes_of, ranges

_RANKED = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_date),
    *(pa.types.is_timestamp, pa.types.is_decimal),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """Something that has to be known of groups: an expression over their columns, or, without one,
    whether they have a row."""

    expr: Expr | None
    columns: tuple[int, ...]
    """The columns of the rows that it reads, of those with calls."""
    measures: tuple[int, ...]
    whole: bool = False
    """Whether it needs all rows of a group, and so may ask about all of them at once."""
    extreme: Measure | None = None
    """The aggregate that it reads, if the first rows by value decide that."""
    distinct: int | None = None
    """The number of distinct values that it reads, as the place of that measure."""
    lines: tuple[Places, ...] = ()
    """The numbers of the partitions of each window that it reads, by group."""


class GroupStates:
    """The groups of ``rows``, whose group numbers by row are ``codes``. Rows are put in order."""

    def __init__(self, need: GroupNeed, rows: RowAnswers, codes: Places, rowwise: RowWise) -> None:
        self.need = need
        self.rows = rows
        self._literals: dict[Expr, Range] = {}
        self._rowwise = rowwise
        self.n = int(codes.max()) + 1
        self._lines: dict[tuple[Expr, ...], Places | None] = {}
        self._windows: dict[Expr, Range] = {}
        """The ranges of windows, by what is known now."""
        self._keys = self._key_columns(np.unique(codes, return_index=True)[1])
        self.tests = [self._stage(e) for e in need.tests]
        self.exists = Stage(None, (), ())
        self.shown = [self._stage(e) for e in need.shown]
        self.ordering = [self._stage(e) for e in need.order if not self._is_plain(e)]
        self.has_windows = any(stage.lines for stage in (*self.tests_and_order, *self.shown))
        """Whether what is read of a group depends on others."""
        for i in self._ranking():
            rows.rank(i)
        for measure in need.measures:
            of_first = order_of_first(measure)
            if of_first is not None:
                rows.place(decisive_value(measure), of_first[1])
        first = rows.by_values()
        order = first[np.lexsort((-self._weights()[first], codes[first]))]
        first = np.searchsorted(codes[order], np.arange(self.n))
        self.starts: Places = np.append(first, len(codes))
        self.sizes: Places = np.diff(self.starts)
        self.line = self._line()
        """The number of those groups which a limit counts with each group."""
        self.kept_of_lines: dict[int, Places] = {}
        """The groups that are kept of those with such a number, where that is decided."""
        for measure in need.measures:
            if is_of_distinct(measure) and is_bounded(measure):
                for expr in measure.args:
                    if isinstance(expr, Field):
                        rows.count_distinct(expr.index)
        rows.arrange(order)
        self.group = codes[order]
        self._plain: dict[Expr, Range] = {}
        self.measured = [replace(unknown_range(self.n), kind=self._kind(m)) for m in need.measures]
        self.complete = [np.zeros(self.n, dtype=bool) for _ in need.measures]
        """The groups of which a measure has nothing left to ask."""
        self._idle = [np.zeros(len(rows), dtype=bool) for _ in need.measures]
        """The rows that cannot change a number of distinct values, which has theirs already."""
        self.has_row = np.zeros(self.n, dtype=bool)
        self.may_have_row = np.ones(self.n, dtype=bool)
        self.there = np.zeros(self.n, dtype=bool)
        """The groups of which it is known for every row whether it is there."""
        self.fails = np.zeros(self.n, dtype=bool)
        self.passes = np.zeros(self.n, dtype=bool)
        self.asked = np.zeros(self.n, dtype=np.int64)
        self._certain = [np.zeros(self.n, dtype=bool) for _ in self.tests]
        self._possible = [np.ones(self.n, dtype=bool) for _ in self.tests]
        self._settled = {e: np.zeros(self.n, dtype=bool) for e in need.shown}
        """The groups in which an expression has one value for all combinations of answers."""
        self._combinations = AnswerCombinations(rows)
        self.learn(np.arange(self.n))

    def learn(self, groups: Places) -> None:
        """Takes note of what is known of the rows of some groups."""
        places = ranges(self.starts[groups], self.starts[groups + 1])
        part = GroupedRows(equal_rows.bounds_of(self.sizes[groups])[:-1], len(places))
        present = self.rows.present.take(places)
        tested = self.rows.tested[places] | present.single
        self.there[groups] = part.sums(~tested) == 0
        self.has_row[groups] = part.sums(present.certain) > 0
        self.may_have_row[groups] = part.sums(present.true) > 0
        if not self.need.n_keys:
            self.has_row[groups] = self.may_have_row[groups] = True
        for i, measure in enumerate(self.need.measures):
            left = present.true & ~tested
            for column in self._asking(measure):
                known = (
                    self.rows.asked[column][places] | self.rows.columns[column].take(places).single
                )
                left |= present.true & ~known
            if is_bounded(measure):
                own = rows_of_measure(measure, present, lambda e, at=places: self._column(e, at))  # type: ignore[misc]
                self.measured[i].replace_at(groups, self._range(measure, own, part, places))
                if is_of_distinct(measure):
                    codes = self._codes(measure, places)
                    self._idle[i][places] = ~own.possible | values_counted(own, codes, part)
                    left &= ~self._idle[i][places]
            self.complete[i][groups] = part.sums(left) == 0
        self._windows.clear()
        self._judge(np.arange(self.n) if self.has_windows else groups)
        if not self.has_windows:
            self._combine(groups)

    def _combine(self, groups: Places) -> None:
        """Takes note of what groups with few open questions can be."""
        left = groups[~self.fails[groups]]
        found = self._combinations.combine(left, self.starts, self.need.measures, self._aggregate)
        if found is None:
            return
        own, fails = found.groups, ~found.possible
        for i, values in enumerate(found.measured):
            measure = self.need.measures[i]
            if is_bounded(measure) and not is_of_distinct(measure):
                self.measured[i].replace_at(own, found.hull(values))
        for j, stage in enumerate(self.tests):
            assert stage.expr is not None
            test = self.value(stage.expr, found.group, found.measured)
            self._possible[j][own] &= found.in_some(test.true)
            self._certain[j][own] |= ~found.in_some(~test.certain)
            fails |= ~test.true
        self.fails[own] |= ~found.in_some(~fails)
        self.passes[own] = self.has_row[own]
        for certain in self._certain:
            self.passes[own] &= certain[own]
        for expr, settled in self._settled.items():
            shown = found.hull(self.value(expr, found.group, found.measured))
            settled[own] = shown.single & (shown.kind in (*WHOLE, "bool"))

    def _aggregate(
        self,
        measure: Measure,
        present: Range,
        columns: Sequence[Range],
        part: GroupedRows,
        places: Places,
    ) -> Range:
        """The range of a measure, if rows are there, with these columns."""
        if not is_bounded(measure) or is_of_distinct(measure):
            return unknown_range(len(part.starts))

        def column(expr: Expr) -> Range:
            if isinstance(expr, Field) and expr not in self.rows.places:
                return columns[expr.index]
            return self._column(expr, places)

        return range_of_aggregate(measure.name, rows_of_measure(measure, present, column), part)

    def _judge(self, groups: Places) -> None:
        fails, passes = ~self.may_have_row[groups], self.has_row[groups].copy()
        for j, stage in enumerate(self.tests):
            assert stage.expr is not None
            found = self.value(stage.expr, groups)
            self._certain[j][groups], self._possible[j][groups] = found.certain, found.true
            fails |= ~found.true
            passes &= found.certain
        self.fails[groups], self.passes[groups] = fails, passes

    def value(self, expr: Expr, groups: Places, measured: Sequence[Range] | None = None) -> Range:
        """The range of an expression over the columns of some groups; ``measured``: their measures,
        if these are known otherwise."""

        def leaf(part: Expr) -> Range | None:
            if self._is_plain(part):
                return self._plain_value(part).take(groups)
            if isinstance(part, Node) and part.name.startswith("window:"):
                return self._of_window(part).take(groups)
            if not isinstance(part, Field):
                return None
            i = part.index - self.need.n_keys
            # Of the first row in an order, only the place is known.
            ordered = has_order(self.need.measures[i])
            if ordered:
                return unknown_range(len(groups))
            return self.measured[i].take(groups) if measured is None else measured[i]

        return range_of(expr, leaf, len(groups))

    def _of_window(self, window: Node) -> Range:
        """The range of an aggregate of all groups with equal keys, in each group."""
        if window not in self._windows:
            self._windows[window] = self._compute_window(window)
        return self._windows[window]

    def _compute_window(self, window: Node) -> Range:
        value = self.value(window.children[-1], np.arange(self.n))
        line, name = self._line_of(order_of(window).partitions), window.name.removeprefix("window:")
        if line is None or (name != "count" and value.kind not in (*WHOLE, "float")):
            return unknown_range(self.n)
        possible, certain = self.may_have_row.copy(), self.has_row.copy()
        for j in range(self.need.n_below_windows):
            possible, certain = possible & self._possible[j], certain & self._certain[j]
        order = np.argsort(line, kind="stable")
        starts = equal_rows.first_places(line[order])
        rows = MeasureRows(
            (possible & value.value)[order],
            (certain & value.value & ~value.null)[order],
            value.take(order),
        )
        found = range_of_aggregate(name, rows, GroupedRows(starts, self.n))
        return found.take(np.searchsorted(line[order][starts], line))

    def is_settled(self, stage: Stage, groups: Places) -> Masks:
        """Whether the expression of a stage has one value, whatever the answers are."""
        assert stage.expr is not None
        settled = ~self.is_open(stage, groups) | self._is_one(stage.expr, groups)
        return settled | self._settled[stage.expr][groups]

    def _is_one(self, expr: Expr, groups: Places) -> Masks:
        if self._is_plain(expr):
            return np.ones(len(groups), dtype=bool)
        if isinstance(expr, Field):
            i = expr.index - self.need.n_keys
            found = self.measured[i].take(groups)
            exact = found.kind in (*WHOLE, "bool") or has_extreme(self.need.measures[i])
            return np.asarray((found.single & exact) | self.complete[i][groups])
        found = self.value(expr, groups)
        exact = found.kind in (*WHOLE, "bool")
        single = found.single & exact
        assert isinstance(expr, Node)
        if expr.name.startswith("window:"):
            return single | ~self.is_open(self._stage(expr), groups)
        if expr.name == "if_then":
            return np.asarray(single | self._is_one_case(expr, groups))
        parts = np.ones(len(groups), dtype=bool)
        for child in expr.children:
            parts &= self._is_one(child, groups)
        return np.asarray(single | parts)

    def _is_one_case(self, expr: Node, groups: Places) -> Masks:
        left, one = np.ones(len(groups), dtype=bool), np.ones(len(groups), dtype=bool)
        branches = expr.children
        for condition, result in zip(branches[0::2], branches[1::2], strict=False):
            met = self.value(condition, groups)
            decided = met.certain | ~met.true
            one &= ~left | decided
            one &= ~(left & met.certain) | self._is_one(result, groups)
            left = left & ~met.true
        if len(branches) % 2:
            one &= ~left | self._is_one(branches[-1], groups)
        return one

    def next_test(self, groups: Places, *, order: bool = False) -> Places:
        """The number of the first stage of ``tests_and_order`` about which each of some groups has
        something left to ask that may decide; -1 if there is none."""
        found = np.full(len(groups), -1, dtype=np.int64)
        for j, stage in enumerate(self.tests_and_order):
            if j < len(self.tests):
                wanted = ~self._certain[j][groups] & ~self.fails[groups]
            elif stage is self.exists:
                wanted = ~self.has_row[groups] & ~self.fails[groups]
            else:
                wanted = np.full(len(groups), order)
            found = np.where((found < 0) & wanted & self.is_open(stage, groups), j, found)
        return found

    @property
    def tests_and_order(self) -> list[Stage]:
        return [*self.tests, self.exists, *self.ordering]

    def is_open(self, stage: Stage, groups: Places) -> Masks:
        """Whether something is left to ask about a stage."""
        if stage.expr is None:
            return ~self.there[groups]
        open_ = self._is_open_itself(stage, groups)
        for line in stage.lines:
            every = np.flatnonzero(self._is_open_itself(stage, np.arange(self.n)))
            open_ |= np.isin(line[groups], line[every])
        return open_

    def _is_open_itself(self, stage: Stage, groups: Places) -> Masks:
        """Whether something is left to ask about a group's own rows."""
        known = self.there[groups] | self.has_row[groups]
        done = known if stage.lines else np.ones(len(groups), dtype=bool)
        for i in stage.measures:
            done = done & self.complete[i][groups]
        return ~done

    def groups_that_matter(self, groups: Places, stage: Stage) -> Places:
        """The groups to ask about for a stage of ``groups``: these, or, where nothing is left to
        ask about one, those that its windows read."""
        if not stage.lines:
            return groups
        own = self._is_open_itself(stage, groups)
        every = np.flatnonzero(self._is_open_itself(stage, np.arange(self.n)))
        read = [every[np.isin(line[every], line[groups[~own]])] for line in stage.lines]
        return np.unique(np.concatenate([groups[own], *read]))

    def most_for_windows(self, groups: Places, stage: Stage) -> Numbers:
        """How far each group can move the windows of a stage: the greatest value of a group decides
        most, or the least one for a minimum."""
        assert stage.expr is not None
        window = windows(stage.expr)[0]
        found = self.value(window.children[-1], groups)
        of_least = isinstance(window, Node) and window.name == "window:min"
        most = -found.low if of_least else found.high
        return np.where(np.isfinite(most), most, 0.0)

    def askable(self, groups: Places, stage: Stage) -> Places:
        """The places of rows of groups about which a stage has something left to ask, those of one
        group behind another, the most moving first."""
        places = ranges(self.starts[groups], self.starts[groups + 1])
        rows, present = self.rows, self.rows.present.take(places)
        left = ~rows.tested[places] & ~present.single
        there = np.flatnonzero(present.true)
        some = places[there]
        for column in stage.columns:
            unasked = ~rows.asked[column][some] & ~rows.columns[column].take(some).single
            left[there[unasked]] = True
        if stage.measures:
            left &= ~np.logical_and.reduce([self._idle[i][places] for i in stage.measures])
        places = places[left]
        if stage.distinct is not None:
            return places[np.lexsort((self.ranks_among_equal(places, stage), self.group[places]))]
        if stage.extreme is None:
            return places
        present = rows.present.take(places)
        own = rows_of_measure(stage.extreme, present, lambda e: self._column(e, places))
        return places[np.lexsort((-weight(stage.extreme, own), self.group[places]))]

    def ranks_among_equal(self, places: Places, stage: Stage) -> Places:
        """The number of each row, from 0, among those of its group with an equal value."""
        assert stage.distinct is not None
        codes = self._codes(self.need.measures[stage.distinct], places)
        pairs = np.stack([self.group[places], codes])
        return equal_rows.ranks(np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1))

    def ranks(self, expr: Expr, direction: Direction) -> tuple[Numbers, Numbers]:
        """The least and the greatest place of each group in an order, where a greater one comes
        earlier."""
        every = np.arange(self.n)
        found = self._plain_ranks(expr) if self._is_plain(expr) else self.value(expr, every)
        if found.kind == "rank" and not isinstance(expr, Field):
            found = unknown_range(self.n)
        descending = direction in (DESC, reverse(ASC))
        low, high = (found.low, found.high) if descending else (-found.high, -found.low)
        first = direction not in (ASC, DESC)
        at = np.inf if first else -np.inf
        low = np.where(found.null, np.minimum(at, np.where(found.value, low, np.inf)), low)
        high = np.where(found.null, np.maximum(at, np.where(found.value, high, -np.inf)), high)
        return low, high

    def _plain_ranks(self, expr: Expr) -> Range:
        column = self._plain_column(expr)
        if column is not None and any(test(column.type) for test in _RANKED):
            ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
            numbers = ranks.to_numpy(zero_copy_only=False).astype(np.float64)
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            return Range(numbers, numbers.copy(), ~valid, valid, "int")
        return self._plain_value(expr)

    def _is_plain(self, expr: Expr) -> bool:
        return not self._measures(expr) and not has_window(expr)

    def _measures(self, expr: Expr) -> list[int]:
        n = self.need.n_keys
        return sorted(i - n for i in fields(expr) if i >= n)

    def _plain_value(self, expr: Expr) -> Range:
        if expr not in self._plain:
            column = self._plain_column(expr)
            known = unknown_range(self.n) if column is None else range_of_values(column)
            self._plain[expr] = known
        return self._plain[expr]

    def _plain_column(self, expr: Expr) -> pa.Array | None:
        """The values of an expression over keys; None where it fails, perhaps for a group of which
        no row passes."""
        if isinstance(expr, Field):
            return self._keys.column(expr.index).combine_chunks()
        try:
            values = self._rowwise.workbench().columns([expr], self._keys)[0]
        except Exception:  # DataFusion may fail on it, as in 1 / k
            return None
        return values.combine_chunks()

    def _key_columns(self, first: Places) -> pa.Table:
        """The keys of each group, in the order of their numbers."""
        at = pa.array(first)
        columns = [self.rows.value(i).take(at) for i in range(self.need.n_keys)]
        columns = columns or [pa.nulls(len(first), pa.bool_())]
        return pa.table(columns, [str(i) for i in range(len(columns))])

    def _line(self) -> Places:
        line = self._line_of(self.need.per)
        return np.arange(self.n) if line is None else line  # at least as many groups are first

    def _line_of(self, partitions: tuple[Expr, ...]) -> Places | None:
        """The number of each group's partition; None if DataFusion may tell others apart."""
        if not partitions:
            return np.zeros(self.n, dtype=np.int64)
        if partitions not in self._lines:
            columns = [column for e in partitions if (column := self._plain_column(e)) is not None]
            known = len(columns) == len(partitions)
            self._lines[partitions] = codes_of(columns, self.n) if known else None
        return self._lines[partitions]

    def _stage(self, expr: Expr) -> Stage:
        own = [w for w in windows(expr) if isinstance(w, Node)]
        below = self.need.tests[: self.need.n_below_windows] if own else ()
        measures = sorted({i for e in (expr, *below) for i in self._measures(e)})
        lines = [self._line_of(order_of(w).partitions) for w in own]
        columns = {c for i in measures for c in self._asking(self.need.measures[i])}
        extreme = [m for m in (self.need.measures[i] for i in measures) if has_extreme(m)]
        whole = isinstance(expr, Field) and not extreme
        one = extreme[0] if len(extreme) == len(measures) == 1 else None
        read = [self.need.measures[i] for i in measures]
        counts = [is_of_distinct(m) and is_bounded(m) for m in read]
        distinct = measures[0] if counts == [True] else None
        known = (np.zeros(self.n, dtype=np.int64) if line is None else line for line in lines)
        return Stage(
            expr, tuple(sorted(columns)), tuple(measures), whole, one, distinct, tuple(known)
        )

    def _asking(self, measure: Measure) -> list[int]:
        """The columns with calls that a measure reads."""
        read = {e.index for part in measure.exprs for e in walk(part) if isinstance(e, Field)}
        return sorted(i for i in read if needs_model(self.rows.block.select[i]))

    def _column(self, expr: Expr, places: Places) -> Range:
        if expr in self.rows.places:
            return self.rows.places[expr].take(places)
        if isinstance(expr, Field):
            return self.rows.columns[expr.index].take(places)
        return self._plain_literal(expr, len(places))

    def _plain_literal(self, expr: Expr, n: int) -> Range:
        if expr not in self._literals:
            row = pa.table({"0": pa.nulls(1, pa.bool_())})
            self._literals[expr] = range_of_values(
                self._rowwise.workbench().columns([expr], row)[0]
            )
        return self._literals[expr].take(np.zeros(n, dtype=np.int64))

    def _range(
        self, measure: Measure, own: MeasureRows, part: GroupedRows, places: Places
    ) -> Range:
        if not is_of_distinct(measure):
            return range_of_aggregate(measure.name, own, part)
        return range_of_distinct(own, self._codes(measure, places), part)

    def _codes(self, measure: Measure, places: Places) -> Places:
        """The numbers of the values that a measure counts once each."""
        (value,) = measure.args
        if not isinstance(value, Field):  # a literal
            return np.zeros(len(places), dtype=np.int64)
        return self.rows.codes[value.index][places]

    def _kind(self, measure: Measure) -> str:
        if measure.name == "count":
            return "int"
        if not is_bounded(measure):
            return "other"
        kind = self._column(decisive_value(measure), np.arange(0)).kind
        if measure.name == "avg":
            return "float" if kind in (*WHOLE, "float") else "other"
        if measure.name == "sum":
            return kind_of_sum(kind)
        return kind

    def _ranking(self) -> list[int]:
        """The columns of which only the first or last values are shown."""
        stages = (*self.tests, *self.shown, *self.ordering)
        tested = {i for s in stages if not isinstance(s.expr, Field) for i in s.measures}
        read: dict[bool, set[int]] = {True: set(), False: set()}
        for i, measure in enumerate(self.need.measures):
            shown = has_extreme(measure) and i not in tested
            if not measure.n_sorts:
                read[shown] |= {e.index for e in measure.args if isinstance(e, Field)}
        return sorted(read[True] - read[False])

    def _weights(self) -> Numbers:
        """How far the answers about each row can move what is tested."""
        tested = {i for stage in (*self.tests, *self.ordering) for i in stage.measures}
        total = np.zeros(len(self.rows))
        for i in tested or range(len(self.need.measures)):
            measure = self.need.measures[i]
            if is_bounded(measure):
                own = rows_of_measure(measure, self.rows.present, self._whole_column)
                total += weight(measure, own)
        if self.rows.questions is None:
            return total
        times = np.bincount(self.rows.questions)[self.rows.questions]
        return total * np.minimum(times, 1_000)

    def _whole_column(self, expr: Expr) -> Range:
        return self._column(expr, np.arange(len(self.rows)))
