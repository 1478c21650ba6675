"""Asks about the rows of groups only until what is read of the groups is decided.

before: ``filter n > 3`` over ``aggregate count(*) FILTER (WHERE llm(x)) AS n by k`` over
        ``block(t)``; also any other test of aggregates, sorts by them with a limit, and comparisons
        among the columns of a result
after:  the same over the block ``until`` the tests have one value for each group
safe:   the block asks until each test of a group has one value, whatever the other answers are.
        Where a column shows an aggregate itself, it asks about all rows of the groups that are
        kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import Aggregation, Measure, aggregated, aggregation
from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.groups import GroupNeed
from blendfusion.planner.ir.necessary import never_fails
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    Stored,
    all_fields,
    asks,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    through_projection,
)
from blendfusion.planner.ir.sorts import directions_of
from blendfusion.planner.ir.traversal import Change, asks_anything, from_top, with_subplans
from blendfusion.planner.rules.answers_with_partners import is_kept

_ALL = 2**40
"""In place of no limit, beside an offset."""


def undecided_groups(plan: Plan) -> Plan:
    """The whole plan."""
    return from_top(plan, _undecided_groups)


def _undecided_groups(plan: Plan, below: Change) -> Plan:
    if isinstance(plan, Stored) or not asks_anything(plan) or "aggregate" not in plan.kinds:
        return plan
    above: list[Rel] = []
    groups: Plan = plan
    while isinstance(groups, Rel) and _is_above(groups):
        above.append(groups)
        groups = groups.inputs[0]
    new = _bounded(groups, above[::-1]) if isinstance(groups, Rel) else None
    if new is None:
        return with_subplans(plan, below)
    found: Plan = with_subplans(new, lambda block: with_subplans(block, below))
    for rel in above[::-1]:
        found = rel.with_inputs(found)
    return found


def _is_above(plan: Rel) -> bool:
    """Whether each row of a relation is one of a group's row below it."""
    if plan.kind not in ("project", "filter", "sort", "fetch") or plan.has_subqueries:
        return False
    return not any(has_window(e) or is_volatile(e) for e in plan.exprs)


def _bounded(groups: Rel, above: Sequence[Rel]) -> Rel | None:
    """An aggregate over a block that asks no more than what is ``above`` reads; None of others."""
    if groups.kind != "aggregate":
        return None
    agg, (columns, block) = aggregation(groups), through_projection(groups.inputs[0])
    if not isinstance(block, Block) or not agg.one_group_a_row or not agg.measures:
        return None
    if not _may_stop(block):
        return None
    columns = tuple(inline(e, block.select) for e in columns)
    keys = tuple(inline(key, columns) for key in agg.keys)
    measures = tuple(
        replace(m, exprs=tuple(inline(e, columns) for e in m.exprs)) for m in agg.measures
    )
    if any(needs_model(key) for key in keys) or not all(_may_wait(block, m) for m in measures):
        return None
    read = dict.fromkeys(e for m in measures for e in m.exprs if not literal_like(e))
    select = (*keys, *(e for e in read if e not in keys))
    place = {e: Field(i) for i, e in reversed([*enumerate(select)])}
    over = tuple(replace(m, exprs=tuple(place.get(e, e) for e in m.exprs)) for m in measures)
    need = _need(agg, over, above)
    if not _spares(need, select, block):
        return None
    bounded = replace(block, select=select, until=need)
    own = replace(agg, keys=all_fields(len(keys)), measures=over)
    return aggregated(bounded, own)


def _may_stop(block: Block) -> bool:
    if block.once or not may_move(block) or block.has_subqueries or not block.calls_here:
        return False
    return all(is_kept(ask) and ask.domain is None for e in block.exprs for ask in asks(e))


def _may_wait(block: Block, measure: Measure) -> bool:
    """Whether an aggregate may be computed on rows that a predicate would have left out."""
    if measure.n_sorts or any(is_volatile(e) for e in measure.exprs):
        return False  # the first value in an order is known to other rules
    return not block.where or all(needs_model(e) or never_fails(e) for e in measure.exprs)


def _need(agg: Aggregation, measures: tuple[Measure, ...], above: Sequence[Rel]) -> GroupNeed:
    """The parts that the relations ``above`` read of groups, from below."""
    columns: tuple[Expr, ...] = all_fields(len(agg.keys) + len(measures))
    need = GroupNeed(len(agg.keys), measures)
    for rel in above:
        exprs = tuple(inline(e, columns) for e in rel.exprs)
        if rel.kind == "project":
            columns = exprs
        elif need.limited:
            need = replace(need, shown=(*need.shown, *exprs))
        elif rel.kind == "filter":
            tests = tuple(term for e in exprs for term in conjuncts(e))
            need = replace(need, tests=(*need.tests, *tests))
        elif rel.kind == "sort":
            need = replace(need, order=exprs, directions=directions_of(rel))
        else:
            offset, count = fetch_bounds(rel)
            need = replace(need, offset=offset, count=_ALL if count is None else count)
    if not need.limited:  # an order that no limit counts is read in full
        need = replace(need, shown=(*need.shown, *need.order), order=(), directions=())
    shown = dict.fromkeys((*columns, *need.shown))
    return replace(need, shown=tuple(e for e in shown if _measured(e, need)))


def _measured(expr: Expr, need: GroupNeed) -> bool:
    return any(i >= need.n_keys for i in fields(expr))


def _spares(need: GroupNeed, select: Sequence[Expr], block: Block) -> bool:
    """Whether some rows may need no answer."""
    if need.limited or any(_measured(e, need) for e in need.tests):
        return True
    asking = any(map(needs_model, block.where))
    read = [e for e in need.shown if asking or _reads_answers(e, need, select)]
    return any(not isinstance(e, Field) for e in read)


def _reads_answers(expr: Expr, need: GroupNeed, select: Sequence[Expr]) -> bool:
    read = [need.measures[i - need.n_keys] for i in fields(expr) if i >= need.n_keys]
    columns = {e.index for m in read for e in m.exprs if isinstance(e, Field)}
    return any(needs_model(select[i]) for i in columns)
