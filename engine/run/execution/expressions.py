"""Evaluates expressions with calls on chunks of rows, asking only where the answer matters.

AND, OR, CASE and COALESCE are evaluated here, part by part: a call sees only the rows that earlier
parts leave undecided (three-valued logic, as in SQL). DataFusion evaluates everything else around
calls on the chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import is_bytes, lists_bytes
from blendfusion.datafusion.error_gate import is_error
from blendfusion.errors import BlendFusionError, PlanError
from blendfusion.models.protocol.model import Values
from blendfusion.planner.ir.builders import cast_to_text, function, in_list
from blendfusion.planner.ir.necessary import never_fails
from blendfusion.planner.ir.nodes import (
    COMPUTES,
    GATES,
    Ask,
    Expr,
    Field,
    Node,
    StoredRows,
    asks,
    asks_model,
    fields,
    is_volatile,
    literal_like,
    needs_model,
    walk,
)
from blendfusion.planner.ir.possible_answers import outcomes, over_answers, possible_answers
from blendfusion.run.execution.certain_questions import STRICT, always_asks
from blendfusion.run.execution.join_keys import Keys
from blendfusion.run.execution.needed_questions import NeededQuestions, may_look
from blendfusion.run.execution.row_codes import Column, computes
from blendfusion.run.execution.row_ranges import RowRanges, may_decide_rows
from blendfusion.run.execution.scratch_context import Workbench
from blendfusion.run.execution.truth_table import (
    NULL,
    TRUE,
    UNKNOWN,
    Decisions,
    RowStates,
    TruthTable,
    truth_table,
)
from blendfusion.udfs.ask.dispatcher import Dispatcher, UnknownAnswerError
from blendfusion.udfs.ask.image_columns import may_hold_images
from blendfusion.udfs.ask.media import list_of_bytes
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import RowQuestion, UserBody
from blendfusion.udfs.evaluate.distinct import distinct
from blendfusion.udfs.evaluate.evaluate import evaluate
from blendfusion.udfs.evaluate.user_body import new_rows
from blendfusion.udfs.joins.matcher import Matches, matcher

_ARGUMENTS = (
    pa.types.is_string_view,
    pa.types.is_large_string,
    pa.types.is_binary_view,
    pa.types.is_large_binary,
    pa.types.is_fixed_size_binary,
)
"""Types of columns that a call accepts without a cast, although its function has another type."""


@dataclass(slots=True)
class Rows:
    """Rows of a chunk, with the expressions already evaluated on them."""

    table: pa.Table
    known: dict[Expr, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def filter(self, mask: Column, later: Sequence[Expr]) -> Rows:
        """The rows where ``mask`` is true (not NULL), for ``later`` expressions.

        Columns that those do not read become NULL, which costs nothing.
        """
        needed = set().union(*(fields(e) for e in later))
        n = pc.sum(mask, min_count=0).as_py()
        if n in (0, len(self)):
            return self.slice(0, n)
        columns = [
            column.filter(mask) if i in needed else pa.chunked_array([pa.nulls(n)])
            for i, column in enumerate(self.table.columns)
        ]
        reused = {part for e in later for part in walk(e)}
        known = {e: c.filter(mask) for e, c in self.known.items() if e in reused}
        return Rows(pa.table(columns, names=[str(i) for i in range(len(columns))]), known)

    def take(self, positions: np.ndarray) -> Rows:
        return Rows(
            self.table.take(positions), {e: c.take(positions) for e, c in self.known.items()}
        )

    def slice(self, offset: int, length: int) -> Rows:
        known = {e: c.slice(offset, length) for e, c in self.known.items()}
        return Rows(self.table.slice(offset, length), known)


class RowWise:
    """Evaluates expressions on rows, in one run."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        workbench: Callable[[], Workbench],
        stored: Callable[[int], pa.Table] | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.workbench = workbench
        self.stored = stored
        """The rows of completed stages, by number."""
        self.matchers: dict[Ask, Matches] = {}
        """The matchers of calls that choose among rows of stages."""
        self.keys: dict[int, Keys] = {}
        """The distinct values of stages that are the keys of joins."""
        self.needed: dict[tuple[Expr, ...], list[NeededQuestions]] = {}
        """The questions that expressions ask together, whatever the answers are."""
        self._truth_tables: dict[Expr, TruthTable | None] = {}
        self._bounded: dict[Expr, bool] = {}
        """Whether the ranges of answers may decide conditions on some rows."""
        self._possible: dict[object, bool] = {}
        """Whether conditions, and values in the rows of stages, are possible for some answer."""

    def column(self, expr: Expr, rows: Rows) -> Column:
        """The value of ``expr`` on every row. Exceptions of ingredients and of DataFusion pass
        through."""
        if isinstance(expr, Field):
            return rows.table.column(expr.index)
        if expr in rows.known:
            return rows.known[expr]
        if isinstance(expr, Ask):
            value = self._answers(expr, [self.argument(a, rows, expr.call) for a in expr.args])
        elif expr.rels:
            value = self._in_rows(expr, rows)
        elif expr.name == COMPUTES:
            value = pa.array(computes(expr.children, rows.table, self.workbench()))
        elif not needs_model(expr):
            value = self.workbench().columns([expr], rows.table)[0]
        elif expr.name in ("and", "or"):
            value = self._connective(expr, rows)
        elif expr.name in ("is_true", "is_not_true"):
            passed = whole(self.passing(expr.children[0], rows)).fill_null(False)
            value = passed if expr.name == "is_true" else pc.invert(passed)
        elif expr.name == "if_then":
            value = self._case(expr, rows)
        elif expr.name == "coalesce":
            value = self._coalesce(expr, rows)
        elif expr.name == "singular_or_list":
            value = self._in_list(expr, rows)
        elif expr.name == "nullif":
            value = self._strict(expr, rows, expr.children[:1])
        elif expr.name in STRICT:
            # The first two operands: LIKE has a third, its escape, which is NULL if absent.
            value = self._strict(expr, rows, expr.children[:2])
        elif expr.name == "array_has":
            value = self._strict(expr, rows, expr.children[:1])
        else:
            value = self._other(expr, rows)
        rows.known[expr] = value
        return value

    def passing(self, expr: Expr, rows: Rows) -> Column:
        """True for the rows on which a predicate is true; elsewhere FALSE or NULL. Calls are asked
        where they can decide that."""
        if self._is_never_true(expr):
            return pa.array(np.full(len(rows), False))
        if expr in rows.known or not len(rows):
            return self.column(expr, rows)
        possible, certain = self.decided_by_ranges(expr, rows)
        open_ = possible & ~certain
        if open_.all():
            return self._passing(expr, rows)
        if open_.any():
            certain[open_] = is_true(self._passing(expr, rows.take(np.flatnonzero(open_))))
        return pa.array(certain)

    def _passing(self, expr: Expr, rows: Rows) -> Column:
        predicate = self._in_steps(expr)
        if predicate is None:
            return self.column(expr, rows)
        states, decisions = self._states(predicate, rows)
        while (found := self._next_atom(predicate, decisions, rows)) is not None:
            i, chosen = found
            self._fill(states.known[i], predicate.atoms[i], chosen, rows)
            decisions = states.decide()
        return pa.array(decisions.true)

    def _next_atom(
        self, predicate: TruthTable, decisions: Decisions, rows: Rows
    ) -> tuple[int, np.ndarray] | None:
        """(an atom, the rows on which it is evaluated next); None if every row is decided."""
        return decisions.next([not any(map(asks_model, asks(a))) for a in predicate.atoms])

    def decided_by_ranges(self, expr: Expr, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """(the rows on which some answers may make a condition true, those on which all do)"""
        if expr not in self._bounded:
            self._bounded[expr] = may_decide_rows(expr)
        if not self._bounded[expr]:
            return np.full(len(rows), True), np.full(len(rows), False)
        found = RowRanges([expr], rows.table, self.workbench).of(expr)
        return found.true, found.certain

    def _is_never_true(self, expr: Expr) -> bool:
        """Whether no answer makes a condition true, by options that the planner did not know."""
        if not any(ask.call.task.options_query for ask in asks(expr)):
            return False
        if expr not in self._possible:
            found = outcomes(
                expr,
                lambda part, table: self.workbench().columns([part], table)[0],
                self.dispatcher.task_to_send,
            )
            self._possible[expr] = found is None or True in found
        return not self._possible[expr]

    def decided_rows(self, expr: Expr, rows: Rows) -> np.ndarray:
        """True for the rows on which no further answer can change whether a predicate is true."""
        predicate = self._in_steps(expr)
        possible, certain = self.decided_by_ranges(expr, rows)
        decided = ~possible | certain
        if predicate is None or not len(rows):
            return np.asarray(decided | self.known_rows(expr, rows))
        _, decisions = self._states(predicate, rows)
        return np.asarray(decided | ~decisions.matters.any(axis=0))

    def rows_that_ask(self, expr: Expr, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """(the rows on which a predicate asks some question unless answers are stored, the rows on
        which it is true without one). Of other rows, neither is known if it is no predicate."""
        predicate = self._in_steps(expr)
        none = np.full(len(rows), False)
        parts = (expr,) if predicate is None else predicate.atoms
        if any(not asks_model(a) for a in asks(expr)) or not all(map(always_asks, parts)):
            return none, ~none
        possible, certain = self.decided_by_ranges(expr, rows)
        open_ = possible & ~certain
        if predicate is None or not len(rows):
            return open_, certain
        decisions = self._known_parts(predicate, rows).decide()
        return np.asarray(open_ & decisions.matters.any(axis=0)), certain | decisions.true

    def _in_steps(self, expr: Expr) -> TruthTable | None:
        """The predicate for evaluation in steps, call by call; None if it is evaluated whole."""
        if expr not in self._truth_tables:
            self._truth_tables[expr] = None if self.cascades((expr,)) else truth_table(expr)
        return self._truth_tables[expr]

    def _known_parts(self, predicate: TruthTable, rows: Rows) -> RowStates:
        """The values of the parts without calls, and NULL for atoms that need no question."""
        tests = [test for test in predicate.present if test is not None]
        values = map(_truths, self.columns([*predicate.cheap, *tests], rows))
        of = dict(zip([*predicate.cheap, *tests], values, strict=True))
        cheap = np.array([of[part] for part in predicate.cheap], dtype=np.int8)
        cheap = cheap.reshape(len(predicate.cheap), len(rows))
        known = np.full((len(predicate.atoms), len(rows)), UNKNOWN, dtype=np.int8)
        for i, test in enumerate(predicate.present):
            if test is not None:
                known[i, of[test] != TRUE] = NULL
        return RowStates(predicate, cheap, known)

    def _states(self, predicate: TruthTable, rows: Rows) -> tuple[RowStates, Decisions]:
        """(what is known of the parts of a predicate, with stored answers; what that decides)"""
        states = self._known_parts(predicate, rows)
        decisions = states.decide()
        looked_up = [
            i
            for i, atom in enumerate(predicate.atoms)
            if all(self.dispatcher.lookup.any_answer(ask.call) for ask in asks(atom))
        ]
        for i in looked_up:
            waiting = np.flatnonzero(decisions.matters[i])
            answered = waiting[self.known_rows(predicate.atoms[i], rows.take(waiting))]
            wanted = np.isin(np.arange(len(rows)), answered)
            self._fill(states.known[i], predicate.atoms[i], wanted, rows)
        return states, states.decide() if looked_up else decisions

    def _fill(self, codes: np.ndarray, atom: Expr, wanted: np.ndarray, rows: Rows) -> None:
        """Evaluate ``atom`` on the rows that are ``wanted``."""
        if wanted.any():
            some = rows if wanted.all() else rows.take(np.flatnonzero(wanted))
            codes[wanted] = _truths(self.column(atom, some))

    def _answers(self, ask: Ask, arguments: Sequence[Column]) -> Column:
        if ask.domain is None:
            return evaluate(ask.call, arguments, self.dispatcher)
        if ask not in self.matchers:
            assert isinstance(ask.domain, StoredRows)
            assert self.stored is not None
            self.matchers[ask] = matcher(ask.call, self.stored(ask.domain.stage), self.dispatcher)
        return self.matchers[ask].column(arguments)

    def _in_rows(self, expr: Node, rows: Rows) -> Column:
        """Whether a value may be among the rows of a stage; NULL is not."""
        (value,), (held,) = expr.children, expr.rels
        assert isinstance(held, StoredRows)
        if held.stage not in self.keys:
            assert self.stored is not None
            self.keys[held.stage] = Keys(self.stored(held.stage).column(0))
        if not self._may_be_among(value, held.stage):
            return pa.array(np.full(len(rows), False))
        return self.keys[held.stage].among(whole(self.column(value, rows)))

    def _may_be_among(self, value: Expr, stage: int) -> bool:
        """Whether some answer makes ``value`` one of the rows of a stage."""
        if (value, stage) not in self._possible:
            possible = possible_answers(value, self.dispatcher.task_to_send)
            self._possible[value, stage] = possible is None or self._are_some_among(
                over_answers(value, possible[0]), possible[1], stage
            )
        return self._possible[value, stage]

    def _are_some_among(self, value: Expr, answers: pa.Table, stage: int) -> bool:
        try:
            values = self.workbench().columns([value], answers)[0]
        except Exception:  # an answer for which it fails: it decides nothing
            return True
        return bool(pc.any(self.keys[stage].among(whole(values)), min_count=0).as_py())

    def cascades(self, exprs: Sequence[Expr]) -> bool:
        """Whether a cascade answers some call in ``exprs``."""
        return any(
            self.dispatcher.targets_of(ask.call) is not None for e in exprs for ask in asks(e)
        )

    def is_known(self, expr: Expr, rows: Rows) -> bool:
        """Whether ``expr`` has known values on every row; they are then kept."""
        if any(ask.call.ingredient.kind.has_body for ask in asks(expr)):
            return False  # the questions of a user's function are known only when it runs
        try:
            with self.dispatcher.only_known():
                self.column(expr, rows)
        except UnknownAnswerError:
            return False
        return True

    def values(self, ask: Ask, rows: Rows) -> tuple[list[Values], np.ndarray] | None:
        """(the distinct values about which ``ask`` asks one question each, the place of each row's
        value among them); None if its questions are known only when it runs, or are several, or if
        its values cannot be computed on every row: a condition may keep ``10 / n`` from some."""
        kind = ask.call.ingredient.kind
        if (
            type(kind) is not RowQuestion
            or ask.domain is not None
            or not all(never_fails(cast_to_text(arg) or arg) for arg in ask.args)
        ):
            return None
        arguments = [self.argument(a, rows, ask.call) for a in ask.args]
        if may_hold_images(arguments):
            return None
        values, places = distinct(arguments)
        return values, _numpy(places)

    def known_rows(self, expr: Expr, rows: Rows) -> np.ndarray:
        """True for the rows on which every call of ``expr`` has a stored answer."""
        known = np.full(len(rows), True)
        for ask in asks(expr):
            body = self.new_to_body(ask, rows)
            if body is not None:
                known &= ~body[0]
                continue
            if not self.dispatcher.lookup.any_answer(ask.call):
                return np.full(len(rows), False)
            found = self.values(ask, rows)
            if found is None:
                return np.full(len(rows), self.is_known(expr, rows))
            values, places = found
            stored = self.dispatcher.lookup.stored_values(ask.call, values)
            known &= np.array([v in stored for v in values], dtype=bool)[places]
        return known

    def new_to_body(self, ask: Ask, rows: Rows) -> tuple[np.ndarray, int] | None:
        """(true for the rows that a user's function would see, the number of distinct ones among
        them); None where no such function answers ``ask``, or its values are not known before a
        question, or cannot be computed on every row."""
        kind = ask.call.ingredient.kind
        if not isinstance(kind, UserBody) or any(
            needs_model(arg) or not never_fails(cast_to_text(arg) or arg) for arg in ask.args
        ):
            return None
        arguments = [self.argument(a, rows, ask.call) for a in ask.args]
        return new_rows(kind, ask.call, arguments, self.dispatcher)

    def from_stored(self, expr: Expr, rows: Rows) -> Column:
        """As ``column``, on rows with stored answers, some of which come again to be asked."""
        return self.column(expr, rows)

    def columns(self, exprs: Sequence[Expr], rows: Rows) -> list[Column]:
        """The values of several expressions; one plan evaluates all that need no model."""
        cheap = [
            e
            for e in dict.fromkeys(exprs)
            if not isinstance(e, Field) and not needs_model(e) and e not in rows.known
        ]
        if cheap:
            values = self.workbench().columns(cheap, rows.table)
            rows.known.update(zip(cheap, values, strict=True))
        return [self.column(e, rows) for e in exprs]

    def rehearse(self, exprs: Sequence[Expr], empty: pa.Table) -> None:
        """Evaluate every part of the expressions on no rows, so that errors of DataFusion appear
        before a model is asked. Raises PlanError."""
        rows = Rows(empty)
        try:
            for expr in exprs:
                self._rehearse(expr, rows)
        except BlendFusionError:
            raise
        except BaseException as problem:  # DataFusion raises plain Exceptions, and panics on no row
            if not is_error(problem):
                raise
            raise PlanError(
                f"DataFusion cannot evaluate an expression alone: {problem}"
            ) from problem

    def _rehearse(self, expr: Expr, rows: Rows) -> None:
        if isinstance(expr, Ask):
            for arg in expr.args:
                self._rehearse(arg, rows)
        elif isinstance(expr, Node) and needs_model(expr) and expr.name in GATES:
            for child in expr.children:
                self._rehearse(child, rows)
        else:
            self.column(expr, rows)

    def argument(self, expr: Expr, rows: Rows, call: Call) -> Column:
        """The values of an argument of ``call``."""
        # DataFusion casts arguments to plain text, or to bytes; a column of another text layout
        # needs no plan.
        inner = cast_to_text(expr)
        if inner is None:
            return self.column(expr, rows)
        # Bytes may be images, which are no text.
        may_be_bytes = isinstance(call.ingredient.kind, RowQuestion)
        if isinstance(inner, Field):
            column = rows.table.column(inner.index)
            if lists_bytes(column.type):
                raise list_of_bytes(call.ingredient.name)
            if any(known(column.type) for known in _ARGUMENTS) or (
                may_be_bytes and pa.types.is_binary(column.type)
            ):
                return column
        elif may_be_bytes:
            kind = self.column(inner, Rows(rows.table.slice(0, 0))).type
            if lists_bytes(kind):
                raise list_of_bytes(call.ingredient.name)
            if is_bytes(kind):
                return self.column(inner, rows)
        return self.column(expr, rows)

    def _other(self, expr: Node, rows: Rows) -> Column:
        """Any function: parts with calls become columns, and DataFusion evaluates the rest."""
        table = rows.table
        children: list[Expr] = []
        for child in expr.children:
            # A literal stays one: DataFusion requires literals in some places, such as the escape
            # of LIKE.
            if needs_model(child) or (child in rows.known and not literal_like(child)):
                children.append(Field(table.num_columns))
                table = table.append_column(str(table.num_columns), self.column(child, rows))
            else:
                children.append(child)
        return self.workbench().columns([replace(expr, children=tuple(children))], table)[0]

    def _strict(self, expr: Node, rows: Rows, must: Sequence[Expr]) -> Column:
        """A function that is NULL if any of the parts ``must`` is: a NULL decides the row, and
        later parts see the other rows."""
        left, states = rows, np.arange(len(rows))
        waiting = list(expr.children)
        for part in sorted(must, key=lambda part: dearness(part, rows)):
            waiting.remove(part)
            if literal_like(part):
                continue
            if not any(_asks(other, left) for other in waiting):
                break  # no undecided call is left
            valid = _numpy(whole(self.column(part, left)).is_valid())
            if not valid.all():
                states, left = states[valid], left.take(np.flatnonzero(valid))
        value = self._other(expr, left)
        if left is rows:
            return value
        return spread(whole(value), states, len(rows))

    def _connective(self, expr: Node, rows: Rows) -> Column:
        """AND / OR: each part sees the rows that earlier parts leave undecided, cheap ones first;
        but a part whose answers a row has already comes before all that ask about it."""
        decisive = expr.name == "or"  # a TRUE decides an OR, a FALSE an AND
        combine = pc.or_kleene if decisive else pc.and_kleene
        result: pa.Array = pa.array(np.full(len(rows), not decisive))
        parts = sorted(expr.children, key=lambda part: dearness(part, rows))
        for part, known in self._answered_parts(parts, rows):
            some = rows.take(np.flatnonzero(known))
            value = spread(whole(self.column(part, some)), np.flatnonzero(known), len(rows))
            result = combine(result, pc.if_else(pa.array(known), value, not decisive))
        for part in parts:
            states = np.flatnonzero(is_undecided(result, decisive))
            if len(states) == 0:
                break
            everything = len(states) == len(rows)
            subset = rows if everything else rows.take(states)
            value = whole(self.column(part, subset))
            # A NULL in a decided row leaves it decided: x OR TRUE, x AND FALSE.
            result = combine(result, value if everything else spread(value, states, len(rows)))
        return result

    def _answered_parts(
        self, parts: Sequence[Expr], rows: Rows
    ) -> Iterator[tuple[Expr, np.ndarray]]:
        """The parts with answers among several that ask, and the rows that have them."""
        asking = [part for part in parts if needs_model(part) and part not in rows.known]
        for part in asking if len(asking) > 1 else ():
            if may_look(part) and not is_volatile(part):
                known = self.known_rows(part, rows)
                if known.any():
                    yield part, known

    def _in_list(self, expr: Node, rows: Rows) -> Column:
        """``x IN (…)``: an item with a call sees the rows whose value equals no item before it. The
        items without calls are compared by one operator, however many they are."""
        value, *items = expr.children
        asking = [item for item in items if needs_model(item)]
        if not asking:
            return self._other(expr, rows)
        plain = [item for item in items if not needs_model(item)]
        terms = [function("equal", (value, item)) for item in asking]
        if plain:
            terms.insert(0, in_list(value, plain))
        return self._connective(function("or", tuple(terms)), rows)

    def _case(self, expr: Node, rows: Rows) -> Column:
        """CASE: a condition sees the rows without a branch so far, a result the rows of its
        branch."""
        branches, otherwise = expr.children, None
        if len(branches) % 2:
            otherwise = branches[-1]
        pieces: list[pa.Array] = []
        place = np.full(len(rows), -1, dtype=np.int64)
        states = np.arange(len(rows))

        def settle(chosen: np.ndarray, result: Expr) -> None:
            value = whole(self.column(result, rows.take(chosen)))
            place[chosen] = sum(map(len, pieces)) + np.arange(len(chosen))
            pieces.append(value)

        for condition, result in zip(branches[0::2], branches[1::2], strict=False):
            met = is_true(self.passing(condition, rows.take(states)))
            settle(states[met], result)
            states = states[~met]
        if otherwise is not None:
            settle(states, otherwise)
        return assemble(pieces, place)

    def _coalesce(self, expr: Node, rows: Rows) -> Column:
        pieces: list[pa.Array] = []
        place = np.full(len(rows), -1, dtype=np.int64)
        states = np.arange(len(rows))
        for part in expr.children:
            value = whole(self.column(part, rows.take(states)))
            found = _numpy(value.is_valid())
            place[states[found]] = sum(map(len, pieces)) + np.flatnonzero(found)
            pieces.append(value)
            states = states[~found]
        return assemble(pieces, place)


def _asks(expr: Expr, rows: Rows) -> bool:
    """Whether ``expr`` has a call without answers on these rows."""
    return expr not in rows.known and any(ask not in rows.known for ask in asks(expr))


def dearness(expr: Expr, rows: Rows) -> int:
    """0 if no question is left on these rows, 1 if none to a language model is, else 2."""
    if not _asks(expr, rows):
        return 0
    return 2 if any(asks_model(ask) and ask not in rows.known for ask in asks(expr)) else 1


def whole(column: Column) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def is_true(mask: Column) -> np.ndarray:
    """Where a predicate is true, not NULL."""
    return _numpy(whole(pc.fill_null(mask, False)))


def _numpy(column: pa.Array) -> np.ndarray:
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _truths(column: Column) -> np.ndarray:
    """The codes of a boolean column."""
    filled = pc.fill_null(whole(column).cast(pa.int8()), NULL)
    return _numpy(filled)


def is_undecided(values: pa.Array, decisive: bool) -> np.ndarray:
    """True where a three-valued result is undecided."""
    decided = pc.fill_null(values if decisive else pc.invert(values), False)
    return ~_numpy(decided)


def spread(values: pa.Array, positions: np.ndarray, length: int) -> pa.Array:
    """An array of ``length`` with ``values`` at ``positions`` and NULL elsewhere."""
    index = np.full(length, -1, dtype=np.int64)
    index[positions] = np.arange(len(positions))
    return values.take(pa.array(index, mask=index < 0))


def assemble(pieces: Sequence[pa.Array], place: np.ndarray) -> pa.Array:
    """Row i is value ``place[i]`` of the concatenated pieces; -1 is NULL."""
    joined = pa.concat_arrays(pieces)
    return joined.take(pa.array(place, mask=place < 0))
