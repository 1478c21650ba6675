"""Under a sort and a limit, asks only about the first rows of the side that the sort reads.

before: ``limit k`` over ``sort by l.d, r.e`` over ``(block select l.*, llm(l.x) AS a) left join r
        on a = r.c``
after:  the same with the block over ``l semi join first on l.d``, ``first`` being ``limit k`` over
        ``sort by l.d`` over ``l``; without ``r.e``, over ``first`` itself. Of an inner or semi
        join, ``first`` has the block's predicates and ``llm(l.x) IN (SELECT c FROM r)``
safe:   each row of that side comes at least once, so that the rows of the limit are among those of
        the first k, or have keys equal to theirs. For those ``l`` is read twice, and must have the
        same rows each time. The other side of an inner join asks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import fetch_bounds, function, in_rows, limited, projected
from blendfusion.planner.ir.joins import join_type, outputs
from blendfusion.planner.ir.lineage import answer_columns
from blendfusion.planner.ir.messages import serialized
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    inline,
    is_volatile,
    may_move,
    needs_model,
    substitute,
    through_projection,
    with_input,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.rules.answers_with_partners import keys_of, may_stand_twice
from blendfusion.planner.stages.join_partners import exact, partner_of, small, with_partner

_ALL_COME = (("left",), ("right",))
"""Joins that have each row of their left side, and of their right side."""
_SOME_COME = (("inner", "left_semi"), ("inner", "right_semi"))


def first_rows(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "fetch" or not asks_anything(plan):
        return plan
    offset, count = fetch_bounds(plan)
    shown, sort = _below_projections(plan.inputs[0])
    if count is None or not isinstance(sort, Rel) or sort.kind != "sort":
        return plan
    if any(needs_model(e) or is_volatile(e) for e in (*sort.exprs, *shown)):
        return plan
    new = _first_of(sort.inputs[0], sort.exprs, sort, offset + count)
    return plan if new is None else _over(plan, sort.inputs[0], new)


def _first_of(
    plan: Plan, keys: Sequence[Expr], sort: Rel, count: int, ties: bool = False
) -> Plan | None:
    """A join, perhaps below projections, whose one side has only the rows that the first ``count``
    by ``keys`` may have, with those of equal keys if ``ties``; None if these are not known."""
    columns, join = _below_projections(plan)
    if not isinstance(join, Rel) or join.kind != "join" or not asks_anything(join):
        return None
    inner = [inline(key, columns) for key in keys]
    if any(needs_model(e) or is_volatile(e) for e in (*inner, *columns)):
        return None
    for side in (0, 1):
        below = _with_first(join, side, inner, sort, count, ties)
        if below is not None:
            return _over(plan, join, with_input(join, side, below))
    return None


def _below_projections(plan: Plan) -> tuple[tuple[Expr, ...], Plan]:
    """(columns of ``plan``, the first relation below that is no projection)."""
    columns, below = through_projection(plan)
    while below is not plan:
        plan = below
        inner, below = through_projection(plan)
        columns = tuple(inline(e, inner) for e in columns)
    return columns, below


def _over(plan: Plan, old: Plan, new: Plan) -> Plan:
    """``plan`` with ``new`` in place of ``old``, which stands below relations of one input."""
    if plan is old:
        return new
    assert isinstance(plan, Rel)
    return plan.with_inputs(_over(plan.inputs[0], old, new))


def _with_first(
    join: Rel, side: int, keys: Sequence[Expr], sort: Rel, count: int, ties: bool
) -> Plan | None:
    """The side of a join with those rows alone; None if they are not known."""
    kind, rows = join_type(join), join.inputs[side]
    if kind not in (*_ALL_COME[side], *_SOME_COME[side]):
        return None
    place = {i: Field(column) for i, (of, column) in enumerate(outputs(join)) if of == side}
    own = [_moved(key, place) for key in keys]
    prefix = [key for key in own[: own.index(None) if None in own else len(own)] if key]
    ties = ties or len(prefix) < len(keys)
    if prefix and kind in _ALL_COME[side]:
        below = _first_of(rows, prefix, sort, count, ties)
        if below is not None:
            return below
    block = rows if isinstance(rows, Block) else Block(rows, (), all_fields(rows.width))
    by = tuple(inline(key, block.select) for key in prefix)
    if not by or any(map(needs_model, by)) or not may_move(block):
        return None
    where = block.where
    if kind in _SOME_COME[side]:
        term = _partner(join, side, block)
        if term is None:
            return None
        where = (*where, term)
    if not asks_anything(join.inputs[1 - side]) and rows is not block:
        return None
    template = RelMessage.FromString(sort.template)
    del template.sort.sorts[len(by) :]
    width = block.source.width
    ordered = Rel("sort", serialized(template), (block.source,), by, width)
    first: Plan = Block(ordered, where, all_fields(width), count=count)
    if not where:
        first = limited(ordered, 0, count)
    if not ties:
        return replace(block, source=first, where=())
    if small(exact(block.source)) is None:
        return None
    same = [function("is_not_distinct_from", (key, Field(width + i))) for i, key in enumerate(by)]
    source = with_partner(block.source, same, projected(first, by), "left_semi")
    return replace(block, source=source, where=where)


def _moved(expr: Expr, place: dict[int, Field]) -> Expr | None:
    """The expression over one side; None if it reads the other, or nothing."""
    read = fields(expr)
    if not read or not read <= place.keys():
        return None
    return substitute(expr, lambda e: place[e.index] if isinstance(e, Field) else None)


def _partner(join: Rel, side: int, block: Block) -> Expr | None:
    """The predicate of a block that keeps the rows with a partner, if the condition of the join is
    an equality with answers of the block; None for others."""
    other = join.inputs[1 - side]
    terms = [t for e in join.exprs for t in conjuncts(e)]
    if len(terms) != 1 or asks_anything(other):
        return None
    own, theirs = keys_of(terms[0], side, join.inputs[0].width)
    if own is None or theirs is None or not fields(own) & answer_columns(block):
        return None
    key, partner = inline(own, block.select), partner_of(other)
    if partner is None or not may_stand_twice(key):
        return None
    return in_rows(key, distinct(partner, theirs))
