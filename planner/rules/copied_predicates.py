"""Removes a model's predicate from one side of a join if it is a copy of the other side's.

before: ``(block(l) where llm(l.x)) anti join (block(r) where llm(r.x)) on l.x = r.x``
after:  ``(block(l) where llm(l.x)) anti join r on l.x = r.x``
safe:   a row can only match rows with equal keys, and on those the predicate is true. DataFusion
        makes such copies to filter both sides early; asked, a copy asks about rows that the join
        only compares. Without it the other side is cheap: see ``cheap_joins_first``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.lineage import over, passed_on
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    conjuncts,
    is_key,
    is_volatile,
    shift,
    side_of,
    substitute,
    with_input,
)
from blendfusion.planner.ir.traversal import asks_anything

_MATCHES_ONLY = (
    ("inner", "right", "left_semi", "right_semi", "right_anti"),
    ("inner", "left", "left_semi", "right_semi", "left_anti", "left_mark"),
)
"""The joins in which a row of the left side counts only with its matches, and of the right side."""


def copied_predicates(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join":
        return plan
    for side in (1, 0):
        old, kept = plan.inputs[side], plan.inputs[1 - side]
        if join_type(plan) in _MATCHES_ONLY[side] and asks_anything(old) and asks_anything(kept):
            new = _without(old, set(_true_on(kept, _keys(plan, side))))
            if not asks_anything(new):
                return with_input(plan, side, new)
    return plan


def _keys(join: Rel, side: int) -> dict[Expr, Expr]:
    """For each key of a join, its operand over one side by that over the other one."""
    width, found = join.inputs[0].width, {}
    for term in (t for e in join.exprs for t in conjuncts(e)):
        if is_key(term, width) and not is_volatile(term):
            left, right = sorted(term.children, key=lambda e: side_of(e, width) == "right")
            operands = left, shift(right, -width)
            found[operands[1 - side]] = operands[side]
    return found


def _true_on(plan: Plan, keys: Mapping[Expr, Expr]) -> Iterator[Expr]:
    """The predicates of blocks that hold on every row of ``plan`` and read ``keys`` alone, with
    what these map to in their place."""
    if not keys or not asks_anything(plan):
        return
    for side, columns in passed_on(plan).items():
        own = {new: to for key, to in keys.items() if (new := over(key, columns)) is not None}
        if isinstance(plan, Block):
            yield from (t for t in map(partial(_map_keys, keys=own), plan.where) if t is not None)
        yield from _true_on(plan.inputs[side], own)


def _map_keys(term: Expr, keys: Mapping[Expr, Expr]) -> Expr | None:
    """The term with each key replaced by what it maps to; None if it reads more than keys."""
    unknown = is_volatile(term)

    def place(part: Expr) -> Expr | None:
        nonlocal unknown
        unknown = unknown or (isinstance(part, Field) and part not in keys)
        return keys.get(part)

    mapped = substitute(term, place)
    return None if unknown else mapped


def _without(plan: Plan, terms: set[Expr]) -> Plan:
    """``plan`` without those predicates of its blocks that are among ``terms``. Only rows on which
    one of them is not true are added."""
    if not terms or (isinstance(plan, Block) and plan.has_limit) or _is_limit(plan):
        return plan
    new: Plan = plan
    for side, columns in passed_on(plan).items():
        own = {inner for t in terms if (inner := over(t, columns)) is not None}
        if isinstance(new, Block):
            new = replace(new, where=tuple(t for t in new.where if t not in own))
        below = _without(new.inputs[side], own)
        if isinstance(new, Rel | Block) and below is not new.inputs[side]:
            new = with_input(new, side, below)
    if isinstance(new, Block) and not new.where and not new.calls_here:
        return project(new.source, new.select)
    return new


def _is_limit(plan: Plan) -> bool:
    return isinstance(plan, Rel) and plan.kind == "fetch"
