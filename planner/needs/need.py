"""The rows of a relation that are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Direction,
    Expr,
    Plan,
    Take,
    fields,
    inline,
    is_volatile,
)

Key = tuple[Expr, Direction]


@dataclass(frozen=True, slots=True)
class Need:
    """The rows of a relation that are read. Other rows may come or not, except between these."""

    takes: tuple[Take, ...] = ()
    """The first ones; the second take is of the rows that the first one leaves. None: all."""
    ranks: tuple[tuple[Expr, int], ...] = ()
    """Before these: columns that number rows, and the last number that is read."""
    once: bool = False
    """Whether any one of rows that are equal to each other will do."""


ALL = Need()


def over(take: Take, columns: Mapping[int, Expr]) -> Take | None:
    """``take`` over a relation whose column i is ``columns[i]``, of as many rows as can be told
    apart there; None if these are all."""
    found = cut(take, lambda e: is_other(e) or not fields(e) <= columns.keys())
    if found is None:
        return None
    per, order = (tuple(inline(e, columns) for e in part) for part in (found.per, found.order))
    return replace(found, per=per, order=order)


def change_each(takes: Sequence[Take], change: Callable[[Take], Take | None]) -> tuple[Take, ...]:
    """The takes that ``change`` makes of some, down to the first that is of all rows, or of more
    rows than it was before: the next one counts only those that were meant."""
    found: list[Take] = []
    for take in takes:
        own = change(take)
        if own is None:
            break
        found.append(own)
        if own.ties != take.ties:
            break
    return tuple(found)


def cut(take: Take, unknown: Callable[[Expr], bool]) -> Take | None:
    """``take`` without keys that are ``unknown``, of more rows; None if these are all."""
    if any(map(unknown, take.per)):
        return None
    known = next((i for i, e in enumerate(take.order) if unknown(e)), len(take.order))
    return first_keys(take, known)


def is_other(expr: Expr) -> bool:
    """Whether an expression may have another value when it is evaluated again."""
    return is_volatile(expr) or bool(expr.rels)


def first_keys(take: Take, count: int) -> Take | None:
    """``take`` in the order of its first keys alone, with the rows that are equal in these; None if
    these are all."""
    if count >= len(take.order):
        return take
    ties = min(take.ties or count, count)
    return replace(take.by(take.keys[:count]), ties=ties) if ties else None


def without(keys: Sequence[Key], constant: Sequence[Expr]) -> tuple[Key, ...]:
    """The order ``keys`` among rows that are equal in some expressions."""
    return tuple(key for key in keys if key[0] not in constant)


def agree(one: Sequence[Key], other: Sequence[Key]) -> bool:
    """Whether one of two orders refines the other."""
    return all(a == b for a, b in zip(one, other, strict=False))


def equal_in_groups(take: Take, rows: Plan) -> list[Expr]:
    """The expressions that have one value in each group that ``take`` makes of some rows."""
    return [e for e in take.per if not (take.of_groups and may_be_real(e, rows))]


def chain(takes: Sequence[Take], rows: Plan) -> tuple[tuple[Take, ...], tuple[Key, ...]]:
    """(those of the first two takes of some rows that one order serves, that order). No take has
    keys that are equal in its groups."""
    first, *others = takes
    inner = first.keys
    if others and {*others[0].per} <= {*first.per}:
        outer = others[0].keys
        own = without(outer, equal_in_groups(first, rows))
        longer = len(own) > len(inner)
        if agree(own, inner) and not (first.dense and longer):
            more = tuple(key for key in inner if key not in outer)
            return (first, others[0]), (*outer, *more)
    return (first,), inner
