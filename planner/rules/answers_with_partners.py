"""Decides which answer has a partner in a join before other questions are asked about the row.

before: ``(block select l.*, g(l.y) AS b) join e on b = e.c`` over ``(block select l.*, f(l.x) AS
        a) join d on a = d.c``
after:  the same with the lower block over ``where f(l.x) IN (SELECT c FROM d) AND g(l.y) IN (SELECT
        c FROM e)``
safe:   inner and semi joins drop the other rows anyway. The other side asks nothing and may have
        more rows here than in the join, never fewer.
cost:   as predicates of one block, both are ordered by rows dropped per cost, with its other
        predicates: by stored answers, priors and the rows so far. The keys are read a second time,
        so there must be several questions, or answers from a closed set: if none of its labels is a
        key, nothing is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import in_rows
from blendfusion.planner.ir.joins import DROPS, join_type, keys_of
from blendfusion.planner.ir.lineage import answer_columns, over, passed_on
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Plan,
    Rel,
    asks,
    asks_model,
    conjuncts,
    fields,
    has_kept_answers,
    inline,
    is_volatile,
    is_volatile_block,
    with_input,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.stages.join_partners import partner_of

_CROSSED = ("join", "cross", "project", "filter", "sort")


def answers_with_partners(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join":
        return plan
    new: Rel | Block = plan
    for side, terms in _with_partners(plan).items():
        below = _restrict(new.inputs[side], terms)
        if below is not new.inputs[side]:
            new = with_input(new, side, below)
    return new


def _with_partners(join: Rel) -> dict[int, list[Expr]]:
    """For each side, what the join demands of its rows: keys that read answers are among the keys
    of the other side."""
    found: dict[int, list[Expr]] = {}
    left = join.inputs[0].width
    for side in (0, 1):
        other = join.inputs[1 - side]
        if join_type(join) not in DROPS[side] or asks_anything(other):
            continue
        answers = answer_columns(join.inputs[side])
        pairs = (
            [keys_of(t, side, left) for e in join.exprs for t in conjuncts(e)] if answers else []
        )
        partner = partner_of(other) if pairs else None
        if partner is None:
            continue
        for own, theirs in pairs:
            if own is not None and theirs is not None and fields(own) & answers:
                found.setdefault(side, []).append(in_rows(own, distinct(partner, theirs)))
    return found


def _restrict(plan: Plan, terms: Sequence[Expr]) -> Plan:
    """``plan`` with the terms, and those of joins in between, in the lowest block that can have
    them, if that has several questions; the same object otherwise."""
    if isinstance(plan, Block):
        return plan if plan.has_limit or is_volatile_block(plan) else _restricted_block(plan, terms)
    if not isinstance(plan, Rel) or plan.kind not in _CROSSED or any(map(is_volatile, plan.exprs)):
        return plan
    demands = _with_partners(plan) if plan.kind == "join" else {}
    for side, columns in passed_on(plan).items():
        own = [inner for t in terms if (inner := over(t, columns)) is not None]
        source = plan.inputs[side]
        below = _restrict(source, [*demands.get(side, ()), *own]) if own else source
        if below is not source:
            return with_input(plan, side, below)
    return plan


def _restricted_block(block: Block, terms: Sequence[Expr]) -> Block:
    inner = [inline(t, block.select) for t in terms]
    own = [t for t in dict.fromkeys(inner) if has_kept_answers(t)]
    below = _restrict(block.source, own)
    if below is not block.source:
        return block.with_inputs(below)
    new = tuple(t for t in own if t not in block.where)
    several = len(_questions((*block.where, *block.select, *new))) > 1
    decides = several or any(map(_may_be_decided, new))
    return replace(block, where=(*block.where, *new)) if new and decides else block


def _may_be_decided(term: Expr) -> bool:
    """Whether the keys may decide without a question: no answer of a closed set may be a key."""
    return all(ask.call.task.constraint.kind == "choice" for ask in asks(term))


def _questions(exprs: Sequence[Expr]) -> set[Ask]:
    return {ask for e in exprs for ask in asks(e) if asks_model(ask)}
