"""The values that groups of few open questions can have, by every combination of the answers.

Ranges of rows know nothing of one another. Of three rows about one text, a predicate leaves three
or none, so that ``HAVING count(*) = 1`` has no such group; ``count(*) FILTER (WHERE NOT f(x))`` is
0 where ``f(x)`` leaves the rows; and ``count(*) = 0`` holds for no group that is there. Here each
*unit*, the rows of a group about which all questions are the same, has each value of the atoms of
its expressions (see ``boolean_atoms``), NULL among them, and groups are computed for all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blendfusion.planner.ir.boolean_atoms import atoms, canonical
from blendfusion.planner.ir.nodes import Ask, Expr, Measure, asks, fields, needs_model
from blendfusion.run.execution.equal_rows import bounds_of, ranks
from blendfusion.run.execution.ranges import (
    Masks,
    Numbers,
    Range,
    all_true,
    hull,
    null_range,
    truths,
)
from blendfusion.services.decided_groups.group_ranges import GroupedRows, Places
from blendfusion.services.decided_groups.row_answers import RowAnswers, ranges

_MOST = 729
"""The most combinations of a group: those of six questions."""
_MOST_ROWS = 1_000
"""The most rows of a group."""
_MOST_OPEN = 9
"""The most rows of a group of which something is open."""
_MOST_OPEN_OF_QUESTIONS = 64
"""The most of these rows where several of them are one question."""
_MOST_OF_ALL = 50_000
"""The most rows of all groups, and of all combinations."""


@dataclass(frozen=True, slots=True)
class CombinedGroups:
    """Some groups under each combination of their answers: ``group`` has the number of the group,
    by combination, those of one group behind another from ``starts`` on. ``possible``: those that
    agree with the known answers, and in which the group may be there."""

    groups: Places
    group: Places
    starts: Places
    possible: Masks
    measured: Sequence[Range]

    def in_some(self, masks: Masks) -> Masks:
        """The groups of which a possible combination is among ``masks``."""
        return np.logical_or.reduceat(self.possible & masks, self.starts)

    def hull(self, values: Range) -> Range:
        """The range of a value over the possible combinations of each group."""
        some = self.possible & values.value
        low = np.minimum.reduceat(np.where(some, values.low, np.inf), self.starts)
        high = np.maximum.reduceat(np.where(some, values.high, -np.inf), self.starts)
        value = self.in_some(values.value)
        low, high = np.where(value, low, 0.0), np.where(value, high, 0.0)
        return Range(low, high, self.in_some(values.null), value, values.kind)


Aggregate = Callable[[Measure, Range, Sequence[Range], GroupedRows, Places], Range]
"""The range of a measure, by the rows that are there, their columns, their groups, their places."""


class AnswerCombinations:
    """The atoms of the rows of a block that are functions of what its questions read."""

    def __init__(self, rows: RowAnswers) -> None:
        """After the rows have their order."""
        self._rows = rows
        block = rows.block
        self._where = tuple(map(canonical, block.where))
        self._select = tuple(map(canonical, block.select))
        known = {ask for e in block.where for ask in asks(e)}
        others = [known, *({*asks(e)} | known for e in block.select)]
        self._late = [_may_come_later({*asks(e)}, others) for e in block.select]
        """Whether a column may be unknown where an answer that it reads is known."""
        every = np.arange(len(rows))
        self._atoms: dict[Expr, Range] = {}
        self._null: dict[Expr, Places] = {}
        """The atoms, with their ranges, and with their values where no question has an answer."""
        for atom in dict.fromkeys(a for e in (*self._where, *self._select) for a in atoms(e)):
            found = rows.range_with(atom, {}, every)
            none = rows.range_with(
                atom, {ask: null_range(len(rows), "bool") for ask in asks(atom)}, every
            )
            read = set().union(*(fields(ask) for ask in asks(atom)))
            if found.kind == "bool" and fields(atom) <= read and bool(none.single.all()):
                self._atoms[atom] = found
                self._null[atom] = np.where(none.null, 2, none.true).astype(np.int64)

    def combine(
        self, groups: Places, bounds: Places, measures: Sequence[Measure], aggregate: Aggregate
    ) -> CombinedGroups | None:
        """The groups among some that have few combinations, by all of these; None without any.
        ``bounds``: the places of the rows of all groups, one behind another."""
        groups = self._with_few_open(groups, bounds)
        sizes = bounds[groups + 1] - bounds[groups]
        groups = groups[np.cumsum(sizes) <= _MOST_OF_ALL]
        if not len(groups):
            return None
        sizes = sizes[: len(groups)]
        places = ranges(bounds[groups], bounds[groups + 1])
        units = self._units(np.repeat(np.arange(len(groups)), sizes), places)
        n_each = units.n_combinations(len(groups))
        few = np.flatnonzero((n_each >= 1) & (n_each <= _MOST))
        few = few[np.cumsum(n_each[few] * sizes[few]) <= _MOST_OF_ALL]
        if not len(few):
            return None
        times = n_each[few].astype(np.int64)
        group, number = np.repeat(few, times), ranges(np.zeros_like(times), times)
        first = bounds_of(sizes)
        at = ranges(first[group], first[group + 1])
        starts = bounds_of(sizes[group])[:-1]
        values = units.values(few, at, np.repeat(number, sizes[group]))
        present, columns, agrees = self._evaluate(values, places[at])
        part = GroupedRows(starts, len(at))
        possible = part.sums(~agrees) == 0
        every = bounds_of(times)
        possible |= np.repeat(~np.logical_or.reduceat(possible, every[:-1]), times)
        until = self._rows.block.until
        if until is not None and until.n_keys:
            possible &= part.sums(present.true) > 0
        measured = [aggregate(m, present, columns, part, places[at]) for m in measures]
        return CombinedGroups(groups[few], groups[group], every[:-1], possible, measured)

    def _with_few_open(self, groups: Places, bounds: Places) -> Places:
        """The groups among some that have few rows of which something is open."""
        groups = groups[bounds[groups + 1] - bounds[groups] <= _MOST_ROWS]
        if not self._atoms or not len(groups):
            return groups[:0]
        rows, places = self._rows, ranges(bounds[groups], bounds[groups + 1])
        present = rows.present.take(places)
        open_ = ~present.single
        for i, expr in enumerate(rows.block.select):
            if needs_model(expr):
                known = rows.asked[i][places] | rows.columns[i].take(places).single
                open_ |= present.certain & ~known
        starts = bounds_of(bounds[groups + 1] - bounds[groups])[:-1]
        n_open = GroupedRows(starts, len(places)).sums(open_)
        most = _MOST_OPEN if rows.questions is None else _MOST_OPEN_OF_QUESTIONS
        return groups[(n_open > 0) & (n_open <= most)]

    def _units(self, group: Places, places: Places) -> _Units:
        """The units of rows of these groups."""
        questions = self._rows.questions
        own = places if questions is None else questions[places]
        width = int(own.max()) + 1
        found, unit = np.unique(group * width + own, return_inverse=True)
        unit = unit.reshape(-1)
        domains: dict[Expr, Masks] = {}
        for atom, known in self._atoms.items():
            some = known.take(places)
            domains[atom] = np.ones((3, len(found)), dtype=bool)
            for code, can in enumerate((some.false, some.true, some.null)):
                value = {atom: _truths_of(np.full(len(places), code))}
                np.logical_and.at(domains[atom][code], unit, can & self._evaluate(value, places)[2])
        return _Units(found // width, unit, domains)

    def _evaluate(
        self, values: Mapping[Expr, Range], places: Places
    ) -> tuple[Range, list[Range], Masks]:
        """(whether rows are there, their columns, whether both agree with what is known)"""
        rows, n = self._rows, len(places)
        present = all_true((rows.range_with(e, values, places) for e in self._where), n)
        known = rows.present.take(places)
        agrees = (~known.certain | present.true) & (known.true | ~present.certain)
        present.replace_at(np.flatnonzero(known.single), known.take(np.flatnonzero(known.single)))
        none: dict[Expr, Range] = {a: _truths_of(own[places]) for a, own in self._null.items()}
        columns: list[Range] = []
        for i, expr in enumerate(self._select):
            own = rows.columns[i].take(places)
            if needs_model(expr):
                new = rows.range_with(expr, values, places)
                known_here = rows.asked[i][places]
                agrees &= ~(known_here & own.single & new.single) | _same(own, new)
                if self._late[i]:  # it may be shown as if it had no answer
                    every = np.ones(n, dtype=bool)
                    new = hull([(every, new), (every, rows.range_with(expr, none, places))])
                left = np.flatnonzero(~known_here & ~own.single)
                own.replace_at(left, new.take(left))
            columns.append(own)
        return present, columns, agrees


@dataclass(frozen=True, slots=True)
class _Units:
    """Rows of groups by their questions: the group of each unit, in order, the unit of each row,
    and for each atom the values (FALSE, TRUE, NULL) that it can have in each unit, as far as each
    by itself agrees with what is known."""

    group: Places
    unit: Places
    domains: Mapping[Expr, Masks]

    def n_combinations(self, n: int) -> Numbers:
        """The number of combinations of each of ``n`` groups."""
        found = np.ones(n)
        for domain in self.domains.values():
            np.multiply.at(found, self.group, domain.sum(axis=0).astype(np.float64))
        return found

    def values(self, groups: Places, rows: Places, number: Places) -> dict[Expr, Range]:
        """The values of atoms on rows, in the combinations of their group with these numbers.
        ``groups``: those of the rows, whose combinations are few."""
        sizes = np.stack([domain.sum(axis=0) for domain in self.domains.values()])
        sizes = np.where(np.isin(self.group, groups), sizes, 1)
        strides, before = np.ones_like(sizes), np.ones(int(self.group.max()) + 1, dtype=np.int64)
        found: dict[Expr, Range] = {}
        unit = self.unit[rows]
        for i, (atom, domain) in enumerate(self.domains.items()):
            several = np.flatnonzero(sizes[i] > 1)
            for own in _one_a_group(self.group, several):
                strides[i, own] = before[self.group[own]]
                before[self.group[own]] *= sizes[i, own]
            digit = number // strides[i, unit] % sizes[i, unit]
            codes = np.argsort(~domain, axis=0, kind="stable")
            found[atom] = _truths_of(codes[digit, unit])
        return found


def _may_come_later(own: set[Ask], others: Sequence[set[Ask]]) -> bool:
    """Whether some of a column's questions may be asked without the column, for ``others``."""
    return any(own & other and not own <= other for other in others)


def _one_a_group(group: Places, places: Places) -> list[Places]:
    """Some places, divided so that no two of a part are of one group."""
    turns = ranks(group[places])
    return [places[turns == turn] for turn in range(int(turns.max(initial=-1)) + 1)]


def _same(one: Range, other: Range) -> Masks:
    same = (one.low == other.low) | ~one.value
    return np.asarray(same & (one.value == other.value) & (one.null == other.null))


def _truths_of(codes: Places) -> Range:
    return truths(codes == 1, codes == 0, codes == 2)
