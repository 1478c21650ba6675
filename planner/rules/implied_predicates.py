"""Removes the calls of a predicate that another one implies.

before: ``block where (p AND llm(x)) OR q`` and ``(p AND llm(x) AND r) OR (q AND s)``
after:  ``p OR q`` for the first, without its call: a row for which the second holds passes it
        anyway
safe:   every way to satisfy the second satisfies the first. DataFusion derives such weaker
        predicates from a disjunction over a join, to filter one side early; asked, they would cost
        more than the predicate that counts."""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import boolean_literal, conjunction, function
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Node,
    Plan,
    conjuncts,
    is_volatile,
    needs_model,
)


def implied_predicates(plan: Plan) -> Plan:
    if not isinstance(plan, Block) or len(plan.where) < 2 or any(map(is_volatile, plan.where)):
        return plan
    for i, weak in enumerate(plan.where):
        if len(_disjuncts(weak)) == 1 or not needs_model(weak):
            continue
        others = (*plan.where[:i], *plan.where[i + 1 :])
        if any(_implies(strong, weak) for strong in others if len(_disjuncts(strong)) > 1):
            where = (*plan.where[:i], *_without_calls(weak), *plan.where[i + 1 :])
            return replace(plan, where=where)
    return plan


def _implies(strong: Expr, weak: Expr) -> bool:
    """Whether each disjunct of ``strong`` has all the conjuncts of some disjunct of ``weak``."""
    ways = [frozenset(conjuncts(d)) for d in _disjuncts(weak)]
    return all(any(way <= frozenset(conjuncts(d)) for way in ways) for d in _disjuncts(strong))


def _disjuncts(expr: Expr) -> tuple[Expr, ...]:
    return expr.children if isinstance(expr, Node) and expr.name == "or" else (expr,)


def _without_calls(weak: Expr) -> tuple[Expr, ...]:
    """The rest of the predicate if its calls are assumed true; () if nothing remains."""
    ways = []
    for disjunct in _disjuncts(weak):
        cheap = tuple(c for c in conjuncts(disjunct) if not needs_model(c))
        ways.append(conjunction(cheap) if cheap else boolean_literal(True))
    if boolean_literal(True) in ways:
        return ()
    return (function("or", tuple(ways)) if len(ways) > 1 else ways[0],)
