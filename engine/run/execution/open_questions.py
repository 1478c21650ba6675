"""Asks the open questions about the values of a row together, round by round.

``CASE WHEN f(x) THEN g(x) END, CASE WHEN f(x) THEN h(x) END`` asks ``f``, and then, where it is
true, ``g`` and ``h`` in one request. A round asks what a row needs whatever the other answers are.
What another answer may spare waits: of ``f(x) OR g(x)`` one is asked, and none while another
expression may ask one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from blendfusion.models.protocol.model import Values
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    Node,
    asks,
    is_volatile,
    literal_like,
    needs_model,
)
from blendfusion.run.execution.certain_questions import certain, certain_of_case
from blendfusion.run.execution.expressions import (
    Rows,
    RowWise,
    assemble,
    dearness,
    is_true,
    is_undecided,
    spread,
    whole,
)
from blendfusion.run.execution.needed_questions import (
    EARLY,
    OTHER,
    NeededQuestions,
    TooComplex,
    apart,
    is_plain,
    may_look,
)
from blendfusion.run.execution.row_codes import Column
from blendfusion.run.execution.truth_table import NULL, UNKNOWN, Decisions, TruthTable
from blendfusion.udfs.ask.dispatcher import Together

Masks = NDArray[np.bool_]
Places = NDArray[np.int64]

Evaluation: TypeAlias = Callable[[RowWise, Expr, Rows], Column]

_CLOSED = ("boolean", "choice", "score")
"""Kinds of answers that are NULL only if they fail."""


def columns_together(rowwise: RowWise, exprs: Sequence[Expr], rows: Rows) -> list[Column]:
    """The values of several expressions, whose open questions go together."""
    found, groups = _values(rowwise, exprs, rows, _column)
    with rowwise.dispatcher.asking_together(groups):
        given = iter(rowwise.columns([e for e in exprs if e not in found], rows))
    return [found[e] if e in found else next(given) for e in exprs]


def certain_together(rowwise: RowWise, exprs: Iterable[Expr]) -> list[Together]:
    """The questions that expressions ask for every row, by those that go in one request."""
    groups = _groups(rowwise, dict.fromkeys(ask for e in exprs for ask in certain(e)))
    return [{ask.call: None for ask in group} for group in groups]


def passing_together(rowwise: RowWise, expr: Expr, rows: Rows) -> Column:
    """True for the rows on which a predicate is true. Its open questions go together."""
    found, groups = _values(rowwise, [expr], rows, _passing)
    with rowwise.dispatcher.asking_together(groups):
        return found[expr] if found else rowwise.passing(expr, rows)


def _column(rowwise: RowWise, expr: Expr, rows: Rows) -> Column:
    return rowwise.column(expr, rows)


def _passing(rowwise: RowWise, expr: Expr, rows: Rows) -> Column:
    return rowwise.passing(expr, rows)


def _values(
    rowwise: RowWise,
    exprs: Sequence[Expr],
    rows: Rows,
    evaluate: Evaluation,
) -> tuple[dict[Expr, Column], list[Together]]:
    """(the values of expressions, if their questions are asked in rounds; else the groups of
    questions that go in one request, since one round is enough)"""
    asking = [e for e in dict.fromkeys(exprs) if e not in rows.known and needs_model(e)]
    found = {ask: None for e in asking for ask in asks(e) if ask not in rows.known}
    if len(found) < 2 or not len(rows) or not any(_joins(rowwise, ask) for ask in found):
        return {}, []
    if {ask for e in asking for ask in certain(e)}.issuperset(found):
        return {}, certain_together(rowwise, asking)
    if not rowwise.cascades(asking) and not any(map(is_volatile, asking)):
        return OpenQuestions(rowwise, rows).settle(asking, evaluate), []
    return {}, []


def _groups(rowwise: RowWise, found: Iterable[Ask]) -> list[list[Ask]]:
    """The questions that may be in one request with others."""
    groups: dict[tuple[Expr, ...], list[Ask]] = {}
    for ask in found:
        if _joins(rowwise, ask):
            groups.setdefault(ask.args, []).append(ask)
    return [group for group in groups.values() if len(group) > 1]


def _joins(rowwise: RowWise, ask: Ask) -> bool:
    return is_plain(ask) and rowwise.dispatcher.joins(ask.call)


def _always_there(expr: Expr) -> bool:
    """Whether an expression is NULL only where a text is, or an answer fails."""
    while isinstance(expr, Node) and expr.name == "cast":
        (expr,) = expr.children
    return is_plain(expr) and isinstance(expr, Ask) and expr.call.task.constraint.kind in _CLOSED


class OpenQuestions(RowWise):
    """Evaluates expressions with the answers that are known. Where a row lacks an answer, the
    question is noted for the next round, and the value of the expression has no meaning."""

    def __init__(self, rowwise: RowWise, rows: Rows) -> None:
        super().__init__(rowwise.dispatcher, rowwise.workbench, rowwise.stored)
        self.matchers, self.keys = rowwise.matchers, rowwise.keys
        self._rowwise, self._rows = rowwise, rows
        self._number = rows.table.num_columns
        numbers = pa.array(np.arange(len(rows)))
        self._table = rows.table.append_column(str(self._number), numbers)
        self._waits = np.full(len(rows), False)
        """The rows of the present expression whose value is open."""
        self._notes: dict[Ask, Masks] = {}
        """The rows on which each question is to be asked."""
        self._others: dict[Ask, Masks] = {}
        """The rows on which a question may be asked in a later round."""
        self._looks = False
        """Whether nothing is noted."""
        self._early: dict[Ask, Masks] = {}
        """The rows on which each question was asked in a round."""
        self._pieces: dict[Ask, list[pa.Array]] = {}
        self._places: dict[Ask, Places] = {}
        """The place of each row's answer among the pieces; -1: it is not known yet."""

    def settle(self, exprs: Sequence[Expr], evaluate: Evaluation) -> dict[Expr, Column]:
        """The values of expressions, after as many rounds as they need; {} if some may be known
        only in the usual order."""
        while True:
            self._notes, self._others = {}, {}
            self._waits = np.full(len(self._rows), False)
            rows = Rows(self._table, dict(self._rows.known))
            values = self._beside(exprs, rows, evaluate)
            if evaluate is _column and self._waits.any():
                self._note_needed(exprs)
            if not self._notes:
                break
            self._ask()
        if self._waits.any():
            return {}
        for ask, places in self._places.items():
            if (places >= 0).all():
                self._rows.known[ask] = assemble(self._pieces[ask], places)
        return dict(zip(exprs, values, strict=True))

    def _ask(self) -> None:
        """Ask the questions of a round."""
        groups = _groups(self._rowwise, self._notes)
        named = [{ask.call: self._values(ask) for ask in group} for group in groups]
        with self.dispatcher.asking_together(named):
            for ask, noted in self._notes.items():
                self._keep(ask, np.flatnonzero(noted))
                self._early[ask] = self._early.get(ask, np.full(len(noted), False)) | noted

    def _note_needed(self, exprs: Sequence[Expr]) -> None:
        """Note, where it is known, just what a row needs whatever the other answers are."""
        key = tuple(exprs)
        if key not in self._rowwise.needed:
            self._rowwise.needed[key] = [*_needed_apart(exprs)]
        for needed in self._rowwise.needed[key]:
            questions = [part for part in needed.parts if isinstance(part, Ask)]
            numbers = np.flatnonzero(self._waits)
            patterns, place = np.unique(self._codes(needed, numbers), axis=1, return_inverse=True)
            with suppress(TooComplex):
                wants = [needed.of(tuple(codes)) for codes in patterns.T.tolist()]
                wanted = np.array(
                    [[at in own for own in wants] for at in range(len(needed.parts))]
                )[:, place.reshape(-1)]
                some = wanted.any(axis=0)  # else an answer failed, as the expressions do not follow
                for ask in questions:
                    own = self._notes.setdefault(ask, np.full(len(self._rows), False))
                    own[numbers[some]] = wanted[needed.parts.index(ask)][some]
        self._notes = {ask: noted for ask, noted in self._notes.items() if noted.any()}

    def _codes(self, needed: NeededQuestions, numbers: Places) -> NDArray[np.int8]:
        """The codes of the parts of expressions on some rows, as far as they are known."""
        rows = Rows(self._table).take(numbers)
        codes = np.full((len(needed.parts), len(numbers)), UNKNOWN, dtype=np.int8)
        before, self._looks = self._waits, True
        for at, part in enumerate(needed.parts):
            self._waits = np.full(len(self._rows), False)
            values = whole(self.column(part, rows))
            known = ~self._waits[numbers]
            found = pc.is_null(values).to_numpy(zero_copy_only=False)
            codes[at, known] = np.where(found, NULL, OTHER)[known]
            if pa.types.is_boolean(values.type):
                truths = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
                codes[at, known & ~found] = truths[known & ~found]
            if isinstance(part, Ask) and part in self._early:
                codes[at, known & self._early[part][numbers]] += EARLY
        self._looks, self._waits = False, before
        return codes

    def _values(self, ask: Ask) -> frozenset[Values]:
        rows = self._rows.take(np.flatnonzero(self._notes[ask]))
        found = self._rowwise.values(ask, rows)
        return frozenset() if found is None else frozenset(found[0])

    def _keep(self, ask: Ask, numbers: Places) -> None:
        """The answers to a question on some rows."""
        answers = whole(self._rowwise.column(ask, self._rows.take(numbers)))
        pieces = self._pieces.setdefault(ask, [])
        places = self._places_of(ask)
        places[numbers] = sum(map(len, pieces)) + np.arange(len(numbers))
        pieces.append(answers)

    def _places_of(self, ask: Ask) -> Places:
        none = np.full(len(self._rows), -1, dtype=np.int64)
        return self._places.setdefault(ask, none)

    def _numbers(self, rows: Rows) -> Places:
        return np.asarray(rows.table.column(self._number).to_numpy())

    def column(self, expr: Expr, rows: Rows) -> Column:
        if isinstance(expr, Field) or expr in rows.known:
            return super().column(expr, rows)
        if isinstance(expr, Ask):
            return self._answers_so_far(expr, rows)
        if not needs_model(expr):
            return self._of_settled(lambda some: RowWise.column(self, expr, some), rows)
        value = super().column(expr, rows)
        del rows.known[expr]  # on other rows it has no meaning
        return value

    def columns(self, exprs: Sequence[Expr], rows: Rows) -> list[Column]:
        return [self.column(e, rows) for e in exprs]

    def _of_settled(self, evaluate: Callable[[Rows], Column], rows: Rows) -> Column:
        """A value on the rows that do not wait; NULL elsewhere."""
        free = ~self._waits[self._numbers(rows)]
        if free.all():
            return evaluate(rows)
        places = np.flatnonzero(free)
        return spread(whole(evaluate(rows.take(places))), places, len(rows))

    def _answers_so_far(self, ask: Ask, rows: Rows) -> Column:
        numbers = self._numbers(rows)
        places = self._places_of(ask)
        if (open_ := self._open(ask, rows)).any():
            stored = open_.copy()
            stored[open_] = self._rowwise.known_rows(ask, rows.take(np.flatnonzero(open_)))
            if stored.any():
                self._keep(ask, np.unique(numbers[stored]))
            self._note(ask, numbers[open_ & ~stored])
        pieces = self._pieces.get(ask, [])
        if not pieces:
            return pa.nulls(len(rows), ask.call.type)
        return assemble(pieces, places[numbers])

    def _open(self, ask: Ask, rows: Rows) -> Masks:
        """The rows that need an answer which is not known yet. Its arguments are noted before."""
        numbers = self._numbers(rows)
        open_ = (self._places_of(ask)[numbers] < 0) & ~self._waits[numbers]
        inner = [arg for arg in ask.args if needs_model(arg)]
        if inner and open_.any():
            self._beside(inner, rows.take(np.flatnonzero(open_)))
        return np.asarray(open_ & ~self._waits[numbers])

    def _note(self, ask: Ask, numbers: Places) -> None:
        if not self._looks and len(numbers):
            self._notes.setdefault(ask, np.full(len(self._rows), False))[numbers] = True
        self._waits[numbers] = True

    def _beside(
        self,
        exprs: Sequence[Expr],
        rows: Rows,
        evaluate: Evaluation = _column,
    ) -> list[Column]:
        """The values of expressions of which none spares another."""
        before, after, values = self._waits, self._waits.copy(), []
        for expr in exprs:
            self._waits = before.copy()
            values.append(evaluate(self, expr, rows))
            self._leave_to_others(expr)
            after |= self._waits
        self._waits = after
        return values

    def _leave_to_others(self, expr: Expr) -> None:
        """Remember which questions of an expression may be asked where it waits."""
        for ask in () if self._looks else asks(expr):
            others = self._others.setdefault(ask, np.full(len(self._rows), False))
            others |= self._waits

    def _may_be(self, expr: Expr, value: bool, numbers: Places) -> Masks:
        """The rows on which a condition may be known to be ``value`` before its own questions are
        asked, by those that are asked, or may be, for other expressions."""
        if isinstance(expr, Ask):
            return self._may_be_known(expr, numbers)
        parts = [part for part in expr.children if needs_model(part)]
        name = expr.name if isinstance(expr, Node) else ""
        if name in ("and", "or"):
            may = [self._may_be(part, value, numbers) for part in parts]
            every = value is (name == "and")
            return np.asarray((np.logical_and if every else np.logical_or).reduce(may))
        if name == "not":
            return self._may_be(parts[0], not value, numbers)
        if name in ("is_true", "is_not_distinct_from"):
            return self._may_be(parts[0], value, numbers)
        return self._may_be_known(expr, numbers)

    def _may_be_known(self, expr: Expr, numbers: Places) -> Masks:
        """As ``_may_be``, for any value."""
        if isinstance(expr, Ask):
            known = self._places_of(expr)[numbers] >= 0
            for rows in (self._notes, self._others):
                if expr in rows:
                    known |= rows[expr][numbers]
            return known
        if isinstance(expr, Node) and expr.name in ("and", "or"):
            return self._may_be(expr, True, numbers) | self._may_be(expr, False, numbers)
        may = [self._may_be_known(part, numbers) for part in expr.children]
        if isinstance(expr, Node) and expr.name == "coalesce":
            return np.asarray(np.logical_or.reduce(may))
        if isinstance(expr, Node) and expr.name == "if_then":
            return np.asarray(may[0] & np.logical_or.reduce([*may[1::2], may[-1]]))
        return np.asarray(np.logical_and.reduce(may)) if may else np.full(len(numbers), True)

    def _other(self, expr: Node, rows: Rows) -> Column:
        parts = [part for part in expr.children if needs_model(part)]
        found = dict(zip(parts, self._beside(parts, rows), strict=True))
        return self._of_parts(expr, rows, found)

    def _of_parts(self, expr: Node, rows: Rows, found: Mapping[Expr, Column]) -> Column:
        """A function of parts with these values, which have no meaning on rows that wait."""
        own = Rows(rows.table, {**rows.known, **found})
        return self._of_settled(lambda some: self._rowwise._other(expr, some), own)

    def _strict(self, expr: Node, rows: Rows, must: Sequence[Expr]) -> Column:
        """As in ``RowWise``; but that an answer may fail spares no question."""
        left, states, after = rows, np.arange(len(rows)), self._waits.copy()
        found: dict[Expr, Column] = {}
        for part in sorted(must, key=lambda part: dearness(part, rows)):
            if literal_like(part):
                continue
            before = self._waits.copy()
            found[part] = value = whole(self.column(part, left))
            after |= self._waits
            kept = np.flatnonzero(_valid(value) | self._waits[self._numbers(left)])
            if _always_there(part):
                self._leave_to_others(part)
                self._waits = before
            if len(kept) < len(left):
                states, left = states[kept], left.take(kept)
                found = {own: column.take(kept) for own, column in found.items()}
        self._waits = after
        return spread(whole(self._of_parts(expr, left, found)), states, len(rows))

    def _connective(self, expr: Node, rows: Rows) -> Column:
        if self._looks or sum(map(needs_model, expr.children)) < 2:
            return super()._connective(expr, rows)
        numbers, before = self._numbers(rows), self._waits
        decisive = expr.name == "or"  # as in ``RowWise``
        combine, neutral = pc.or_kleene if decisive else pc.and_kleene, pa.scalar(not decisive)
        result, lines = pa.repeat(neutral, len(rows)), []
        self._looks = True
        for part in expr.children:
            self._waits = before.copy()
            if may_look(part):
                result = combine(result, self._if_known(part, rows, neutral))
                lines.append(self._waits[numbers])
            else:  # it may have to stay behind a condition
                lines.append(np.full(len(rows), True))
        self._looks, self._waits = False, before
        open_ = np.array(lines) & is_undecided(result, decisive) & ~before[numbers]
        for place, part in enumerate(expr.children):
            first = open_[place]
            others = {
                other: first & line
                for other, line in zip(expr.children, open_, strict=True)
                if other != part
            }
            later = self._left_for_later(
                others, numbers, lambda other, at: self._may_be(other, decisive, at)
            )
            self._waits[numbers[later]] = True
            chosen = np.flatnonzero(first & ~later)
            if len(chosen):
                value = self._if_known(part, rows.take(chosen), neutral)
                places = np.zeros(len(rows), dtype=np.int64)
                places[chosen] = 1 + np.arange(len(chosen))
                result = combine(result, assemble([pa.repeat(neutral, 1), value], places))
            open_[place] = False
            open_ &= ~self._waits[numbers] & is_undecided(result, decisive)
        return result

    def _if_known(self, expr: Expr, rows: Rows, otherwise: pa.Scalar) -> pa.Array:
        """The value of an expression; where it is open, another one."""
        value = whole(self.column(expr, rows))
        return pc.if_else(pa.array(self._waits[self._numbers(rows)]), otherwise, value)

    def _left_for_later(
        self, others: Mapping[Expr, Masks], numbers: Places, may: Callable[[Expr, Places], Masks]
    ) -> Masks:
        """The rows on which one of the ``others``, which are open there, may be known before a
        part, and spare it."""
        later = np.full(len(numbers), False)
        for part, open_ in others.items():
            if open_.any():
                later |= open_ & may(part, numbers)
        return later

    def _next_atom(
        self, predicate: TruthTable, decisions: Decisions, rows: Rows
    ) -> tuple[int, Masks] | None:
        numbers, matters = self._numbers(rows), decisions.matters
        matters[:, self._waits[numbers]] = False
        found = super()._next_atom(predicate, decisions, rows)
        if found is None:
            return None
        first, chosen = found
        others = {atom: matters[i] & chosen for i, atom in enumerate(predicate.atoms) if i != first}
        later = self._left_for_later(others, numbers, self._may_be_known)
        self._waits[numbers[later]] = True
        return first, chosen & ~later

    def _case(self, expr: Node, rows: Rows) -> Column:
        """As in ``RowWise``. Where a condition is open, what all of the later branches ask is noted
        with it."""
        pieces: list[pa.Array] = []
        place = np.full(len(rows), -1, dtype=np.int64)
        states, branches = np.arange(len(rows)), [*expr.children]
        while branches:
            condition, *branches = branches
            chosen = states
            if branches:
                some, before = rows.take(states), self._waits.copy()
                met = is_true(self.passing(condition, some))
                condition, *branches = branches
                sure = certain(condition) & certain_of_case(branches)
                self._note_all(sure, some, before)
                chosen, states = states[met], states[~met]
            value = whole(self.column(condition, rows.take(chosen)))
            place[chosen] = sum(map(len, pieces)) + np.arange(len(chosen))
            pieces.append(value)
        return assemble(pieces, place)

    def _note_all(self, questions: Iterable[Ask], rows: Rows, before: Masks) -> None:
        """Note questions on the rows that have come to wait."""
        numbers = self._numbers(rows)
        for ask in filter(is_plain, questions):
            open_ = self._waits[numbers] & ~before[numbers] & (self._places_of(ask)[numbers] < 0)
            places = np.flatnonzero(open_)
            stored = self._rowwise.known_rows(ask, rows.take(places))
            self._note(ask, numbers[places[~stored]])


def _needed_apart(exprs: Sequence[Expr]) -> Iterator[NeededQuestions]:
    """The needs of expressions, for those that share questions, where they are known."""
    for group in apart(exprs):
        with suppress(TooComplex):
            yield NeededQuestions(group)


def _valid(column: pa.Array) -> Masks:
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
