"""Stages that run no further than the limit of the last one needs.

``limit k`` over ``(block) join (block) on f(l.x) = g(r.y)``: a hash join takes its keys from whole columns, so each side is a
stage before it. But no pair of a join is lost where a side gets more rows, as none is below a filter, DISTINCT or IN. So the
stages may give some rows each, in turn, until what stands above them has ``k`` rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blendfusion.planner.aggregation import aggregation
from blendfusion.planner.build import fetch_bounds, literal
from blendfusion.planner.joins import GROWS_WITH_LEFT, GROWS_WITH_RIGHT, is_union_all, join_type
from blendfusion.planner.plan import (
    Block,
    Expr,
    Plan,
    Rel,
    Stored,
    asks_itself,
    has_window,
    is_volatile,
    may_move,
    plans_in,
    through_projection,
    walk,
)
from blendfusion.planner.stages import Staged
from blendfusion.planner.tree import expressions, subplans

MOST_WANTED = 100_000
"""Rows of a limit. What is above the stages runs once for each quarter that they grow by, and is held in memory."""


@dataclass(frozen=True, slots=True)
class Limited:
    """``stages``, in order, run in turn until the source of the last one has ``count`` rows, or they end."""

    stages: tuple[int, ...]
    late: frozenset[int]
    """Those that read nothing until others of them have rows."""
    offset: int
    count: int
    """Of the limit, what is skipped and what is left."""
    multiplied: bool
    """Whether there may be more rows above a stage than it has."""


def limited_stages(plan: Staged) -> Limited | None:
    """Which stages of ``plan`` its limit may end early; None if there are none."""
    last = plan.last.block
    _, fetch = through_projection(last.source)
    if not isinstance(fetch, Rel) or fetch.kind != "fetch":
        return None
    offset, count = fetch_bounds(fetch)
    if count is None or offset + count > MOST_WANTED:
        return None
    wanted_whole = {*plan.whole, *_whole(fetch.inputs[0]), *_in_expressions(expressions(last))}
    growing = {
        stage.number
        for stage in plan.stages[:-1]
        if stage.number in _stored(fetch)
        and stage.number not in wanted_whole
        and may_move(stage.block)
        and asks_itself(stage.block)
    }
    while True:
        read = [
            _read(s.block) if s.number in growing else _stored(s.block) for s in plan.stages[:-1]
        ]
        left = growing.difference(*read)
        if left == growing:
            break
        growing = left
    late = {s.number for s in plan.stages if s.number in growing and growing & _stored(s.block)}
    if not growing:
        return None
    multiplied = not _at_most_its_rows(fetch.inputs[0])
    return Limited(tuple(sorted(growing)), frozenset(late), offset, count, multiplied)


def _stored(plan: Plan) -> set[int]:
    """The stages that a plan reads."""
    return {p.stage for p in subplans(plan) if isinstance(p, Stored)}


def _in_expressions(exprs: Iterable[Expr]) -> set[int]:
    """The stages that subqueries in expressions read, or what an answer is chosen from."""
    return set().union(*(_stored(p) for e in exprs for part in walk(e) for p in plans_in(part)))


def _whole(plan: Plan) -> set[int]:
    """The stages below that must be complete: with some of their rows, ``plan`` might have one that it does not have
    with all of them."""
    if isinstance(plan, Stored):
        return set()
    if isinstance(plan, Block) or any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return _stored(plan)
    below = set().union(*map(_whole, plan.inputs), _in_expressions(plan.exprs))
    if plan.kind in ("project", "filter", "cross") or is_union_all(plan) or _is_distinct(plan):
        return below
    if plan.kind == "join":
        kind, (left, right) = join_type(plan), plan.inputs
        below |= set() if kind in GROWS_WITH_LEFT else _stored(left)
        below |= set() if kind in GROWS_WITH_RIGHT else _stored(right)
        return below
    return _stored(plan)


def _at_most_its_rows(plan: Plan) -> bool:
    """Whether every row of ``plan`` comes of one of a stage's, and of each at most one."""
    if not isinstance(plan, Rel):
        return True
    if plan.kind == "join" and join_type(plan) in ("left_semi", "right_semi"):
        return _at_most_its_rows(plan.inputs[join_type(plan) == "right_semi"])
    kept = plan.kind in ("project", "filter") or _is_distinct(plan)
    return kept and _at_most_its_rows(plan.inputs[0])


def _is_distinct(plan: Rel) -> bool:
    if plan.kind != "aggregate":
        return False
    agg = aggregation(plan)
    return bool(agg.keys) and not agg.measures and agg.n_before_measures == len(agg.keys)


def _read(plan: Plan) -> set[int]:
    """The stages whose rows ``plan`` wants, and not only to know whether there is one."""
    if isinstance(plan, Stored):
        return {plan.stage}
    own = _in_expressions(expressions(plan))
    if not _asks_for_existence(plan):
        return own.union(*map(_read, plan.inputs))
    rows, row = plan.inputs
    return own | _read(rows) | _whole(row.inputs[0])


def _asks_for_existence(plan: Plan) -> bool:
    """``rows`` if another plan has one: see semi-join reduction."""
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) != "left_semi":
        return False
    row = plan.inputs[1]
    return (
        all(literal(e) is True for e in plan.exprs)
        and isinstance(row, Rel)
        and row.kind == "fetch"
        and fetch_bounds(row) == (0, 1)
    )
