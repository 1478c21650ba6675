"""The questions that some expressions ask of a row whatever the answers are, known by what the
expressions do with every combination of the answers.

``CASE WHEN f(x) THEN g(x) END, NOT f(x) AND g(x)`` asks ``f`` and ``g`` of every row: each spares
``g`` where the other asks it. The expressions are followed one after the other, as they are
evaluated without company: of AND and OR, a part that is known comes first, else the next one. An
answer that came early is known from where it would be asked, so that company leads to no question
that would not be asked without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, TypeAlias

import pyarrow as pa

from blendfusion.planner.ir.boolean_atoms import canonical, is_boolean
from blendfusion.planner.ir.builders import cast_to_text, is_null_literal, literal
from blendfusion.planner.ir.necessary import TRUTH_TESTS, never_fails
from blendfusion.planner.ir.nodes import Ask, Expr, Field, Node, asks, needs_model, substitute
from blendfusion.run.execution.certain_questions import STRICT
from blendfusion.run.execution.truth_table import FALSE, NULL, TRUE, UNKNOWN
from blendfusion.udfs.declare.kinds import RowQuestion

OTHER = 4
"""The code of an answer that is no boolean."""
EARLY = 8
"""The difference of an early answer's code from that of the answer."""
_MOST_OPEN = 10
"""With more open questions, there are too many combinations of answers."""
_MOST_FOUND = 100_000

Codes: TypeAlias = tuple[int, ...]
"""The codes of the values that the parts of expressions have on a row."""
_Value: TypeAlias = "int | Literal['?'] | None"
"""A value as far as it is followed: a boolean or whole number, NULL, or any other ('?')."""
_Step: TypeAlias = Callable[[Codes], _Value]


class _Open(Exception):
    """The value of a part is open: the answer to a question, or what is known with one."""

    def __init__(self, part: int, *, is_question: bool) -> None:
        self.part, self.is_question = part, is_question


class TooComplex(Exception):
    """The combinations of the answers do not tell which questions expressions ask."""


class NeededQuestions:
    """The questions that some expressions, which share some, ask of a row."""

    def __init__(self, exprs: Sequence[Expr]) -> None:
        """Raises TooComplex."""
        self.parts: list[Expr] = []
        """The questions, conditions without calls, and conditions on answers that are no
        booleans."""
        self._places: dict[Expr, int] = {}
        self._found: dict[Codes, frozenset[int]] = {}
        self._steps = [self._step(canonical(expr)) for expr in exprs]

    def of(self, codes: Codes) -> frozenset[int]:
        """The open questions, by their place, that are asked whatever the answers are. Raises
        TooComplex."""
        if codes not in self._found:
            if self._count_open(codes) > _MOST_OPEN or len(self._found) > _MOST_FOUND:
                raise TooComplex
            self._found[codes] = self._find(codes)
        return self._found[codes]

    def _count_open(self, codes: Codes) -> int:
        parts = zip(self.parts, codes, strict=True)
        return sum(code == UNKNOWN and isinstance(part, Ask) for part, code in parts)

    def _find(self, codes: Codes) -> frozenset[int]:
        try:
            for step in self._steps:
                step(codes)
        except _Open as open_:
            place = open_.part
        else:
            return frozenset()
        if codes[place] >= EARLY:
            return self.of((*codes[:place], codes[place] - EARLY, *codes[place + 1 :]))
        part = self.parts[place]
        others = isinstance(part, Ask) and not is_boolean(part)
        every: frozenset[int] | None = None
        for value in (OTHER,) if others else (TRUE, FALSE):
            rest = self.of((*codes[:place], value, *codes[place + 1 :]))
            every = rest if every is None else every & rest
            if not every:
                break
        assert every is not None
        return every | {place} if isinstance(part, Ask) else every

    def _place(self, part: Expr) -> int:
        if part not in self._places:
            self._places[part] = len(self.parts)
            self.parts.append(part)
        return self._places[part]

    def _step(self, expr: Expr) -> _Step:
        """A function that evaluates an expression by codes; it raises _Open for an open part."""
        if not needs_model(expr):
            return partial(_constant, value=_literal(expr))
        if isinstance(expr, Ask):
            values = [cast_to_text(arg) or arg for arg in expr.args]
            if not is_plain(expr) or not all(map(never_fails, values)):
                raise TooComplex
            return partial(_part, place=self._place(expr), is_question=True)
        assert isinstance(expr, Node)
        children = expr.children
        if expr.rels:
            raise TooComplex
        if expr.name in ("and", "or"):
            return partial(
                _connect, parts=[*map(self._truth, children)], decisive=expr.name == "or"
            )
        if expr.name == "not":
            return partial(_not, part=self._truth(children[0]))
        if expr.name in TRUTH_TESTS:
            return partial(_test, part=self._truth(children[0]), met=TRUTH_TESTS[expr.name])
        if expr.name == "if_then":
            return self._case(children)
        if expr.name == "equal":
            one, other = map(self._step, children)
            return partial(_equal, one=one, other=other)
        if expr.name == "cast":
            return self._step(children[0])
        if expr.name in ("coalesce", "nullif", "singular_or_list", "array_has"):
            if any(map(needs_model, children[1:])):
                raise TooComplex
            return partial(_all, parts=[self._step(children[0])], strict=False)
        parts = [self._step(child) for child in children if needs_model(child)]
        return partial(_all, parts=parts, strict=expr.name in STRICT)

    def _case(self, children: Sequence[Expr]) -> _Step:
        """CASE, of whose conditions each asks its questions in their order."""
        for condition in children[: len(children) - 1 : 2]:
            found = [*asks(condition)]
            if len(found) > 1 and not (
                len(found) == len({*found}) and all(map(_is_one_question, condition.children))
            ):
                raise TooComplex  # the table of its truths orders them
        conditions = map(self._truth, children[: len(children) - 1 : 2])
        results = map(self._step, children[1::2])
        otherwise = self._step(children[-1]) if len(children) % 2 else None
        return partial(
            _cases, branches=[*zip(conditions, results, strict=True)], otherwise=otherwise
        )

    def _truth(self, expr: Expr) -> _Step:
        """As ``_step``, for a condition: its value is a boolean or NULL."""
        if not needs_model(expr):
            known = _literal(expr)
            if known != "?":
                return partial(_constant, value=known)
            if not never_fails(expr):
                raise TooComplex
            return partial(_part, place=self._place(expr), is_question=False)
        step = self._step(expr)
        if _is_followed(expr):
            return step
        if not may_look(expr):
            raise TooComplex
        return partial(_truth, step=step, place=self._place(expr))


