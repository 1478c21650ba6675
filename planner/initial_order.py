"""Initial order of model predicates: as written in the query, until rows give better information.

DataFusion pushes a predicate below a projection that holds a call, while a predicate that reads the
call's answer stays above it. The predicates of a block are then no longer in the query's order.
"""

from __future__ import annotations

from collections.abc import Mapping

from blendfusion.planner.ir.nodes import Block, Expr, Plan, asks, asks_model


def inputs_first(indented: str) -> list[str]:
    r"""The lines of a plan in evaluation order: each after its inputs, the lines that are indented
    more.

    >>> [line.strip() for line in inputs_first("join\n  filter\n    scan t\n  scan u")]
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
    """``plan`` with the model predicates of each block ordered by ``places``, the position of each
    call's name. A predicate keeps its place if one of its calls has none."""
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
    """The last position among the calls of ``term``, from which on all are known; -1 if one has
    none."""
    found = [places.get(ask.call.name, -1) for ask in asks(term) if asks_model(ask)]
    return -1 if -1 in found else max(found, default=-1)
