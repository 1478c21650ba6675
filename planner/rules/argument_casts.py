"""Puts casts to text back into the arguments of calls.

DataFusion computes equal arguments of several calls once, in a projection below them: the cast
which it puts around a column, too. Of bytes that are an image, it fails there.

before: ``filter llm(c) AND llm2(c)``, a projection or a block, over ``project CAST(x AS TEXT) AS
        c``
after:  ``project CAST(x AS TEXT)`` over ``filter llm(CAST(x AS TEXT)) AND llm2(CAST(x AS TEXT))``
        over ``project x``
safe:   the cast of a row is the same wherever it is computed. A block reads the column of an
        argument without its cast.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import cast_to_text, project
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    asks,
    has_window,
    is_volatile,
    substitute,
)


def argument_casts(plan: Plan) -> Plan:
    if not isinstance(plan, Block) and (
        not isinstance(plan, Rel) or plan.kind not in ("filter", "project")
    ):
        return plan
    below = plan.inputs[0]
    if not isinstance(below, Rel) or below.kind != "project":
        return plan
    read = {
        a.index for e in plan.exprs for ask in asks(e) for a in ask.args if isinstance(a, Field)
    }
    casts = {i: below.exprs[i] for i in sorted(read) if _is_movable(below.exprs[i])}
    if not casts:
        return plan

    def cast(expr: Expr) -> Expr | None:
        if not isinstance(expr, Field) or expr.index not in casts:
            return None
        moved = casts[expr.index]
        assert isinstance(moved, Node)
        return replace(moved, children=(expr,))

    def over(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(substitute(e, cast) for e in exprs)

    columns = tuple(cast_to_text(e) or e if i in casts else e for i, e in enumerate(below.exprs))
    source = replace(below, exprs=columns)
    if isinstance(plan, Block):
        return replace(plan, source=source, where=over(plan.where), select=over(plan.select))
    changed = replace(plan, inputs=(source,), exprs=over(plan.exprs))
    return changed if plan.kind == "project" else project(changed, over(all_fields(plan.width)))


def _is_movable(expr: Expr) -> bool:
    return cast_to_text(expr) is not None and not (has_window(expr) or is_volatile(expr))
