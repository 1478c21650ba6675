"""How many values a stage asks at least and at most, whatever the answers are.

At most: the distinct values of its rows, or of those of groups that may be read. At least: those of
rows that are read for sure, of which nothing is known; one for each group that is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    asks,
    asks_model,
    fields,
    needs_model,
)
from blendfusion.run.execution.expressions import Rows, RowWise
from blendfusion.run.execution.first_rows import FirstRows
from blendfusion.run.execution.pair_order import asks_over_pairs
from blendfusion.run.execution.ranges import Masks
from blendfusion.services.decided_groups.decided_groups import groups_to_ask
from blendfusion.services.decided_groups.group_states import GroupStates, Stage
from blendfusion.services.decided_groups.row_answers import Places
from blendfusion.services.estimates.simulated_model import SimulatedDispatcher
from blendfusion.udfs.ask.dispatcher import Question
from blendfusion.udfs.declare.kinds import RowQuestion


@dataclass(frozen=True, slots=True)
class StageBounds:
    """``least``: the values that a stage asks whatever the answers are, with its ``questions``.
    ``most``: the most that each call asks; a call without a bound is left out."""

    least: int
    questions: frozenset[Question]
    most: Mapping[Ask, int]


NO_BOUNDS = StageBounds(0, frozenset(), {})


class ValueBounds:
    """The bounds of a block over ``rows``, all rows of its source in their order. ``readable``: the
    columns that hold their values; None: all."""

    def __init__(
        self, block: Block, rows: Rows, rowwise: RowWise, readable: frozenset[int] | None = None
    ) -> None:
        self._block, self._rows, self._rowwise = block, rows, rowwise
        self._calls = list(dict.fromkeys(a for e in block.exprs for a in asks(e)))
        self._numbers: dict[tuple[Question, Values], int] = {}
        self._values: dict[Ask, Places] = {}
        """By calls of which all values are known: the number of each row's value; -1: no question
        is asked about it."""
        for ask in self._calls:
            is_read = readable is None or fields(ask) <= readable
            if is_read and _asks_once_a_row(ask, rowwise) and not any(map(needs_model, ask.args)):
                self._number(ask)

    def _number(self, ask: Ask) -> None:
        found = self._rowwise.values(ask, self._rows)
        if found is None:
            return
        values, places = found
        stored = self._rowwise.dispatcher.lookup.stored_values(ask.call, values)
        own, numbers = self._rowwise.dispatcher.question_of(ask.call), self._numbers
        ids = [-1 if v in stored else numbers.setdefault((own, v), len(numbers)) for v in values]
        self._values[ask] = np.array(ids, dtype=np.int64)[places]

    def of_rows(self, *, runs: bool) -> StageBounds:
        """The bounds where rows come one after another. ``runs``: the stage runs for sure, as far
        as its own limit."""
        every = np.arange(len(self._rows))
        return self._bounds(self._least_of_rows() if runs and len(every) else 0, every)

    def of_groups(self, states: GroupStates) -> StageBounds:
        """The bounds of a stage that runs until its groups are decided. ``states``: what is known
        of these before the first question."""
        columns = tuple(i for i, e in enumerate(self._block.select) if needs_model(e))
        places = states.askable(np.flatnonzero(~states.fails), Stage(None, columns, ()))
        return self._bounds(self._least_of_groups(states, columns), states.rows.order[places])

    def most(self, rows: Places) -> dict[Ask, int]:
        """The most values that calls ask about some rows, those of which all values are known."""
        return {
            ask: _distinct(values[rows]) * _requests(ask, self._rowwise)
            for ask, values in self._values.items()
        }

    def _bounds(self, least: int, rows: Places) -> StageBounds:
        most = most_of_rows(self._block, len(rows), self._rowwise) | self.most(rows)
        questions = frozenset(self._rowwise.dispatcher.question_of(ask.call) for ask in self._calls)
        return StageBounds(least, questions, most)

    def _least_of_rows(self) -> int:
        block = self._block
        sure, dropped = self._sure_rows()
        if block.offset >= len(sure):
            return 0
        if block.once or asks_over_pairs(block):  # its first rows may be any
            return int(bool(sure[~dropped].all() and sure.any()))
        if block.takes:
            return self._count_needed(self._first_round(sure))
        end = len(sure) if block.count is None else block.offset + block.count
        first = np.flatnonzero(~dropped)[:end]
        return self._count_needed(first[sure[first]])

    def _sure_rows(self) -> tuple[Masks, Masks]:
        """(the rows about which something is asked as soon as they are looked at, the rows that no
        answer lets pass)"""
        n = len(self._rows)
        dropped, some = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        for term in self._block.where:
            matters, true = self._rowwise.rows_that_ask(term, self._rows)
            dropped |= ~matters & ~true
            some |= matters
        return some & ~dropped & self._has_unknown(self._block.where), dropped

    def _has_unknown(self, exprs: Iterable[Expr]) -> Masks:
        """The rows of which no answer to any call of some expressions is known."""
        unknown = np.ones(len(self._rows), dtype=bool)
        for ask in (a for e in exprs for a in asks(e)):
            if any(map(needs_model, ask.args)):
                continue  # the calls in its arguments are asked before it
            values = self._values.get(ask)
            unknown &= np.zeros_like(unknown) if values is None else values >= 0
        return unknown

    def _first_round(self, sure: Masks) -> Places:
        """The rows of the first round of a block of first rows, all of which are needed."""
        caught: list[Places] = []

        def catch(rows: Rows, number: Field) -> Rows:
            caught.append(rows.table.column(number.index).to_numpy())
            return rows.slice(0, 0)

        first = FirstRows(self._block.takes, lambda: 1)
        if self._block.where:
            next(first.survivors(self._rows, self._rowwise.columns, catch), None)
        return caught[0][sure[caught[0]]] if caught else np.arange(0)

    def _count_needed(self, rows: Places) -> int:
        """The number of values such that each of some rows has one of them, or fewer."""
        read = dict.fromkeys(ask for term in self._block.where for ask in asks(term))
        values = [self._values[ask][rows] for ask in read if ask in self._values]
        if not len(rows) or not values:
            return 0
        if len(values) == 1:
            return _distinct(values[0])
        met: set[int] = set()
        apart = 0
        for own in np.unique(np.stack(values, axis=1), axis=0).tolist():
            if met.isdisjoint(own):
                apart += 1
                met.update(own)
        return apart

    def _least_of_groups(self, states: GroupStates, columns: tuple[int, ...]) -> int:
        """At least one value for each group that is open, or fewer: rows share values."""
        sure = self._sure_in_groups(columns)
        places = states.askable(np.flatnonzero(~states.fails), Stage(None, columns, ()))
        group, row = states.group[places], states.rows.order[places]
        unsure = np.zeros(states.n, dtype=bool)
        unsure[group[~sure[row]]] = True
        groups = groups_to_ask(states, 1)
        if states.need.has_limit:
            return int(bool(len(groups)) and not unsure.any())
        groups = groups[~unsure[groups]]
        own = np.isin(group, groups)
        shared = [_most_groups(group[own], v[row[own]]) for v in self._values.values()]
        return -(-len(groups) // max([1, *shared]))

    def _sure_in_groups(self, columns: tuple[int, ...]) -> Masks:
        if any(map(needs_model, self._block.where)):
            return self._sure_rows()[0]
        computed = [self._block.select[i] for i in columns]
        sure = self._has_unknown(computed)
        for expr in computed:
            sure &= self._rowwise.rows_that_ask(expr, self._rows)[0]
        return sure


def most_of_rows(block: Block, rows: int, rowwise: RowWise) -> dict[Ask, int]:
    """The most values that each call of ``block`` asks about so many rows."""
    calls = dict.fromkeys(a for e in block.exprs for a in asks(e))
    own = [a for a in calls if _asks_once_a_row(a, rowwise)]
    return {ask: rows * _requests(ask, rowwise) for ask in own}


def _asks_once_a_row(ask: Ask, rowwise: RowWise) -> bool:
    """Whether a call asks at most one question about each row, and one about each value."""
    call, task = ask.call, ask.call.task
    several = call.check or task.reasoning or task.consistency > 1 or task.options_query
    usual = type(call.ingredient.kind) is RowQuestion and ask.domain is None and asks_model(ask)
    return usual and not several and rowwise.dispatcher.certain(task) is None


def _requests(ask: Ask, rowwise: RowWise) -> int:
    assert isinstance(rowwise.dispatcher, SimulatedDispatcher)
    return rowwise.dispatcher.requests_per_value(ask.call)


def _distinct(values: Places) -> int:
    found = np.unique(values)
    return int((found >= 0).sum())


def _most_groups(groups: Places, values: Places) -> int:
    """The most groups that have one value."""
    pairs = np.unique(np.stack([values, groups])[:, values >= 0], axis=1)
    return int(np.bincount(pairs[0]).max(initial=0))
