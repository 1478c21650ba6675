"""Computes aggregates of one grouping apart, where each needs few answers, but not the same ones.

before: ``aggregate count(*), bool_or(llm(x)), max(d) FILTER (WHERE llm(x)) by k`` over ``block(t)``
after:  ``aggregate count(*) by k`` over ``t``, joined by ``k`` to ``aggregate bool_or(llm(x)) by
        k`` and to ``aggregate max(d) FILTER (WHERE llm(x)) by k`` over the block, which end their
        questions early (see ``any_of_group``)
before: ``aggregate min(d), max(d) by k`` over ``block(t) where llm(x)``
after:  each of them over the block, joined by ``k`` (see ``first_of_groups``)
safe:   all of them have the same groups, those of the block, and each group once. ``t`` is read
        several times, and must have the same rows each time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import reduce

from blendfusion.planner.ir.aggregates import Aggregation, aggregated, aggregation
from blendfusion.planner.ir.builders import function, projected
from blendfusion.planner.ir.joins import joined
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    all_fields,
    asks,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.rules.answers_with_partners import is_kept
from blendfusion.planner.rules.any_of_group import any_of_group
from blendfusion.planner.rules.first_of_groups import first_of_groups, order_of_value
from blendfusion.planner.stages.join_partners import exact, small

_MOST_PARTS = 4
"""The most aggregates of one: each reads the rows again."""
_WITHOUT_CALLS = "without calls"


def separate_aggregates(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    return separated(plan, lambda own, _: any_of_group(own))


def separated(plan: Rel, spared: Callable[[Rel, Sequence[int]], Plan]) -> Plan:
    """The aggregate ``plan`` in parts. ``spared`` gives a part, of the aggregates at some places,
    with fewer questions, or itself."""
    block, agg = plan.inputs[0], aggregation(plan)
    if len(agg.measures) < 2 or not agg.one_group_a_row or not isinstance(block, Block):
        return plan
    if block.once or not may_move(block) or not block.calls_here:
        return plan
    keys, parts = tuple(inline(key, block.select) for key in agg.keys), _parts(agg, block)
    if any(needs_model(key) or is_volatile(key) or literal_like(key) for key in keys):
        return plan
    if not 1 < len(parts) <= _MOST_PARTS or small(exact(block.source)) is None:
        return plan
    if not all(is_kept(ask) for e in block.exprs for ask in asks(e)):
        return plan
    found: list[Plan] = []
    for kind, places in parts.items():
        part = replace(agg, measures=tuple(agg.measures[i] for i in places))
        own = aggregated(block, part)
        if kind == _WITHOUT_CALLS:
            found.append(_below(block, part, keys))
            continue
        fewer = spared(own, places)
        if fewer is own and first_of_groups(own) is own:
            return plan
        found.append(fewer)
    order = [i for places in parts.values() for i in places]
    n, each = len(keys), [len(places) for places in parts.values()]
    starts = [sum(each[:i]) + (i + 1) * n for i in range(len(each))]
    columns = [
        Field(start + i) for start, own in zip(starts, each, strict=True) for i in range(own)
    ]
    shown = tuple(columns[order.index(i)] for i in range(len(order)))
    return projected(
        reduce(lambda left, right: _joined(left, right, n), found), (*all_fields(n), *shown)
    )


def _parts(agg: Aggregation, block: Block) -> dict[Hashable, list[int]]:
    """The places of the aggregates that stay together: those that read no answer, and those that
    have their values of the first rows in one order."""
    chosen = any(map(needs_model, block.where))
    parts: dict[Hashable, list[int]] = {}
    for i, measure in enumerate(agg.measures):
        asking = any(needs_model(inline(e, block.select)) for e in measure.exprs)
        kind: Hashable = i
        if not asking:
            kind = order_of_value(measure) or i if chosen else _WITHOUT_CALLS
        parts.setdefault(kind, []).append(i)
    return parts


def _below(block: Block, agg: Aggregation, keys: tuple[Expr, ...]) -> Plan:
    """``agg``, which reads no answer, over the source of the block."""
    measures = tuple(
        replace(m, exprs=tuple(inline(e, block.select) for e in m.exprs)) for m in agg.measures
    )
    return aggregated(block.source, replace(agg, keys=keys, measures=measures))


def _joined(left: Plan, right: Plan, n_keys: int) -> Plan:
    same = (
        function("is_not_distinct_from", (Field(i), Field(left.width + i))) for i in range(n_keys)
    )
    return joined(left, right, tuple(same))
