"""Separates sorts from what stands below them, where DataFusion 55 would misread their keys.

It takes a part of a key that equals an expression of the relation below, such as the predicate of a
filter, for a column of that relation, and does not find it. A constant key, which says nothing,
becomes a column of the same value.
"""

from __future__ import annotations

from blendfusion.planner.ir.nodes import Expr, Node, Plan, Rel, all_fields, walk
from blendfusion.planner.ir.sorts import directions_of, sorted_by


def apart(plan: Plan) -> Plan:
    """A sort with a projection of all columns below it, where its keys contain an expression of
    its input. Any other relation is returned unchanged."""
    if not isinstance(plan, Rel) or plan.kind != "sort":
        return plan
    plan = _without_constants(plan)
    below = plan.inputs[0]
    if not isinstance(below, Rel) or below.kind not in ("filter", "fetch", "sort"):
        return plan
    parts = [part for key in plan.exprs for part in walk(key)]
    if not any(_alike(part, e) for e in below.exprs if isinstance(e, Node) for part in parts):
        return plan
    return plan.with_inputs(Rel("project", b"", (below,), all_fields(below.width), below.width))


def _without_constants(sort: Rel) -> Rel:
    """A sort without its constant keys, unless it has no others."""
    pairs = zip(sort.exprs, directions_of(sort), strict=True)
    kept = [pair for pair in pairs if not (isinstance(pair[0], Node) and pair[0].name == "literal")]
    if not kept or len(kept) == len(sort.exprs):
        return sort
    keys, directions = zip(*kept, strict=True)
    return sorted_by(sort.inputs[0], keys, directions)


def _alike(one: Expr, other: Expr) -> bool:
    """Whether two expressions are equal, but for what their messages hold beside their parts."""
    if not isinstance(one, Node) or not isinstance(other, Node) or not one.children:
        return one == other
    if one.name != other.name or len(one.children) != len(other.children):
        return False
    return all(map(_alike, one.children, other.children))
