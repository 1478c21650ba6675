"""Under a sort and a limit, asks about the other side of a semi join in the order of the sort.

before: ``limit k`` over ``sort by l.d`` over ``l semi join (block(r) where llm(r.y)) on l.c = r.c``
after:  the same with another side, ``(block(first join r on first.c = r.c) where llm(r.y) until k
        rows)`` in the order of ``d``, where ``first`` is ``distinct l.d, l.c``; on ``d`` and ``c``;
        not distinct, if ``d`` may be 0.0 or -0.0
safe:   rows that are equal in ``d`` and ``c`` match the same rows, and no row that comes later in
        that order comes before them in the sort. ``l`` is read twice, and must have the same rows
        each time. The condition needs a key, so that few rows meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.planner.ir.aggregates import aggregation, distinct, is_distinct
from blendfusion.planner.ir.builders import conjunction, function, project
from blendfusion.planner.ir.joins import exchange_sides, join_plans, join_type
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    asks,
    below_projections,
    conjuncts,
    fields,
    inline,
    is_key,
    is_volatile,
    may_move,
    needs_model,
    over,
    shift,
    substitute,
    through_projection,
)
from blendfusion.planner.ir.sorts import directions_of, sorted_by
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.needs.reads import limit_over_sort
from blendfusion.planner.stages.join_partners import exact, small
from blendfusion.planner.stages.subsets import certain_terms


def partners_in_order(plan: Plan) -> Plan:
    found = limit_over_sort(plan)
    if found is None:
        return plan
    count, shown, sort = found
    columns, join = below_projections(sort.inputs[0])
    by = tuple(inline(e, columns) for e in sort.exprs)
    if any(needs_model(e) or is_volatile(e) for e in (*shown, *columns, *by)):
        return plan
    new = _in_order(join, by, sort, count)
    return plan if new is None else over(plan, join, new)


def _in_order(join: Plan, by: tuple[Expr, ...], sort: Rel, count: int) -> Plan | None:
    """The semi join whose other side has the partners of the first ``count`` rows by ``by`` that
    have one, perhaps more; None for other relations."""
    if not isinstance(join, Rel) or join.kind != "join":
        return None
    side = {"left_semi": 0, "right_semi": 1}.get(join_type(join))
    if side is None:
        return None
    rows, (columns, block) = small(exact(join.inputs[side])), _block_of(join.inputs[1 - side])
    if rows is None or asks_anything(rows) or block is None:
        return None
    left, right = (p.width for p in join.inputs)
    terms = [t for e in join.exprs for t in conjuncts(e)]
    if side:
        terms = [exchange_sides(t, left, right) for t in terms]
    # The columns of the rows, then those of the source of the block.
    place = (*all_fields(rows.width), *(shift(e, rows.width) for e in columns))
    terms = [inline(t, place) for t in terms]
    cheap = [t for t in terms if not needs_model(t)]
    if any(map(is_volatile, terms)) or not any(is_key(t, rows.width) for t in cheap):
        return None
    read = sorted({i for t in terms for i in fields(t) if i < rows.width})
    own = tuple(dict.fromkeys((*by, *map(Field, read))))
    beside = len(own) - rows.width

    def move(expr: Expr) -> Expr | None:
        if not isinstance(expr, Field):
            return None
        return Field(own.index(expr) if expr.index < rows.width else expr.index + beside)

    signed = any(may_be_real(key, rows) for key in by)  # which a group does not tell apart
    first = project(rows, own) if signed else distinct(rows, *own)
    pairs = join_plans(first, block.source, tuple(substitute(t, move) for t in cheap))
    where = (
        *(shift(t, len(own)) for t in block.where),
        *(substitute(t, move) for t in terms if needs_model(t)),
    )
    keys = [Field(own.index(e)) for e in by]
    ordered = _sort_pairs(pairs, keys, len(own), sort, where)
    found = Block(ordered, where, all_fields(len(own)), count=count, once=True)
    same = tuple(
        function("is_not_distinct_from", (e, Field(rows.width + i))) for i, e in enumerate(own)
    )
    return join_plans(join.inputs[side], found, same, "left_semi")


def _sort_pairs(
    pairs: Rel, keys: Sequence[Field], own: int, sort: Rel, where: Sequence[Expr]
) -> Rel:
    """The pairs by the keys of the sort and the other ones of their first ``own`` columns. Of equal
    ones, those come first that pass whatever the answers are, and the order is that of what is
    asked, so that a second run meets the same pairs first."""
    read = {i for t in where for ask in asks(t) for i in fields(ask)}
    certain = certain_terms(where)
    more: list[Expr] = [key for key in all_fields(own) if key not in keys]
    if certain:
        more.append(function("is_not_true", (conjunction(tuple(certain)),)))
    more += map(Field, sorted(i for i in read if i >= own))
    return sorted_by(pairs, (*keys, *more), directions_of(sort))


def _block_of(plan: Plan) -> tuple[tuple[Expr, ...], Block | None]:
    """(the columns of a relation, the block below its projections and DISTINCT whose source they
    read); None if there is none that may read its rows in another order."""
    columns: tuple[Expr, ...] = all_fields(plan.width)
    while not isinstance(plan, Block):
        if is_distinct(plan):
            assert isinstance(plan, Rel)
            inner, below = aggregation(plan).keys, plan.inputs[0]
        else:
            inner, below = through_projection(plan)
        if below is plan or any(map(is_volatile, inner)):
            return (), None
        columns, plan = tuple(inline(e, inner) for e in columns), below
    asking = any(map(needs_model, (*plan.where, *plan.select)))
    if not may_move(plan) or not asking:
        return (), None
    return tuple(inline(e, plan.select) for e in columns), plan
