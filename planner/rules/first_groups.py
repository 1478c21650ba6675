"""Under a sort and a limit of groups, asks only about the rows of the first groups.

before: ``limit k`` over ``sort by g, n`` over ``aggregate count(*) AS n, avg(a) by g`` over
        ``block(t) select g, llm(x) AS a``
after:  the same over the block over ``t semi join first on g``, where ``first`` is ``limit k`` over
        ``sort by g, n`` over ``aggregate count(*) AS n by g`` over ``t``; over ``sort by g`` where
        the limit stands above no sort
before: ``limit k`` over ``sort by g`` over ``aggregate avg(a) by g`` over ``block(t) where llm(x)``
after:  the same over the block over ``t semi join first on g``, where ``first`` is the block over
        ``sort by g`` over ``t``, until it has rows of k groups; without aggregates, over ``first``
safe:   the first k groups are known without answers, where none decides which rows there are. If
        only the first keys of the sort need none, groups that are equal in these come, too. ``t``
        is read twice, and must have the same rows, and counts, each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from blendfusion.planner.ir.aggregates import Aggregation, Measure, aggregated, aggregation
from blendfusion.planner.ir.builders import (
    fetch_bounds,
    filtered,
    function,
    limited,
    ordered,
    projected,
)
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    asks,
    conjuncts,
    fields,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    substitute,
)
from blendfusion.planner.ir.sorts import ASC, Direction, directions_of, sorted_by
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.rules.answers_with_partners import is_kept
from blendfusion.planner.rules.extreme_values import among_equal
from blendfusion.planner.rules.first_rows import (
    below_projections,
    first_by,
    over,
    up_to_ties,
)
from blendfusion.planner.stages.join_partners import exact, small, with_partner


def first_groups(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "fetch" or not asks_anything(plan):
        return plan
    offset, count = fetch_bounds(plan)
    columns, groups = below_projections(plan.inputs[0])
    sort: Rel | None = None
    if isinstance(groups, Rel) and groups.kind == "sort":
        sort = groups
        columns, groups = below_projections(sort.inputs[0])
    terms: tuple[Expr, ...] = ()
    if isinstance(groups, Rel) and groups.kind == "filter":
        inner, below = below_projections(groups.inputs[0])
        terms = tuple(inline(term, inner) for term in conjuncts(groups.exprs[0]))
        columns, groups = tuple(inline(e, inner) for e in columns), below
    if count is None or not isinstance(groups, Rel) or groups.kind != "aggregate":
        return plan
    block, agg = groups.inputs[0], aggregation(groups)
    if not isinstance(block, Block) or block.once or not may_move(block):
        return plan
    if not agg.has_one_grouping or not block.calls_here:
        return plan
    by = tuple(inline(key, columns) for key in sort.exprs) if sort else ()
    first: Plan | None
    if block.where:
        passing = None if terms else _first_passing(block, agg, by, sort, offset + count)
        if passing is not None and not agg.measures and {*passing.select} == {*block.select}:
            return over(plan, block, replace(passing, select=block.select))
        first = passing
    else:
        first = _first(block, agg, by, terms, sort, offset + count)
    if first is None:
        return plan
    width = block.source.width
    keys = [inline(key, block.select) for key in agg.keys]
    same = [function("is_not_distinct_from", (key, Field(width + i))) for i, key in enumerate(keys)]
    source = with_partner(block.source, same, first, "left_semi")
    return over(plan, block, block.with_inputs(source))


def _first(
    block: Block,
    agg: Aggregation,
    by: Sequence[Expr],
    terms: Sequence[Expr],
    sort: Rel | None,
    count: int,
) -> Plan | None:
    """The keys of the groups that meet ``terms`` and are the first ``count`` of these by ``by``,
    and of groups that are equal in what is known without an answer; None if nothing is known."""
    keys = tuple(inline(key, block.select) for key in agg.keys)
    if any(needs_model(k) or is_volatile(k) or literal_like(k) for k in keys):
        return None
    place: dict[int, Expr] = {i: Field(i) for i in range(len(keys))}
    measures: list[Measure] = []
    read = frozenset().union(*map(fields, (*by, *terms)))
    for i, measure in enumerate(agg.measures):
        exprs = tuple(inline(e, block.select) for e in measure.exprs)
        place_above = agg.n_before_measures + i
        if place_above in read and not any(needs_model(e) or is_volatile(e) for e in exprs):
            place[place_above] = Field(len(keys) + len(measures))
            measures.append(replace(measure, exprs=exprs))
    prefix = tuple(takewhile(lambda key: fields(key) <= place.keys(), by))
    if (sort and not prefix) or any(
        is_volatile(e) or not fields(e) <= place.keys() for e in (*prefix, *terms)
    ):
        return None

    def moved(expr: Expr) -> Expr:
        return substitute(expr, lambda e: place[e.index] if isinstance(e, Field) else None)

    groups = filtered(
        aggregated(block.source, Aggregation(agg.template, keys, tuple(measures))),
        tuple(map(moved, terms)),
    )
    if small(exact(groups)) is None:
        return None
    if sort is None:  # any groups will do, the same ones in each run
        some = limited(ordered(groups, *all_fields(len(keys)), descending=False), 0, count)
        return projected(some, all_fields(len(keys)))
    known = tuple(map(moved, prefix))
    first: Plan | None
    if len(prefix) < len(by):
        first = up_to_ties(groups, known, first_by(groups, known, sort, count))
    else:
        first = limited(_sorted(groups, known, len(keys), sort), 0, count)
    return None if first is None else projected(first, all_fields(len(keys)))


def _first_passing(
    block: Block, agg: Aggregation, by: Sequence[Expr], sort: Rel | None, count: int
) -> Block | None:
    """The keys of the first ``count`` groups by ``by`` that have a row, perhaps of more; None if
    nothing is known."""
    keys = tuple(inline(key, block.select) for key in agg.keys)
    if any(needs_model(k) or is_volatile(k) or literal_like(k) for k in keys):
        return None
    if any(is_volatile(e) or max(fields(e), default=0) >= len(keys) for e in by):
        return None
    if not sort and not agg.measures:
        return None  # of the groups in any order, a limit takes the first ones that come
    if agg.measures and (
        small(exact(block.source)) is None
        or not all(is_kept(a) for e in block.where for a in asks(e))
    ):
        return None
    order: dict[Expr, Direction] = {}
    directions = directions_of(sort) if sort else ()
    for key, direction in zip([inline(e, keys) for e in by], directions, strict=True):
        order.setdefault(key, direction)
    for key in (*keys, *among_equal(block)):
        order.setdefault(key, ASC)
    source = sorted_by(block.source, [*order], [*order.values()])
    return Block(source, block.where, keys, count=count, once=True)


def _sorted(groups: Plan, by: tuple[Expr, ...], n_keys: int, sort: Rel) -> Rel:
    """The groups in the order of ``sort`` and then by their keys: the same ones in each run."""
    more = (key for key in all_fields(n_keys) if key not in by)
    return sorted_by(groups, (*by, *more), directions_of(sort))
