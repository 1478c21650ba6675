"""Asks for the mark of a row (EXISTS or IN under OR) only where it decides whether the row stays.

before: ``project l.id`` over ``filter p OR mark`` over ``l mark join (block(r) where llm(r.y))`` on
        ``c``
after:  the same over the mark join on ``c AND p IS NOT TRUE``; ``llm(l.x)`` in ``c`` is asked where
        ``p`` is not true
safe:   other rows pass with either mark, or with none, and nothing above reads it. Several marks
        matter together: one of them for either value of those above it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from blendfusion.planner.ir.boolean_atoms import CONNECTIVES, FALSE, TRUE, assign
from blendfusion.planner.ir.builders import case, conjunction, filter_rows
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.necessary import ALWAYS, NEVER, all_of, any_of, necessary, to_fail
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    fields,
    inline,
    is_volatile,
    literal_like,
    needs_model,
    side_of,
    substitute,
    through_projection,
)
from blendfusion.planner.ir.traversal import asks_anything, subplans, transform
from blendfusion.planner.stages.join_partners import repeatable, with_partner

_MOST_MARKS = 4
"""The most marks of one filter, whose values are looked at in all combinations."""


def marks_that_matter(plan: Plan) -> Plan:
    """The whole plan."""
    if "join" not in plan.kinds or not any(map(_is_mark_join, subplans(plan))):
        return plan
    return transform(plan, _projected_filter, ("project",))


def _projected_filter(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "project":
        return plan
    keep = plan.inputs[0]
    if not isinstance(keep, Rel) or keep.kind != "filter" or any(map(is_volatile, keep.exprs)):
        return plan
    read = set().union(*map(fields, plan.exprs))
    below = _below(keep.inputs[0], [keep.exprs[0]], read)
    return plan.with_inputs(keep.with_inputs(below))


def _below(plan: Plan, conditions: Sequence[Expr], read: Collection[int]) -> Plan:
    """``plan`` below a filter that keeps the rows which meet one of the conditions: other marks
    decide which one. ``read``: the columns that are read above the filter."""
    columns, source = through_projection(plan)
    if source is not plan:
        assert isinstance(plan, Rel)
        inner = [inline(c, columns) for c in conditions]
        reads = set().union(*(fields(columns[i]) for i in read))
        below = _below(source, inner, reads)
        return plan.with_inputs(below)
    if not isinstance(plan, Rel) or not _is_mark_join(plan):
        return plan
    left, right = plan.inputs
    mark = Field(left.width)
    if mark.index in read or len(conditions) >= 2**_MOST_MARKS:
        return plan
    values: list[dict[Expr, Expr]] = [{mark: TRUE}, {mark: FALSE}]
    ways = [assign(substitute(c, v.get), {}, cheap=True) for c in conditions for v in values]
    below = _below(left, list(dict.fromkeys(ways)), read)
    new = plan.with_inputs(below, right)
    if not asks_anything(right) and not any(map(needs_model, plan.exprs)):
        return new
    matters = any_of(
        [
            all_of([_differ(one, other), _decides(c, mark)])
            for c, one, other in zip(conditions, ways[::2], ways[1::2], strict=True)
        ]
    )
    if matters == ALWAYS:
        return new
    if all(map(literal_like, plan.exprs)):
        return new.with_inputs(below, _if_any(right, left, matters))
    gated = partial(_gate, matters=matters, width=left.width)
    terms = (substitute(t, gated) for e in plan.exprs for t in conjuncts(e))
    return replace(new, exprs=(conjunction((*terms, *conjuncts(matters))),))


def _if_any(right: Plan, left: Plan, matters: Expr) -> Plan:
    """The other side of a mark join without a condition, empty if the mark matters on no row."""
    rows = None if asks_anything(left) else repeatable(left)
    if rows is None:
        return right
    return with_partner(right, (), filter_rows(rows, (matters,)), "left_semi")


def _gate(expr: Expr, matters: Expr, width: int) -> Expr | None:
    """A call of the left side, only asked where the mark matters."""
    if not isinstance(expr, Ask) or expr.call.pairing is not None:
        return None
    return case([(matters, expr)], None) if side_of(expr, width) == "left" else None


def _differ(one: Expr, other: Expr) -> Expr:
    """A condition without calls that is true wherever just one of two conditions is."""
    first = all_of([necessary(one), to_fail(other)])
    return any_of([first, all_of([necessary(other), to_fail(one)])])


def _decides(expr: Expr, mark: Field, *, to_keep: bool = True) -> Expr:
    """A condition without calls that is true wherever the mark may change whether ``expr`` is true;
    or its value, if not ``to_keep``."""
    if expr == mark:
        return ALWAYS
    if mark.index not in fields(expr):
        return NEVER
    assert isinstance(expr, Node)
    if expr.name not in ("and", "or"):
        inside = [_decides(child, mark, to_keep=False) for child in expr.children]
        return any_of(inside) if expr.name in CONNECTIVES - {"if_then"} else ALWAYS
    ways = []
    for place, child in enumerate(expr.children):
        if mark.index not in fields(child):
            continue
        others = (*expr.children[:place], *expr.children[place + 1 :])
        if expr.name == "or":
            left_open = [to_fail(other) for other in others]
        else:
            left_open = [necessary(o) if to_keep else _may_hold(o) for o in others]
        ways.append(all_of([_decides(child, mark, to_keep=to_keep), *left_open]))
    return any_of(ways)


def _may_hold(expr: Expr) -> Expr:
    """A condition without calls that is true wherever ``expr`` is not false."""
    return any_of([necessary(expr), necessary(expr, "null")])


def _is_mark_join(plan: Plan) -> bool:
    return isinstance(plan, Rel) and plan.kind == "join" and join_type(plan) == "left_mark"
