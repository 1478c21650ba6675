"""The need of the block below an aggregate, by what is read of its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import (
    Aggregation,
    aggregate,
    aggregation,
    has_order,
    is_distinct,
    of_distinct,
)
from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.lineage import is_safe_cast, may_be_real
from blendfusion.planner.ir.necessary import never_fails
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    GroupNeed,
    Measure,
    Node,
    Rel,
    all_fields,
    asks,
    conjuncts,
    fields,
    has_window,
    holds_plans,
    inline,
    is_kept,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    through_projection,
    windows,
)
from blendfusion.planner.ir.sorts import directions_of
from blendfusion.planner.ir.windows import first_ranks, numbering, order_of, reads_partition
from blendfusion.planner.needs.inputs import OF_EXTREME, order_of_value

OF_RANGES = ("count", "sum", "avg", "min", "max")
"""The aggregates of groups whose windows have known ranges."""
_ALL = 2**40
"""In place of no limit, beside an offset."""


def bound_aggregate(groups: Rel, above: Sequence[Rel]) -> Rel | None:
    """An aggregate over a block that asks no more than what is ``above`` reads; None of others."""
    found = aggregate_with_need(_count_of_distinct(groups) or groups, above)
    if found is None:
        return None
    new, block, need = found
    return new.with_inputs(replace(block, until=need)) if _spares(need, block) else None


def aggregate_with_need(groups: Rel, above: Sequence[Rel]) -> tuple[Rel, Block, GroupNeed] | None:
    """(an aggregate over a block whose columns are the keys, and what the aggregates read; this
    block; what is read of the groups); None of others, and of a block that has to ask all rows."""
    if groups.kind != "aggregate":
        return None
    agg, (columns, block) = aggregation(groups), through_projection(groups.inputs[0])
    if not isinstance(block, Block) or not agg.one_group_a_row or not agg.measures:
        return None
    columns = tuple(inline(e, block.select) for e in columns)
    below = agg.change(lambda e: inline(e, columns))
    if not _may_stop(block) or (_of_one_row(agg) and not _is_any_answer(below.measures[0])):
        return None
    keys, measures = below.keys, tuple(_as_least(m, block) for m in below.measures)
    below = replace(below, measures=measures)
    if any(needs_model(key) for key in keys) or not all(_may_wait(block, m) for m in measures):
        return None
    read = dict.fromkeys(e for m in measures for e in m.exprs if not literal_like(e))
    select = (*keys, *(e for e in read if e not in keys))
    place = {e: Field(i) for i, e in reversed([*enumerate(select)])}
    bounded = replace(block, select=select)
    own = replace(below.change(lambda e: place.get(e, e)), keys=all_fields(len(keys)))
    need = _need(agg, own.measures, above)
    return None if need is None else (aggregate(bounded, own), bounded, need)


def _count_of_distinct(groups: Rel) -> Rel | None:
    """``count(DISTINCT x) GROUP BY k`` over a block, of a count over distinct rows of k and x."""
    if groups.kind != "aggregate" or not is_distinct(groups.inputs[0]):
        return None
    agg, below = aggregation(groups), groups.inputs[0]
    assert isinstance(below, Rel)
    columns, block = through_projection(below.inputs[0])
    values = {m.args for m in agg.measures if m.name == "count" and len(m.exprs) == m.n_args == 1}
    if not isinstance(block, Block) or not agg.measures or len(values) != 1:
        return None
    if {*agg.keys, *values.pop()} != {*all_fields(below.width)} or any(
        m.name != "count" for m in agg.measures
    ):
        return None
    inner = tuple(inline(key, columns) for key in aggregation(below).keys)
    own = replace(agg, measures=tuple(map(of_distinct, agg.measures)))
    return aggregate(replace(block, once=False), own.change(lambda e: inline(e, inner)))


def _of_one_row(agg: Aggregation) -> bool:
    """Whether all aggregates are values of one row, which an order of rows finds, or any of these;
    of extreme values, ranges may find it."""
    orders = {order_of_value(measure) for measure in agg.measures}
    ordered = agg.measures[0].n_sorts or agg.measures[0].name == "any_value"
    return bool(ordered) and len(orders) == 1 and None not in orders


def _is_any_answer(measure: Measure) -> bool:
    """Whether an aggregate is any value of answers, of which no order finds a row that has one."""
    return measure.name == "any_value" and not measure.n_sorts and needs_model(measure.args[0])


def _as_least(measure: Measure, block: Block) -> Measure:
    """``any_value`` as the least value, which the first rows by value may decide; DataFusion finds
    another one of infinite numbers."""
    if measure.name != "any_value" or measure.n_sorts or may_be_real(measure.args[0], block.source):
        return measure
    return replace(measure, name="min")


def _may_stop(block: Block) -> bool:
    if block.once or not may_move(block) or block.has_subqueries or not block.calls_here:
        return False
    return all(is_kept(ask) and ask.domain is None for e in block.exprs for ask in asks(e))


def _may_wait(block: Block, measure: Measure) -> bool:
    """Whether an aggregate may be computed on rows that a predicate would have left out."""
    if any(is_volatile(e) or (literal_like(e) and holds_plans(e)) for e in measure.exprs):
        return False
    n = measure.n_sorts
    if n and (not has_order(measure) or any(map(needs_model, measure.exprs[: n + measure.n_args]))):
        return False
    return not block.where or all(
        needs_model(e) or never_fails(e) or is_safe_cast(e, block.source) for e in measure.exprs
    )


def _need(
    agg: Aggregation, measures: tuple[Measure, ...], above: Sequence[Rel]
) -> GroupNeed | None:
    """The parts that the relations ``above`` read of groups, from below; None where windows number
    those of a limit."""
    columns: tuple[Expr, ...] = all_fields(len(agg.keys) + len(measures))
    need, ranked, windowed = GroupNeed(len(agg.keys), measures), False, False
    for rel in above:
        exprs = tuple(inline(e, columns) for e in rel.exprs)
        if rel.kind == "project":
            own = [w for e in rel.exprs for w in windows(e)]
            if own and not all(map(numbering, own)):
                if not _may_have_windows(need, exprs, again=windowed):
                    return None
                need, windowed = replace(need, n_below_windows=len(need.tests)), True
            elif own and need.has_limit:
                return None
            columns = exprs
        elif rel.kind == "fetch" and not need.shown and not ranked:
            need = _with_limit(need, *fetch_bounds(rel))
        elif need.has_limit:
            need = replace(need, shown=(*need.shown, *exprs))
        elif rel.kind == "filter" and any(numbering(w) for e in exprs for w in windows(e)):
            need, ranked = _with_ranks(need, exprs), True
            if not all(_is_of_keys(e, need) for e in need.per):
                return None
        elif rel.kind == "filter":
            tests = tuple(term for e in exprs for term in conjuncts(e))
            need = replace(need, tests=(*need.tests, *tests))
        elif rel.kind == "sort":
            need = replace(need, order=exprs, directions=directions_of(rel))
    if not need.has_limit:  # an order that no limit counts is read in full
        need = replace(need, shown=(*need.shown, *need.order), order=(), directions=())
    shown = dict.fromkeys(part for e in (*columns, *need.shown) for part in _beside_windows(e))
    return replace(need, shown=tuple(e for e in shown if _reads_measure(e, need)))


def reads_all(plan: Rel) -> bool:
    """Whether all windows of a projection are aggregates of all rows with equal keys."""
    own = [w for e in plan.exprs for w in windows(e) if isinstance(w, Node)]
    return all(w.name.removeprefix("window:") in OF_RANGES and reads_partition(w) for w in own)


def _may_have_windows(need: GroupNeed, exprs: Sequence[Expr], *, again: bool) -> bool:
    """Whether the ranges of windows over groups are known: these read all groups with equal keys,
    the same ones as windows before (``again``)."""
    new = [w for e in exprs for w in windows(e) if isinstance(w, Node) and not numbering(w)]
    partitions = {e for w in new for e in order_of(w).partitions}
    same = not again or len(need.tests) == need.n_below_windows
    return same and not need.has_limit and all(_is_of_keys(e, need) for e in partitions)


def _is_of_keys(expr: Expr, need: GroupNeed) -> bool:
    return not _reads_measure(expr, need) and not has_window(expr) and not is_volatile(expr)


def numbers_first(plan: Rel, above: Sequence[Rel]) -> bool:
    """Whether all windows of a projection number its rows in one way, and a filter leaves first
    numbers only; ``above``: the relations above it, from the top."""
    columns = plan.exprs
    orders = {numbering(w) for e in columns for w in windows(e)}
    if plan.kind != "project" or len(orders) != 1 or None in orders:
        return False
    for rel in reversed(above):
        exprs = tuple(inline(e, columns) for e in rel.exprs)
        if rel.kind == "filter":
            return any(_first_numbers(term) for e in exprs for term in conjuncts(e))
        if rel.kind != "project" or any(map(has_window, rel.exprs)):
            return False
        columns = exprs
    return False


def _first_numbers(term: Expr) -> tuple[Node, int] | None:
    """(a window that numbers rows, how many of the first numbers a predicate may leave)"""
    rank, count = first_ranks(term)
    return (rank, count) if count > 0 and isinstance(rank, Node) and numbering(rank) else None


def _with_ranks(need: GroupNeed, exprs: Sequence[Expr]) -> GroupNeed:
    """A need of the groups with the first numbers that a filter leaves."""
    terms = [term for e in exprs for term in conjuncts(e)]
    for window, count in filter(None, map(_first_numbers, terms)):
        order = order_of(window)
        return replace(
            need,
            order=order.keys,
            directions=order.directions,
            count=count,
            per=order.partitions,
            ties=window.name != "window:row_number",
            dense=window.name == "window:dense_rank",
            shown=(*need.shown, *terms),
        )
    return need


def _beside_windows(expr: Expr) -> tuple[Expr, ...]:
    """The parts of an expression beside numbers of rows: the limit decides what those read."""
    if not any(map(numbering, windows(expr))):
        return (expr,)
    if numbering(expr) is not None:
        return ()
    return tuple(part for child in expr.children for part in _beside_windows(child))


def _with_limit(need: GroupNeed, offset: int, count: int | None) -> GroupNeed:
    """A need with a limit above its own: ``LIMIT 2 OFFSET 1`` is one of 3 rows below an offset."""
    most = _ALL if need.count is None else max(need.count - offset, 0)
    return replace(
        need, offset=need.offset + offset, count=min(most, _ALL if count is None else count)
    )


def _reads_measure(expr: Expr, need: GroupNeed) -> bool:
    return has_window(expr) or any(i >= need.n_keys for i in fields(expr))


def _spares(need: GroupNeed, block: Block) -> bool:
    """Whether some rows may need no answer."""
    if need.has_limit or any(_reads_measure(e, need) for e in need.tests):
        return True
    asking = any(map(needs_model, block.where))
    read = [e for e in need.shown if asking or _reads_answers(e, need, block.select)]
    return any(not isinstance(e, Field) or _is_extreme(e, need) for e in read)


def _is_extreme(column: Field, need: GroupNeed) -> bool:
    """Whether the first rows by value may decide an aggregate."""
    measure = need.measures[column.index - need.n_keys]
    return measure.name in OF_EXTREME or has_order(measure)


def _reads_answers(expr: Expr, need: GroupNeed, select: Sequence[Expr]) -> bool:
    read = [need.measures[i - need.n_keys] for i in fields(expr) if i >= need.n_keys]
    columns = {e.index for m in read for e in m.exprs if isinstance(e, Field)}
    return any(needs_model(select[i]) for i in columns)
