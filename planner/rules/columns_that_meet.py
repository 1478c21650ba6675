"""Gives calls over whole columns whose results meet the values of all these columns.

before: ``same(l.x) among distinct l.x = same(r.y) among distinct r.y``, in a join, a filter or IN;
        or both in one column of a UNION ALL
after:  both among ``distinct (l.x UNION ALL r.y)``, one stage before them
safe:   that is what such a comparison means (docs/meaning.md): the values of both columns are
        one column. Calls with other arguments, ranks, and domains that need an answer of the same
        call keep their own columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from blendfusion.planner.ir.aggregates import aggregation, distinct
from blendfusion.planner.ir.builders import is_in_rows
from blendfusion.planner.ir.joins import is_union_all, outputs, union_all
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    asks,
    substitute,
    walk,
)
from blendfusion.planner.ir.traversal import expressions, subplans, transform
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import ColumnQuestion

_COMPARISONS = ("equal", "not_equal", "is_not_distinct_from", "is_distinct_from")


def columns_that_meet(plan: Plan) -> Plan:
    for call in dict.fromkeys(_nameless(ask) for ask in _whole(plan)):
        groups = _groups(plan, call)
        united = {d: distinct(union_all(g), Field(0)) for g in groups if len(g) > 1 for d in g}
        if united:
            plan = _with_domains(plan, call, united)
    return plan


def _nameless(ask: Ask) -> Call:
    """The call without the names of its columns, which its body does not see."""
    return replace(ask.call, task=replace(ask.call.task, columns=()))


def _whole(plan: Plan) -> Iterator[Ask]:
    """The calls whose results are compared by equality among the values of a whole column."""
    for part in subplans(plan) if not isinstance(plan, StoredRows) and plan.has_calls else ():
        for expr in expressions(part) if isinstance(part, StoredRows) or part.calls_here else ():
            for ask in asks(expr):
                kind = ask.call.ingredient.kind
                if isinstance(kind, ColumnQuestion) and not kind.ranks and ask.domain is not None:
                    yield ask


def _groups(plan: Plan, call: Call) -> list[list[Plan]]:
    """The domains of ``call`` whose results meet, directly or by others."""
    own = dict.fromkeys(
        a.domain for a in _whole(plan) if _nameless(a) == call and a.domain is not None
    )
    free = [d for d in own if not any(_nameless(a) == call for a in _whole(d))]
    if len(free) < 2:
        return []
    group = {domain: [domain] for domain in free}
    for one, other in _meetings(plan):
        for a, b in product(_behind(*one), _behind(*other)):
            if _nameless(a) == call == _nameless(b) and a.domain in group and b.domain in group:
                both = group[a.domain], group[b.domain]
                if both[0] is not both[1]:
                    both[0].extend(both[1])
                    group.update(dict.fromkeys(both[1], both[0]))
    return list({id(g): g for g in group.values()}.values())


_Place = tuple[Expr, tuple[Plan, ...]]
"""An expression and the inputs whose columns it names."""


def _meetings(plan: Plan) -> Iterator[tuple[_Place, _Place]]:
    for part in subplans(plan):
        if is_union_all(part):
            first, *others = part.inputs
            for field in all_fields(part.width):
                yield from (((field, (first,)), (field, (other,))) for other in others)
        for expr in expressions(part):
            for node in walk(expr):
                if is_in_rows(node) and isinstance(node, Node):
                    yield (node.children[0], part.inputs), (Field(0), node.rels)
                elif isinstance(node, Node) and node.name in _COMPARISONS:
                    one, other = node.children
                    yield (one, part.inputs), (other, part.inputs)
                elif isinstance(node, Node) and node.name == "if_then":  # of branches of a union
                    yield (node, part.inputs), (node, part.inputs)


def _behind(expr: Expr, inputs: tuple[Plan, ...]) -> Iterator[Ask]:
    """The calls whose results ``expr`` reads."""
    if isinstance(expr, Ask):
        yield expr
    elif isinstance(expr, Node):
        for child in expr.children:
            yield from _behind(child, inputs)
    else:
        index = expr.index
        for plan in inputs:
            if index < plan.width:
                yield from _behind_column(index, plan)
                return
            index -= plan.width


def _behind_column(index: int, plan: Plan) -> Iterator[Ask]:
    if isinstance(plan, Block):
        yield from _behind(plan.select[index], plan.inputs)
    elif not isinstance(plan, Rel) or not plan.has_calls:
        return
    elif is_union_all(plan):
        for branch in plan.inputs:
            yield from _behind_column(index, branch)
    elif plan.kind == "project":
        yield from _behind(plan.exprs[index], plan.inputs)
    elif plan.kind in ("filter", "sort", "fetch"):
        yield from _behind_column(index, plan.inputs[0])
    elif plan.kind == "aggregate":
        keys = aggregation(plan).keys
        if index < len(keys):
            yield from _behind(keys[index], plan.inputs)
    elif plan.kind in ("join", "cross"):
        side, column = outputs(plan)[index]
        if side < 2:
            yield from _behind_column(column, plan.inputs[side])


def _with_domains(plan: Plan, call: Call, united: dict[Plan, Rel]) -> Plan:
    def with_domain(expr: Expr) -> Expr:
        def change(part: Expr) -> Expr | None:
            if isinstance(part, Ask) and part.domain in united and _nameless(part) == call:
                return replace(part, domain=united[part.domain])
            return None

        return substitute(expr, change)

    def relation(part: Plan) -> Plan:
        if isinstance(part, StoredRows) or not any(map(asks, expressions(part))):
            return part
        if isinstance(part, Rel):
            return replace(part, exprs=tuple(map(with_domain, part.exprs)))
        where, select = tuple(map(with_domain, part.where)), tuple(map(with_domain, part.select))
        return replace(part, where=where, select=select)

    return transform(plan, relation)
