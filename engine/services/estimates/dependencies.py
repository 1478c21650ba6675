"""Determines which answers decide the input of a call, and so which counts an estimate can give
exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blendfusion.planner.ir.nodes import Ask, Block, Expr, Node, asks, asks_model, needs_model
from blendfusion.run.execution.truth_table import truth_table

Influences = dict[Ask, frozenset[Ask]]
"""For each call of a block, the calls whose answers decide its rows and values."""


def influences(block: Block, *, adaptive: bool, stops: bool) -> Influences:
    """The influences among the calls of ``block``. ``adaptive``: its predicates change order.
    ``stops``: its limit may end reading before the last row."""
    found: Influences = {}

    def note(expr: Expr, before: frozenset[Ask], ending: frozenset[Ask]) -> None:
        for ask, on in _of_condition(expr, before):
            # A call that is skipped because of its own answers was asked before.
            found[ask] = found.get(ask, frozenset()) | on - {ask} | ending

    where = [frozenset(asks(term)) for term in block.where]
    everywhere = frozenset[Ask]().union(*where)
    ending = everywhere if stops else frozenset[Ask]()
    if block.until is not None:
        ending = frozenset(ask for expr in block.exprs for ask in asks(expr))
    for i, term in enumerate(block.where):
        others = where[:i] + where[i + 1 :] if adaptive else where[:i]
        note(term, frozenset[Ask]().union(*others), ending)
    for expr in block.select:
        for ask, on in _within(expr, everywhere):
            found[ask] = found.get(ask, frozenset()) | on - {ask} | ending
    return _with_indirect(found)


def _with_indirect(direct: Influences) -> Influences:
    """The transitive closure of ``direct``."""
    found = dict(direct)
    while True:
        grown = {ask: on.union(*(found[b] for b in on)) for ask, on in found.items()}
        if grown == found:
            return found
        found = grown


def _of_condition(expr: Expr, before: frozenset[Ask]) -> Iterator[tuple[Ask, frozenset[Ask]]]:
    """As ``_within``, for a predicate of which only TRUE counts: its calls are asked
    in any order."""
    if truth_table(expr) is None:
        yield from _within(expr, before)
        return
    every = frozenset(asks(expr))
    yield from ((ask, before | every) for ask in every)


def _within(expr: Expr, before: frozenset[Ask]) -> Iterator[tuple[Ask, frozenset[Ask]]]:
    """Every call in ``expr`` with the calls that decide about it, where ``before`` decides about
    ``expr``."""
    if isinstance(expr, Ask):
        for arg in expr.args:
            yield from _within(arg, before)
        yield expr, before.union(*(asks(arg) for arg in expr.args))
    elif isinstance(expr, Node):
        if expr.name == "if_then":
            yield from _case(expr.children, before)
            return
        parts = [part for part in expr.children if needs_model(part)]
        if (
            expr.name != "coalesce"
        ):  # expressions that spare rows try the part with the fewest calls first
            parts.sort(key=lambda part: (any(map(asks_model, asks(part))), len(asks(part))))
        own = [frozenset(asks(part)) for part in parts]
        for i, part in enumerate(parts):
            # If two parts share a call, either may answer it, which changes the order.
            first = own[:i] if _disjoint(own) else own[:i] + own[i + 1 :]
            yield from _within(part, before.union(*first))


def _disjoint(sets: Sequence[frozenset[Ask]]) -> bool:
    return sum(map(len, sets)) == len(frozenset[Ask]().union(*sets))


def _case(parts: tuple[Expr, ...], before: frozenset[Ask]) -> Iterator[tuple[Ask, frozenset[Ask]]]:
    for condition, result in zip(parts[0::2], parts[1::2], strict=False):
        yield from _of_condition(condition, before)
        before = before.union(asks(condition))
        yield from _within(result, before)
    if len(parts) % 2:
        yield from _within(parts[-1], before)
