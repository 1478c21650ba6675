"""Predicates that wait for a model are tried as the query has them, as long as nothing else is known.

DataFusion writes a predicate below a projection that holds a call, and one that reads the call's answer
stays above it, so that the order in which they come to stand in a block is not that of the query.
"""

from __future__ import annotations

from collections.abc import Mapping

from blendfusion.planner.ir.nodes import Block, Expr, Plan, asks, asks_model


def inputs_first(indented: str) -> list[str]:
    """The lines of a plan, each behind those that are indented more, its inputs: as it is evaluated.

    >>> [line.strip() for line in inputs_first("join\\n  filter\\n    scan t\\n  scan u")]
    ['scan t', 'filter', 'scan u', 'join']
    """
    found: list[str] = []
    above: list[tuple[int, str]] = []
    for line in indented.splitlines():
        depth = len(line) - len(line.lstrip())
        while above and above[-1][0] >= depth:
            found.append(above.pop()[1])
        above.append((depth, line))
    return found + [line for _, line in reversed(above)]


def in_written_order(plan: Plan, places: Mapping[str, int]) -> Plan:
    """``plan`` with the predicates of a block that ask a model by ``places``, which hold the names of
    calls; a predicate with a call that has none keeps its place."""
    if not isinstance(plan, Block):
        return plan
    placed = {i: place for i, term in enumerate(plan.where) if (place := _place(term, places)) >= 0}
    ordered = iter(sorted(placed, key=placed.__getitem__))
    where = tuple(
        plan.where[next(ordered)] if i in placed else term for i, term in enumerate(plan.where)
    )
    return (
        plan
        if where == plan.where
        else Block(plan.source, where, plan.select, plan.offset, plan.count)
    )


def _place(term: Expr, places: Mapping[str, int]) -> int:
    """The last of the calls' places, at which all of them are there; -1 if one has none."""
    found = [places.get(ask.call.name, -1) for ask in asks(term) if asks_model(ask)]
    return -1 if -1 in found else max(found, default=-1)
