"""Partners: the rows that one side of a join can meet on the other, as a plan of its own.

A partner may have more rows than the other side, never fewer, and must give the same rows in each
run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import (
    boolean_literal,
    fetch_bounds,
    filter_rows,
    limit_rows,
    project,
    table_names,
)
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
    Field,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    fields,
    has_window,
    inline,
    is_volatile,
    literal_like,
    needs_model,
    once_a_plan,
    shift,
)
from blendfusion.planner.ir.opaque_names import QUERIES, leaf_text
from blendfusion.planner.ir.traversal import asks_anything, expressions
from blendfusion.planner.stages.products import factors, has_key, thin

_MOST_RELATIONS = 64
"""Maximum relations of a partner, which runs a second time."""
_MOST_FACTORS = 2
"""The most relations whose rows are compared each with each."""
_REPEATABLE = ("count", "min", "max", "bool_and", "bool_or")
"""Aggregates whose result does not depend on the division of rows among threads."""


def inline_terms(
    terms: Sequence[Expr], columns: Sequence[Expr], width: int, below: int
) -> list[Expr]:
    """The terms over a relation as terms over its input, without those that a model must decide."""
    place = (*columns, *(Field(below + i) for i in range(max(map(_most, terms), default=0) + 1)))
    moved = (inline(t, place) for t in terms)
    return [t for t in moved if not needs_model(t) and not is_volatile(t) and fields(t)]


def _most(term: Expr) -> int:
    return max(fields(term), default=0)


def with_partner(source: Plan, terms: Sequence[Expr], partner: Plan, kind: str) -> Rel:
    """The semi or mark join of ``source`` with those columns of ``partner`` that the terms read;
    with any row of it if they read none, or if pairs of them would be as many as those of three
    relations: that could take longer than the questions that it spares."""
    width = source.width
    partner = thin(partner, {i - width for t in terms for i in fields(t) if i >= width})
    if not _is_affordable(source, terms, partner):
        terms = ()
    both = tuple(dict.fromkeys(t for t in terms if min(fields(t)) < width))
    keys = {part for t in both for part in t.children}
    alone = dict.fromkeys(t for t in terms if min(fields(t)) >= width and not keys & {*t.children})
    rows = filter_rows(partner, tuple(shift(t, -width) for t in alone))
    used = sorted({i for t in both for i in fields(t) if i >= width})
    if not used:
        row = limit_rows(project(rows, (boolean_literal(True),)), 0, 1)
        return join_plans(source, row, both, kind)
    place = {
        **dict(enumerate(all_fields(width))),
        **{i: Field(width + n) for n, i in enumerate(used)},
    }
    moved = tuple(inline(t, place) for t in both)
    return join_plans(source, project(rows, tuple(Field(i - width) for i in used)), moved, kind)


def _is_affordable(source: Plan, terms: Sequence[Expr], partner: Plan) -> bool:
    """Whether no more pairs are compared than two relations have."""
    if factors(partner) > 1:
        return False
    return has_key(terms, source.width) or factors(source) + factors(partner) <= _MOST_FACTORS


def partner_of(other: Plan) -> Plan | None:
    """A plan without calls that has all rows of ``other``, perhaps more; None if impossible."""
    bare = strip_calls(other)
    return None if asks_anything(bare) else small(steady(bare))


def repeatable(plan: Plan) -> Plan | None:
    """``plan``, or one with more rows, that gives the same rows in each run; None if impossible."""
    return small(exact(plan) or steady(plan))


def small(plan: Plan | None) -> Plan | None:
    """``plan`` if it is small enough to run twice."""
    if plan is None or next(islice(_relations(plan), _MOST_RELATIONS, None), None) is not None:
        return None
    return plan


def strip_calls(plan: Plan) -> Plan:
    """The rows of a block before its filter, with TRUE instead of calls, so that it need not run
    first."""
    if not isinstance(plan, Block) or plan.has_limit:
        return plan
    blank = tuple(boolean_literal(True) if needs_model(e) else e for e in plan.select)
    return project(plan.source, blank)


@once_a_plan
def steady(plan: Plan) -> Plan | None:
    """``plan`` without its limits if that only adds rows; None if it may differ from run to run."""
    if isinstance(plan, Block | StoredRows):
        return plan
    if plan.kind == "fetch" and not _has_no_row(plan):
        return steady(plan.inputs[0])
    if any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return None
    if plan.kind in ("project", "filter", "cross") or is_union_all(plan):
        return _with_steady(plan, [steady(p) for p in plan.inputs])
    if plan.kind == "sort":
        return steady(plan.inputs[0])
    if plan.kind == "join":
        kind = join_type(plan)
        left, right = plan.inputs
        return _with_steady(
            plan,
            [
                steady(left) if kind in GROWS_WITH_LEFT else exact(left),
                steady(right) if kind in GROWS_WITH_RIGHT else exact(right),
            ],
        )
    return exact(plan)


def _with_steady(plan: Rel, inputs: Sequence[Plan | None]) -> Plan | None:
    known = tuple(p for p in inputs if p is not None)
    return None if len(known) < len(inputs) else plan.with_inputs(*known)


@once_a_plan
def exact(plan: Plan) -> Plan | None:
    """``plan`` if it gives the same rows in each run, else None."""
    if not isinstance(plan, Rel):
        return plan
    return plan if _repeats(plan) and all(exact(p) is not None for p in plan.inputs) else None


def _repeats(plan: Rel) -> bool:
    if any(is_volatile(e) or has_window(e) for e in expressions(plan)):
        return False
    if plan.kind == "fetch":
        return _has_no_row(plan) or _has_equal_rows(plan.inputs[0])
    if plan.kind == "read":
        return leaf_text(table_names(plan), QUERIES) is None
    return plan.kind != "aggregate" or all(
        m.name in _REPEATABLE for m in aggregation(plan).measures
    )


def _has_no_row(fetch: Rel) -> bool:
    return fetch_bounds(fetch)[1] == 0


def _has_equal_rows(plan: Plan) -> bool:
    """Whether a limit keeps the same rows, whichever it keeps: of TRUE alone, as in ``any row``."""
    return isinstance(plan, Rel) and plan.kind == "project" and all(map(literal_like, plan.exprs))


def _relations(plan: Plan) -> Iterator[Plan]:
    """The relations that run again; blocks are stages, which run once."""
    left = [plan]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Rel):
            left.extend(part.inputs)
