"""Monotone plans: their rows only grow when the stages below them grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blendfusion.planner.ir.aggregates import is_distinct
from blendfusion.planner.ir.builders import fetch_bounds, literal
from blendfusion.planner.ir.joins import (
    GROWS_WITH_LEFT,
    GROWS_WITH_RIGHT,
    is_union_all,
    join_plans,
    join_type,
)
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Plan,
    Rel,
    StoredRows,
    conjuncts,
    has_window,
    is_volatile,
    walk,
)
from blendfusion.planner.ir.traversal import fold, subplans
from blendfusion.planner.stages.right_join_bug import as_left_join

MOST_WANTED = 100_000
"""Maximum rows of a limit. The plan above the stages runs once per growth by a quarter, in memory.
"""


def stages_in(plan: Plan) -> set[int]:
    """The stages that a plan reads."""
    return {p.stage for p in subplans(plan) if isinstance(p, StoredRows)}


def stages_in_expressions(exprs: Iterable[Expr]) -> set[int]:
    """The stages that expressions read, by subqueries or candidates."""
    return set().union(*(stages_in(p) for e in exprs for part in walk(e) for p in part.rels))


def stages_needed_whole(plan: Plan) -> set[int]:
    """The stages that must be complete: with a part of their rows, ``plan`` might have a row that
    it lacks with all of them."""
    return fold(plan, _needed_whole)


def _needed_whole(plan: Plan, below: Sequence[set[int]]) -> set[int]:
    if isinstance(plan, StoredRows):
        return set()
    if isinstance(plan, Block) or any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return stages_in(plan)
    if asks_for_a_row(plan):
        return below[0] | stages_needed_whole(plan.inputs[1].inputs[0])
    found = stages_in_expressions(plan.exprs).union(*below)
    if plan.kind in ("project", "filter", "cross") or is_union_all(plan) or is_distinct(plan):
        return found
    if plan.kind == "join":
        kind, (left, right) = join_type(plan), plan.inputs
        found |= set() if kind in GROWS_WITH_LEFT else stages_in(left)
        found |= set() if kind in GROWS_WITH_RIGHT else stages_in(right)
        return found
    return stages_in(plan)


def with_partners(plan: Plan) -> Plan:
    """``plan`` without rows that it may lose when a stage grows: those of an outer join whose
    partner may still come. It has no other rows than ``plan``."""
    if not isinstance(plan, Rel) or any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return plan
    if plan.kind == "join":
        left, right = plan.inputs
        kind = _without_late_rows(join_type(plan), bool(stages_in(left)), bool(stages_in(right)))
        if kind != join_type(plan):
            terms = tuple(t for e in plan.exprs for t in conjuncts(e))
            return with_partners(as_left_join(join_plans(left, right, terms, kind)))
        grows: tuple[bool, ...] = (kind in GROWS_WITH_LEFT, kind in GROWS_WITH_RIGHT)
    elif plan.kind in ("project", "filter", "cross") or is_union_all(plan) or is_distinct(plan):
        grows = (True,) * len(plan.inputs)
    else:
        return plan
    inputs = (with_partners(p) if own else p for p, own in zip(plan.inputs, grows, strict=True))
    return plan.with_inputs(*inputs)


def _without_late_rows(kind: str, left_grows: bool, right_grows: bool) -> str:
    """A type of join without the rows of each side to which the other one may bring partners."""
    kept = {"left": (True, False), "right": (False, True), "outer": (True, True)}.get(kind)
    if kept is None:
        return kind
    names = {(True, True): "outer", (True, False): "left", (False, True): "right"}
    return names.get((kept[0] and not right_grows, kept[1] and not left_grows), "inner")


def has_at_most_their_rows(plan: Plan) -> bool:
    """Whether each row of ``plan`` comes from a row of a stage, at most one per row."""
    if not isinstance(plan, Rel):
        return True
    if plan.kind == "join" and join_type(plan) in ("left_semi", "right_semi"):
        return has_at_most_their_rows(plan.inputs[join_type(plan) == "right_semi"])
    kept = plan.kind in ("project", "filter") or is_distinct(plan)
    return kept and has_at_most_their_rows(plan.inputs[0])


def asks_for_a_row(plan: Plan) -> bool:
    """Whether ``plan`` keeps a row of its left side if a stage has one match: see semi-join
    reduction."""
    if not isinstance(plan, Rel) or plan.kind != "join" or join_type(plan) != "left_semi":
        return False
    row = plan.inputs[1]
    return (
        all(literal(e) is True for e in plan.exprs)
        and isinstance(row, Rel)
        and row.kind == "fetch"
        and fetch_bounds(row) == (0, 1)
        and has_at_most_their_rows(row.inputs[0])
    )


def stages_to_end(fetch: Plan) -> set[int]:
    """The stages that a limit may end early, by the limit alone; none for other relations."""
    if not isinstance(fetch, Rel) or fetch.kind != "fetch":
        return set()
    offset, count = fetch_bounds(fetch)
    if count is None or offset + count > MOST_WANTED:
        return set()
    return stages_in(fetch) - stages_needed_whole(with_partners(fetch.inputs[0]))
