"""The needs of the inputs of each kind of relation, by what is read of its own rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from blendfusion.planner.ir.aggregates import Aggregation, aggregation, order_of_first, sorts_of
from blendfusion.planner.ir.builders import fetch_bounds, literal
from blendfusion.planner.ir.joins import TESTED, is_union_all, join_type, outputs
from blendfusion.planner.ir.nodes import (
    Block,
    Direction,
    Expr,
    Field,
    Measure,
    Node,
    Rel,
    Take,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
)
from blendfusion.planner.ir.sorts import ASC, DESC, directions_of
from blendfusion.planner.ir.windows import first_ranks
from blendfusion.planner.needs.need import ALL, Need, change_each, over
from blendfusion.planner.needs.plans import takes_of
from blendfusion.planner.needs.windows import below_windows

OF_EXTREME = {"max": DESC, "min": ASC, "bool_or": DESC, "bool_and": ASC}
"""Aggregates that do not depend on how often a value comes, and the order of whose first row they
are the value."""
_OF_SOME_ORDER = {**OF_EXTREME, "any_value": ASC}
"""Also one that may be the value of any row; NULL comes last, as it must."""
_ALL_COME = (("left", "left_mark"), ("right",))
"""Joins that have each row of their left side, and of their right side."""


def needs_below(plan: Rel | Block, need: Need) -> tuple[Need, ...]:
    """The needs of the inputs of a relation."""
    if isinstance(plan, Block):
        return (Need(() if plan.where or plan.until else takes_of(plan, need)),)
    found = NEEDS[plan.kind](plan, need) if plan.kind in NEEDS else ()
    return found or (ALL,) * len(plan.inputs)


def _fetch(plan: Rel, need: Need) -> tuple[Need, ...]:
    offset, count = fetch_bounds(plan)
    if not count:
        return ()
    takes = need.takes if not need.ranks and not offset else ()
    if takes and not takes[0].order and not takes[0].per:  # a limit of these rows, in their order
        count, takes = min(count, takes[0].count), takes[1:]
    return (Need((Take(offset + count), *takes)),)


def _sort(plan: Rel, need: Need) -> tuple[Need, ...]:
    if not need.takes:
        return (need,)
    first, *others = need.takes
    if first.order or first.per:
        return (need,)
    keys = zip(plan.exprs, directions_of(plan), strict=True)
    return (replace(need, takes=(first.by((*keys,)), *others)),)


def _project(plan: Rel, need: Need) -> tuple[Need, ...]:
    if any(map(has_window, plan.exprs)):
        return (below_windows(plan, need),)
    ranks = tuple((inline(e, plan.exprs), n) for e, n in need.ranks)
    once = need.once and not any(map(is_volatile, plan.exprs))
    return (replace(_over(need, dict(enumerate(plan.exprs))), ranks=ranks, once=once),)


def _over(need: Need, columns: Mapping[int, Expr]) -> Need:
    """The takes of a need over other columns, up to the first one that is of all rows."""
    return Need(change_each(need.takes, lambda take: over(take, columns)))


def _filter(plan: Rel, need: Need) -> tuple[Need, ...]:
    terms = conjuncts(plan.exprs[0])
    found = [(*first_ranks(term), term) for term in terms]
    ranks = tuple((rank, count) for rank, count, _ in found if count >= 1)
    exact = len(terms) == 1 and ranks and _is_of_all_up_to(terms[0], ranks[0][1])
    takes = need.takes if exact and not need.ranks else ()
    once = need.once and not is_volatile(plan.exprs[0])
    return (Need(takes, ranks, once),)


def _is_of_all_up_to(term: Expr, count: int) -> bool:
    """Whether a comparison with a number is true for each rank up to ``count``."""
    return count == 1 or (isinstance(term, Node) and term.name in ("lt", "lte", "gt", "gte"))


def _aggregate(plan: Rel, need: Need) -> tuple[Need, ...]:
    agg = aggregation(plan)
    if not agg.one_group_a_row:
        return ()
    once = all(measure.name in OF_EXTREME for measure in agg.measures)
    outer = need.takes[0] if need.takes and not (need.ranks or need.takes[0].per) else None
    orders = {order_of_value(measure) for measure in agg.measures}
    order = orders.pop() if len(orders) == 1 else None
    of_first = order is not None and not (once and order[0][0] in agg.keys)
    if agg.measures and not of_first:
        return (Need(() if outer is None else _of_groups(agg, outer), once=once),)
    if not agg.measures and (outer is None or not outer.order):
        return (Need(once=True),)
    count = max(map(_rows_read, agg.measures), default=1)
    inner = Take(count, agg.keys, *(order or ((), ())), of_groups=True)
    if count > 1:  # of which the limit counts groups
        return (Need((inner, *(() if outer is None else _of_groups(agg, outer)))),)
    columns = dict(enumerate(agg.keys)) | _extremes(agg, outer)
    own = None if outer is None else over(_by_keys(agg, outer), columns)
    return (Need((inner,) if own is None else (inner, own), once=once and own is None),)


def _of_groups(agg: Aggregation, outer: Take) -> tuple[Take, ...]:
    """The rows of the first groups, if their order is one of keys; of all, if it is unknown."""
    own = over(_by_keys(agg, outer), dict(enumerate(agg.keys)))
    if own is None or not own.order:
        return ()
    keys = (*own.keys, *((key, ASC) for key in agg.keys if key not in own.order))
    groups = own if own.dense else own.by(keys)
    return (replace(groups, ties=own.ties or len(groups.order), dense=True),)


def _by_keys(agg: Aggregation, outer: Take) -> Take:
    """A limit of groups; without an order, in that of their keys: the same ones in each run."""
    if outer.order:
        return outer
    return outer.by([(Field(i), ASC) for i in range(len(agg.keys))])


def _extremes(agg: Aggregation, outer: Take | None) -> dict[int, Expr]:
    """The aggregates by which groups are in the order of their first rows."""
    found: dict[int, Expr] = {}
    for i, measure in enumerate(agg.measures, agg.n_before_measures):
        read = [key for key in outer.keys if i in fields(key[0])] if outer is not None else []
        if measure.name in OF_EXTREME and {*read} <= {(Field(i), OF_EXTREME[measure.name])}:
            found[i] = measure.args[0]
    return found


def _join(plan: Rel, need: Need) -> tuple[Need, ...]:
    kind, below = join_type(plan), [ALL, ALL]
    if kind in TESTED:
        below[TESTED[kind]] = Need(once=True)
    for side in (0, 1):
        if kind in _ALL_COME[side] and not need.ranks:
            place = {i: Field(column) for i, (of, column) in enumerate(outputs(plan)) if of == side}
            below[side] = _over(need, place)
    return tuple(below)


def _set(plan: Rel, need: Need) -> tuple[Need, ...]:
    return (need,) * len(plan.inputs) if is_union_all(plan) else ()


def order_of_value(measure: Measure) -> tuple[tuple[Expr, ...], tuple[Direction, ...]] | None:
    """The order by whose first rows an aggregate has its value; None for others."""
    if measure.filter is not None or not measure.args:
        return None
    if measure.name in _OF_SOME_ORDER and not measure.n_sorts:
        return measure.args[:1], (_OF_SOME_ORDER[measure.name],)
    return sorts_of(measure) if _place(measure) else order_of_first(measure)


def _place(measure: Measure) -> int:
    """The place of the row of which ``nth_value`` has the value; 0 of other aggregates."""
    if measure.name != "nth_value" or not measure.n_sorts:
        return 0
    place = literal(measure.args[1])
    return place if type(place) is int and place > 0 else 0


def _rows_read(measure: Measure) -> int:
    """The number of first rows by which an aggregate has its value."""
    return _place(measure) or 1


NEEDS: Mapping[str, Callable[[Rel, Need], tuple[Need, ...]]] = {
    "fetch": _fetch,
    "sort": _sort,
    "project": _project,
    "filter": _filter,
    "aggregate": _aggregate,
    "join": _join,
    "set": _set,
}
"""By kind of relation. Of others, all rows of the inputs are read."""
