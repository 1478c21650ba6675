"""The rows of a block by groups, with what is known of each: whether it is there, and its columns.

The rows of one group stand together, those first whose answers can move its aggregates most. A row
that nobody asked about is known by the range of what it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Direction,
    Expr,
    Field,
    asks,
    fields,
    needs_model,
)
from blendfusion.planner.ir.possible_answers import over_answers
from blendfusion.planner.ir.sorts import ASC, DESC, reverse
from blendfusion.run.execution import row_codes
from blendfusion.run.execution.equal_rows import bounds_of
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.open_questions import certain_together, columns_together
from blendfusion.run.execution.ranges import (
    Masks,
    Range,
    all_true,
    kind_of,
    range_of_values,
    truths,
    unknown_range,
)
from blendfusion.run.execution.row_codes import Column
from blendfusion.run.execution.row_ranges import RowRanges

Places = NDArray[np.int64]
Survivors = Callable[[Block, Rows], Rows]
"""The rows that pass the predicates of a block."""

MANY_ROWS = 65_536
"""More rows are asked about in fewer rounds."""
_CODED = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_string)
"""Types whose values are equal in Python where they are in DataFusion."""

_ORDERED = (pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal, pa.types.is_decimal)
"""Types whose values have an order, and are no numbers."""


def codes_of(columns: Sequence[Column], n: int) -> Places | None:
    """A number for each row, equal for equal values of all columns; None for columns of a type
    that has no hash, or that DataFusion may tell apart otherwise."""
    if not all(map(_differs_in_groups, columns)):
        return None
    codes = row_codes.codes_of(columns, n)
    if codes is None or len(columns) < 2:
        return codes
    return np.asarray(np.unique(codes, return_inverse=True)[1].reshape(-1))


def _differs_in_groups(column: Column) -> bool:
    """Whether values that differ are different ones in groups, too: no -0.0, and no NaN."""
    if not pa.types.is_floating(column.type):
        return True
    numbers = np.asarray(pc.cast(column, pa.float64()).drop_null())
    return not bool((np.isnan(numbers) | ((numbers == 0) & np.signbit(numbers))).any())


def places_of(column: Column, direction: Direction) -> Places | None:
    """A number for each value, in the order of a sort; None for types without one."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_floating(whole.type):  # DataFusion orders -0.0 before 0.0, and NaN last
        bits = pc.cast(whole, pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        bits = bits.astype(np.float64).view(np.int64)
        whole = pa.array(bits ^ ((bits >> 63) & np.iinfo(np.int64).max), mask=_nulls(whole))
    try:
        down = direction in (DESC, reverse(ASC))
        ranks = pc.rank(whole, sort_keys="descending" if down else "ascending", tiebreaker="dense")
    except pa.ArrowNotImplementedError:
        return None
    places = np.asarray(ranks.to_numpy(zero_copy_only=False)).astype(np.int64)
    if direction not in (ASC, DESC):
        places[_nulls(whole)] = 0
    return places


def _nulls(column: Column) -> Masks:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


class RowAnswers:
    """The rows of ``table``, the source of ``block``. Ranges are in the order of ``order``, which
    gives each place the row of the table."""

    def __init__(
        self, block: Block, table: pa.Table, rowwise: RowWise, survivors: Survivors
    ) -> None:
        self.block = block
        self.table = table.append_column(str(table.num_columns), pa.array(np.arange(len(table))))
        self._rowwise = rowwise
        self._survivors = survivors
        self._tests = replace(block, select=(Field(table.num_columns),))
        """The predicates, for the numbers of the rows that pass."""
        self._ranges = RowRanges(block.exprs, self.table, rowwise.workbench)
        n = len(table)
        empty = columns_together(rowwise, block.select, Rows(table.schema.empty_table()))
        self._types = [column.type for column in empty]
        self.columns = [
            replace(self._ranges.of(e), kind=kind_of(kind))
            for e, kind in zip(block.select, self._types, strict=True)
        ]
        self.present = all_true(map(self._ranges.of, block.where), n)
        self.asked = [np.full(n, not needs_model(e)) for e in block.select]
        self.tested = np.full(n, not any(map(needs_model, block.where)))
        """The rows of which it is known whether they are there."""
        self.codes: dict[int, Places] = {}
        """A code for each value of columns whose distinct values are counted; -1: unknown."""
        self._codes: dict[int, dict[object, int]] = {}
        self.places: dict[Expr, Range] = {}
        """The places of rows in the orders of aggregates."""
        self.order = np.arange(n)
        self._answers: list[list[tuple[Places, pa.Array]]] = [[] for _ in block.select]
        self._same: tuple[Places, Places] | None = None
        read = sorted({i for e in block.exprs for ask in asks(e) for i in fields(ask)})
        self._read = [table.column(i) for i in read]
        questions = codes_of(self._read, n)
        several = questions is not None and np.bincount(questions).max(initial=0) > 1
        self.questions = questions if several else None
        """Equal numbers for rows about which all questions are the same; None if there are none."""

    def __len__(self) -> int:
        return len(self.order)

    @property
    def n_spared(self) -> int:
        """The number of rows about which nothing was asked."""
        some = np.zeros(len(self), dtype=bool)
        if any(map(needs_model, self.block.where)):
            some |= self.tested
        for expr, known in zip(self.block.select, self.asked, strict=True):
            if needs_model(expr):
                some |= known
        return int((~some).sum())

    @property
    def at_once(self) -> int:
        """The number of answers that the model gives in the time of one."""
        return self._rowwise.dispatcher.at_once

    def value(self, place: int) -> Column:
        """A column of the block that needs no answer, in the order of the table."""
        expr = self.block.select[place]
        return (
            self.table.column(expr.index) if isinstance(expr, Field) else self._ranges.plain[expr]
        )

    def rank(self, i: int) -> None:
        """Gives the values of a column places in their order, if they are no numbers."""
        if needs_model(self.block.select[i]) or not any(t(self._types[i]) for t in _ORDERED):
            return
        try:
            ranks = pc.rank(self.value(i), sort_keys="ascending", tiebreaker="dense")
        except pa.ArrowNotImplementedError:
            return
        numbers = ranks.to_numpy(zero_copy_only=False).astype(np.float64)
        old = self.columns[i]
        self.columns[i] = Range(numbers, numbers.copy(), old.null, old.value, "rank")

    def place(self, expr: Expr, directions: Sequence[Direction]) -> None:
        """Gives rows places in an order of columns, the children of ``expr``."""
        keys: list[Places] = []
        for column, direction in zip(expr.children, directions, strict=True):
            own = places_of(self._plain_column(column), direction)
            if own is None:
                self.places[expr] = unknown_range(len(self), null=False)
                return
            keys.append(own)
        places = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].reshape(-1)
        numbers, never = places.astype(np.float64), np.zeros(len(self), dtype=bool)
        self.places[expr] = Range(numbers, numbers.copy(), never, ~never, "rank")

    def _plain_column(self, expr: Expr) -> Column:
        if isinstance(expr, Field):
            return self.value(expr.index)
        return self._rowwise.workbench().columns([expr], self.table)[0]

    def range_with(self, expr: Expr, values: Mapping[Expr, Range], places: Places) -> Range:
        """The range of a predicate or a column at some places, if parts of it have these values."""
        return self._ranges.range_with(expr, values, self.order[places])

    def count_distinct(self, i: int) -> None:
        """Gives the values of a column codes, before the rows are put in an order."""
        found = None
        if not needs_model(self.block.select[i]):
            found = codes_of([self.value(i)], len(self))
        elif any(test(self._types[i]) for test in _CODED):
            self._codes[i] = {}
        self.codes[i] = np.full(len(self), -1, dtype=np.int64) if found is None else found

    def arrange(self, order: Places) -> None:
        """Puts the rows in an order, before any is asked about."""
        self.order = order
        self.present = self.present.take(order)
        self.columns = [column.take(order) for column in self.columns]
        self.codes = {i: codes[order] for i, codes in self.codes.items()}
        self.places = {e: places.take(order) for e, places in self.places.items()}
        if self.questions is not None:
            self.questions = self.questions[order]
            by = np.argsort(self.questions, kind="stable")
            self._same = by, bounds_of(np.bincount(self.questions))

    def by_values(self) -> Places:
        """The rows, sorted by the values that questions are about, so that the table's order has no
        effect. Many rows keep the table's order."""
        columns = [c for c in self._read if any(test(c.type) for test in _CODED)]
        if not columns or len(self) > MANY_ROWS:
            return np.arange(len(self))
        names = [str(i) for i in range(len(columns))]
        order = pc.sort_indices(pa.table(columns, names), [(name, "ascending") for name in names])
        return np.asarray(order.to_numpy(zero_copy_only=False)).astype(np.int64)

    def with_equal(self, places: Places) -> Places:
        """These places, and those of all rows about which the same questions are asked."""
        if self._same is None or self.questions is None:
            return places
        by, starts = self._same
        numbers = np.unique(self.questions[places])
        return by[ranges(starts[numbers], starts[numbers + 1])]

    def known_places(self, columns: Sequence[int]) -> Places:
        """The places of rows with stored answers to all questions of some columns; none where
        there are no questions."""
        rows = Rows(self.table)
        exprs = (*self.block.where, *(self.block.select[i] for i in columns))
        asking = [expr for expr in exprs if needs_model(expr)]
        known = np.full(len(self), bool(asking))
        for expr in asking:
            if known.any():
                known &= self._rowwise.known_rows(expr, rows)
        return np.flatnonzero(known[self.order])

    def ask(self, places: Places, columns: Sequence[int], beside: Sequence[int] = ()) -> Places:
        """Asks whether rows are there, and for those that are, for some columns. Returns the places
        of which more is known now. Questions of columns ``beside`` them, which are read, too, go in
        the same requests."""
        places = self.with_equal(places)
        new = places[~self.tested[places] & ~self.present.take(places).single]
        if len(new):
            self._test(new)
        self.tested[places] = True
        left = places[self.present.take(places).certain]
        read = (self.block.select[i] for i in (*columns, *beside))
        with self._rowwise.dispatcher.asking_together(certain_together(self._rowwise, read)):
            for i in self._answered_with(columns):
                some = left[~self.asked[i][left]]
                if len(some):
                    self._ask_column(i, some)
        return places

    def _ask_column(self, i: int, places: Places) -> None:
        (values,) = columns_together(self._rowwise, [self.block.select[i]], self._rows(places))
        whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        self._answers[i].append((places, whole))
        self.columns[i].replace_at(places, range_of_values(whole))
        self.asked[i][places] = True
        if i in self._codes:
            known = self._codes[i]
            self.codes[i][places] = [known.setdefault(v, len(known)) for v in whole.to_pylist()]

    def output(self, kept: Masks) -> pa.Table:
        """The rows of the block at the places ``kept``, in the order of the table. Those that
        nobody asked about have NULL in place of answers."""
        there = self.present.certain & kept
        open_ = np.flatnonzero(kept & ~self.present.single)
        if len(open_):
            passed = np.ones(len(open_), dtype=bool)
            for values in self._without_answers(self.block.where, open_):
                passed &= pc.fill_null(values, False).to_numpy(zero_copy_only=False)
            there[open_[passed]] = True
        places = np.flatnonzero(there)
        places = places[np.argsort(self.order[places], kind="stable")]
        if not self.block.width:  # a table without columns would lose its number of rows
            return pa.table({"0": pa.nulls(len(places), pa.bool_())})
        names = [str(i) for i in range(self.block.width)]
        return pa.table([self._column(i, places) for i in range(self.block.width)], names)

    def _column(self, i: int, places: Places) -> Column:
        if not needs_model(self.block.select[i]):
            return self.value(i).take(pa.array(self.order[places]))
        kind = self._types[i]
        pieces: list[pa.Array] = []
        origin = np.full(len(self), -1, dtype=np.int64)
        for some, values in self._answers[i]:
            origin[some] = sum(map(len, pieces)) + np.arange(len(some))
            pieces.append(values.cast(kind))
        missing = places[origin[places] < 0]
        if len(missing):
            (filled,) = self._without_answers([self.block.select[i]], missing)
            origin[missing] = sum(map(len, pieces)) + np.arange(len(missing))
            pieces.append(filled.cast(kind))
        if not pieces:
            return pa.nulls(0, kind)
        return pa.concat_arrays(pieces).take(pa.array(origin[places]))

    def _without_answers(self, exprs: Sequence[Expr], places: Places) -> list[pa.Array]:
        """Expressions on rows, with NULL for all answers."""
        table = self.table.take(pa.array(self.order[places]))
        found: dict[Ask, Field] = {}
        for ask in dict.fromkeys(a for e in exprs for a in asks(e)):
            found[ask] = Field(table.num_columns)
            table = table.append_column(str(table.num_columns), pa.nulls(len(table), ask.call.type))
        plain = [over_answers(e, found) for e in exprs]
        if not plain:
            return []
        values = self._rowwise.workbench().columns(plain, table)
        return [v.combine_chunks() for v in values]

    def _answered_with(self, columns: Sequence[int]) -> list[int]:
        """These columns, and those that ask nothing more."""
        select = self.block.select
        wanted = {ask for i in columns for ask in asks(select[i])}
        wanted.update(ask for e in self.block.where for ask in asks(e))
        return [i for i, e in enumerate(select) if needs_model(e) and {*asks(e)} <= wanted]

    def _test(self, places: Places) -> None:
        passed = self._survivors(self._tests, self._rows(places))
        column = passed.table.column(self.table.num_columns - 1)
        at = np.empty(len(self), dtype=np.int64)
        at[self.order] = np.arange(len(self))
        there = np.zeros(len(self), dtype=bool)
        there[at[column.to_numpy()]] = True
        never = np.zeros(len(places), dtype=bool)
        self.present.replace_at(places, truths(there[places], ~there[places], never))

    def _rows(self, places: Places) -> Rows:
        return Rows(self.table.take(pa.array(self.order[places])))


def ranges(starts: Places, ends: Places) -> Places:
    """The numbers from each start to its end, one range behind another."""
    lengths = ends - starts
    bounds = bounds_of(lengths)
    return np.repeat(starts - bounds[:-1], lengths) + np.arange(bounds[-1])
