"""Asks first about the rows on which an expression above a filter by answers fails.

``WHERE llm(x) ORDER BY 10 / g`` has no order before it is known which rows pass, if ``g`` is 0 in
some. Such rows are asked before any other row is sorted, grouped or joined. Those that fail the
filter are gone. One that passes ends the query in the error that it has without a planner.

before: ``sort by 10 / g`` over ``filter llm(x)`` over ``t``
after:  the same over ``block where computes(10 / g) or llm(x)`` over ``t``
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from blendfusion.errors import PlanError
from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import conjunction, filter_rows, function
from blendfusion.planner.ir.joins import ALL_COME, is_join, is_union_all, join_type
from blendfusion.planner.ir.necessary import never_fails
from blendfusion.planner.ir.nodes import (
    COMPUTES,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    walk,
)
from blendfusion.planner.ir.traversal import asks_anything, with_subplans
from blendfusion.planner.ir.windows import without_windows
from blendfusion.planner.needs.reads import parts_over, read_of_side

_LARGEST = 300
"""The size of the largest expression that is looked at: each of some projections may double it."""


def failing_rows_first(plan: Plan, read: Sequence[Expr] = ()) -> Plan:
    """A plan that no rule has changed yet; ``read``: the expressions above it, over its columns.
    Raises PlanError where answers drop rows in another way than a filter."""
    if not isinstance(plan, Rel) or not asks_anything(plan):
        return plan
    if any(map(_fails_somewhere, _read_of_dropped(plan, read))):
        raise PlanError("an expression fails on rows that an answer may drop")
    below = _read_below(plan, read)
    inputs = tuple(failing_rows_first(p, e) for p, e in zip(plan.inputs, below, strict=True))
    new: Plan = plan.with_inputs(*inputs)
    new = with_subplans(
        new, lambda p: p if any(p is own for own in inputs) else failing_rows_first(p)
    )
    return _filter(new, read) if isinstance(new, Rel) and new.kind == "filter" else new


def _read_below(plan: Rel, read: Sequence[Expr]) -> Sequence[Sequence[Expr]]:
    """The expressions that a relation and those above it evaluate over each of its inputs."""
    if plan.kind == "project":
        sizes = [sum(1 for _ in walk(e)) for e in plan.exprs]
        above = [inline(e, plan.exprs) for e in read if _size_over(e, sizes) <= _LARGEST]
        parts = chain.from_iterable(map(without_windows, (*above, *plan.exprs)))
        return (tuple(dict.fromkeys(parts)),)
    if plan.kind == "aggregate":
        agg = aggregation(plan)
        keys = dict(enumerate(agg.keys)) if agg.one_group_a_row else {}

        def of_key(part: Expr) -> Expr | None:
            return keys.get(part.index) if isinstance(part, Field) else None

        of_keys = chain.from_iterable(parts_over(e, of_key) for e in read)
        return ((*of_keys, *agg.keys, *(e for measure in agg.measures for e in measure.exprs)),)
    if is_join(plan):
        return [read_of_side(plan, side, read) for side in (0, 1)]
    if len(plan.inputs) == 1 and plan.width == plan.inputs[0].width:
        return ((*read, *plan.exprs),)
    return ((*read,) if is_union_all(plan) else (),) * len(plan.inputs)


def _read_of_dropped(plan: Rel, read: Sequence[Expr]) -> Iterator[Expr]:
    """The expressions over rows that a join by answers drops, or the FILTER of an aggregate."""
    if plan.kind == "aggregate":
        for measure in aggregation(plan).measures:
            if measure.filter is not None and needs_model(measure.filter):
                yield from measure.exprs[: measure.n_sorts + measure.n_args]
    for side in (0, 1) if is_join(plan) else ():
        by_answers = plan.calls_here or asks_anything(plan.inputs[1 - side])
        if by_answers and join_type(plan) not in ALL_COME[side]:
            yield from read_of_side(replace(plan, exprs=()), side, read)


def _fails_somewhere(expr: Expr) -> bool:
    return any(True for _ in _parts_that_may_fail(expr))


def _size_over(expr: Expr, sizes: Sequence[int]) -> int:
    """The size of an expression over columns of these sizes."""
    return sum(sizes[part.index] for part in walk(expr) if isinstance(part, Field))


def _filter(plan: Rel, read: Sequence[Expr]) -> Plan:
    terms = conjuncts(plan.exprs[0])
    asking = tuple(term for term in terms if needs_model(term))
    parts = dict.fromkeys(chain.from_iterable(map(_parts_that_may_fail, read)))
    if not asking or not parts or any(map(is_volatile, terms)):
        return plan
    source = filter_rows(plan.inputs[0], tuple(term for term in terms if not needs_model(term)))
    computes = Node(COMPUTES, b"", tuple(parts))
    first = function("or", (computes, conjunction(asking)))
    return filter_rows(Block(source, (first,), all_fields(source.width)), asking)


def _parts_that_may_fail(expr: Expr) -> Iterator[Expr]:
    """The largest parts of an expression that have one value a row without an answer."""
    if needs_model(expr) or expr.rels or has_window(expr) or is_volatile(expr):
        for part in expr.children:
            yield from _parts_that_may_fail(part)
    elif fields(expr) and not never_fails(expr):
        yield expr
