"""Merges row-wise relations into the block directly below them.

before: ``filter p`` / ``project e`` / another block, over a block
after:  one block whose predicates and columns are written over the lower source
safe:   both work row by row in the same order; below a LIMIT of the lower block nothing is
        filtered later, and a volatile expression is never written twice.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    conjuncts,
    has_window,
    inline,
    is_volatile,
)


def merge_blocks(plan: Plan) -> Plan:
    if isinstance(plan, Block):
        return _block(plan)
    if not isinstance(plan, Rel) or len(plan.inputs) != 1:
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Block) or not _may_inline(below):
        return plan
    if plan.kind == "filter" and not below.has_limit:
        terms = tuple(inline(t, below.select) for t in conjuncts(plan.exprs[0]))
        return replace(below, where=(*below.where, *terms))
    if plan.kind == "project" and not any(map(has_window, plan.exprs)):
        return replace(below, select=tuple(inline(e, below.select) for e in plan.exprs))
    return plan


def _block(upper: Block) -> Plan:
    lower = upper.source
    if not isinstance(lower, Block) or not _may_inline(lower):
        return upper
    select = tuple(inline(e, lower.select) for e in upper.select)
    if not upper.where and not upper.has_limit:
        return replace(lower, select=select)
    if lower.has_limit:
        return upper
    where = (*lower.where, *(inline(t, lower.select) for t in upper.where))
    return Block(lower.source, where, select, upper.offset, upper.count)


def _may_inline(block: Block) -> bool:
    return not any(is_volatile(e) for e in block.select if not _plain(e))


def _plain(expr: Expr) -> bool:
    return isinstance(expr, Field)
