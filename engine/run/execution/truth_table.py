"""Evaluates a predicate with several calls: the next call is asked only about rows on which its
answer can still change whether the predicate is true.

``CASE WHEN f(x) THEN p ELSE q END`` needs no answer on rows where ``p`` and ``q`` are both true,
and ``f(x) AND g(y) OR h(z)`` none about ``x`` where ``y`` is NULL. The parts without calls come
first; a row is then a function of the answers that are still unknown. All combinations of these
(true, false, and NULL, since any answer may fail) tell which calls matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from blendfusion.planner.ir.boolean_atoms import CONNECTIVES, atoms, canonical
from blendfusion.planner.ir.necessary import ALWAYS, TRUTH_TESTS, never_fails, not_null
from blendfusion.planner.ir.nodes import Expr, Node, asks, is_volatile, needs_model

Codes: TypeAlias = NDArray[np.int8]
Masks: TypeAlias = NDArray[np.bool_]
Shares: TypeAlias = NDArray[np.float64]

FALSE, TRUE, NULL, UNKNOWN = 0, 1, 2, 3
_CODES = {"false": FALSE, "true": TRUE, "null": NULL}
_MOST_ATOMS = 4
"""With more, there are too many combinations of answers."""
_PATTERNS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class TruthTable:
    """A predicate as a function of cheap parts and atoms (see ``boolean_atoms``)."""

    expr: Expr
    cheap: tuple[Expr, ...]
    atoms: tuple[Expr, ...]
    present: tuple[Expr | None, ...]
    """For each atom, a condition without calls without which it is NULL."""


def truth_table(expr: Expr) -> TruthTable | None:
    """``expr`` for evaluation in steps; None if there is nothing to gain, or it is too complex."""
    if is_volatile(expr) or any(ask.domain is not None for ask in asks(expr)):
        return None
    whole = canonical(expr)
    places = tuple(atoms(whole))
    found = tuple(dict.fromkeys(places))
    cheap = tuple(dict.fromkeys(_cheap_parts(whole)))
    if len(places) + len(cheap) < 2 or len(found) > _MOST_ATOMS:
        return None
    if not all(map(never_fails, cheap)):
        return None  # it may have to stay behind a condition
    tests = (not_null(atom) for atom in found)
    return TruthTable(whole, cheap, found, tuple(None if t == ALWAYS else t for t in tests))


def _cheap_parts(expr: Expr) -> list[Expr]:
    if not needs_model(expr):
        return [expr]
    if isinstance(expr, Node) and expr.name in CONNECTIVES:
        return [part for child in expr.children for part in _cheap_parts(child)]
    return []


class RowStates:
    """The rows of a chunk: for each, what is known of the parts of a predicate."""

    def __init__(self, predicate: TruthTable, cheap: Codes, known: Codes) -> None:
        """``cheap`` and ``known`` have a line for each part and atom, and a column for each row."""
        self._predicate = predicate
        self._cheap = cheap
        self.known = known
        self._usual: Shares | None = None

    def decide(self) -> Decisions:
        """Compute which rows the answers so far decide, and which answers are still needed."""
        lines = np.concatenate([self._cheap, self.known])
        patterns, place = np.unique(lines, axis=1, return_inverse=True)
        parts = [
            _decisions(self._predicate, patterns[:, start : start + _PATTERNS_AT_ONCE])
            for start in range(0, patterns.shape[1], _PATTERNS_AT_ONCE)
        ]
        place = place.reshape(-1)
        true = np.concatenate([part[0] for part in parts])[place]
        matters, decides = (
            np.concatenate([part[i] for part in parts], axis=1)[:, place] for i in (1, 2)
        )
        if self._usual is None:
            self._usual = (decides * matters).sum(axis=1) / np.maximum(matters.sum(axis=1), 1)
        return Decisions(true, matters, decides, self._usual)


@dataclass(frozen=True, slots=True)
class Decisions:
    """``true``: the rows that are decided and true. For each atom, ``matters``: the rows on which
    its value can still change the result; ``decides``: the share of its answers after which nothing
    else can; ``usual``: the mean of these before any answer."""

    true: Masks
    matters: Masks
    decides: Shares
    usual: Shares

    def next(self, free: Sequence[bool]) -> tuple[int, Masks] | None:
        """(an atom, the rows on which it is next); None if every row is decided. On a row that is
        one that is ``free`` of questions, else one that its answers most often make the last; of
        several, one that usually does. So answers about other rows change nothing."""
        open_ = self.matters.any(axis=0)
        if not open_.any():
            return None
        merit = np.array(free) * 4 + self.usual.round(9) / 4
        merit = np.where(self.matters, self.decides.round(9) + 1 + merit[:, np.newaxis], 0.0)
        first = merit.argmax(axis=0)
        atom = int(first[open_].min())
        return atom, open_ & (first == atom)


def _decisions(predicate: TruthTable, patterns: Codes) -> tuple[Masks, Masks, Shares]:
    """(where a predicate is decided and true, and for each atom where it matters, and how often it
    is the last), by patterns of what is known."""
    n, width = len(predicate.atoms), patterns.shape[1]
    n_cheap = len(predicate.cheap)
    columns: dict[Expr, Codes] = {
        part: patterns[i].reshape((1,) * n + (width,)) for i, part in enumerate(predicate.cheap)
    }
    for i, atom in enumerate(predicate.atoms):
        every = np.arange(3, dtype=np.int8).reshape([3 if j == i else 1 for j in range(n)] + [1])
        known = patterns[n_cheap + i].reshape((1,) * n + (width,))
        columns[atom] = np.where(known == UNKNOWN, every, known).astype(np.int8)
    result = _value(predicate.expr, columns) == TRUE
    result = np.broadcast_to(result, (3,) * n + (width,))
    places = tuple(range(n))
    matters = np.zeros((n, width), dtype=bool)
    decides = np.zeros((n, width))
    for i in range(n):
        first = result.take([0], axis=i)
        matters[i] = (result != first).any(axis=places)
        for answer in (FALSE, TRUE):
            left = result.take(answer, axis=i).reshape(-1, width)
            decides[i] += (left == left[:1]).all(axis=0) / 2
    true = result.reshape(-1, width)[0] & ~matters.any(axis=0)
    return true, matters, decides


def _value(expr: Expr, columns: Mapping[Expr, Codes]) -> Codes:
    """The codes of ``expr``, in three-valued logic."""
    if expr in columns:
        return columns[expr]
    assert isinstance(expr, Node)
    values = [_value(child, columns) for child in expr.children]
    if expr.name in ("and", "or"):
        return _connect(expr.name, values)
    if expr.name == "not":
        return np.array([TRUE, FALSE, NULL], dtype=np.int8)[values[0]]
    if expr.name == "if_then":
        return _case(values)
    if expr.name == "coalesce":
        result = values[0]
        for value in values[1:]:
            result = np.where(result == NULL, value, result)
        return result
    wanted = [_CODES[truth] for truth in TRUTH_TESTS[expr.name]]
    return np.isin(values[0], wanted).astype(np.int8)


def _connect(name: str, values: Sequence[Codes]) -> Codes:
    decisive = FALSE if name == "and" else TRUE
    result = values[0]
    for value in values[1:]:
        is_decided = (result == decisive) | (value == decisive)
        is_null = (result == NULL) | (value == NULL)
        rest = np.where(is_null, NULL, 1 - decisive)
        result = np.where(is_decided, decisive, rest).astype(np.int8)
    return result


def _case(values: Sequence[Codes]) -> Codes:
    null = np.array(NULL, dtype=np.int8)
    result = values[-1] if len(values) % 2 else null
    pairs = list(zip(values[0::2], values[1::2], strict=False))
    for condition, value in reversed(pairs):
        result = np.where(condition == TRUE, value, result)
    return result