def is_plain(expr: Expr) -> bool:
    """Whether an expression is a question about values that are there on every row."""
    if not isinstance(expr, Ask) or expr.domain is not None:
        return False
    return type(expr.call.ingredient.kind) is RowQuestion and not any(map(needs_model, expr.args))


def may_look(expr: Expr) -> bool:
    """Whether an expression has a value on every row, once its answers are known."""

    def answer_column(part: Expr) -> Expr | None:
        own = part.children[0] if isinstance(part, Node) and part.name == "cast" else part
        if isinstance(own, Ask):
            return None if own is not part and pa.types.is_string(own.call.type) else Field(0)
        return substitute(own, answer_column) if own is not part and is_boolean(own) else None

    values = [cast_to_text(arg) or arg for ask in asks(expr) for arg in ask.args]
    return all(map(never_fails, (substitute(expr, answer_column), *values)))


def _is_followed(expr: Expr) -> bool:
    """Whether an expression is a function of booleans and whole numbers that steps compute."""
    if isinstance(expr, Ask):
        return is_boolean(expr)
    if not needs_model(expr):
        return _literal(expr) != "?"
    if not isinstance(expr, Node):
        return False
    if expr.name in ("and", "or", "not", *TRUTH_TESTS):
        return True
    if expr.name == "if_then":
        results = (*expr.children[1::2], *(expr.children[-1:] if len(expr.children) % 2 else ()))
        return all(map(_is_followed, results))
    return expr.name in ("equal", "cast") and all(map(_is_followed, expr.children))


def _is_one_question(expr: Expr) -> bool:
    """Whether an expression asks nothing, or is one question, or one negated."""
    own = expr.children[0] if isinstance(expr, Node) and expr.name == "not" else expr
    return isinstance(own, Ask) or not needs_model(own)


def apart(exprs: Iterable[Expr]) -> list[list[Expr]]:
    """The expressions by those that share questions, each group in their order."""
    groups: list[tuple[set[Ask], set[int]]] = []
    every = [*exprs]
    for place, expr in enumerate(every):
        own, places = {*asks(expr)}, {place}
        for found in [found for found in groups if found[0] & own]:
            groups.remove(found)
            own, places = own | found[0], places | found[1]
        groups.append((own, places))
    return [[every[place] for place in sorted(places)] for _, places in groups]


def _literal(expr: Expr) -> _Value:
    if is_null_literal(expr):
        return None
    value = literal(expr)
    return value if isinstance(value, int) else "?"


def _constant(codes: Codes, value: _Value) -> _Value:
    return value


def _part(codes: Codes, place: int, *, is_question: bool) -> _Value:
    if codes[place] == UNKNOWN or codes[place] >= EARLY:
        raise _Open(place, is_question=is_question)
    return {TRUE: True, FALSE: False, NULL: None}.get(codes[place], "?")


def _truth(codes: Codes, step: _Step, place: int) -> _Value:
    value = step(codes)
    return _part(codes, place, is_question=False) if value == "?" else value


def _connect(codes: Codes, parts: Sequence[_Step], *, decisive: bool) -> _Value:
    waiting, null = [], False
    for part in parts:
        try:
            value = part(codes)
        except _Open as open_:
            waiting.append(open_)
            continue
        if value is decisive:
            return decisive
        null |= value is None
    if waiting:
        raise min(waiting, key=lambda open_: open_.is_question)
    return None if null else not decisive


def _not(codes: Codes, part: _Step) -> _Value:
    value = part(codes)
    return None if value is None else not value


def _test(codes: Codes, part: _Step, met: Sequence[str]) -> _Value:
    value = part(codes)
    truth = "null" if value is None else "true" if value else "false"
    return truth in met


def _equal(codes: Codes, one: _Step, other: _Step) -> _Value:
    left = one(codes)
    if left is None:
        return None
    right = other(codes)
    if right is None:
        return None
    return "?" if "?" in (left, right) else left == right


def _all(codes: Codes, parts: Sequence[_Step], *, strict: bool) -> _Value:
    for part in parts:
        if part(codes) is None and strict:
            return None
    return "?"


def _cases(
    codes: Codes, branches: Sequence[tuple[_Step, _Step]], otherwise: _Step | None
) -> _Value:
    for condition, result in branches:
        if condition(codes):
            return result(codes)
    return None if otherwise is None else otherwise(codes)
