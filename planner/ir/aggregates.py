"""Splits aggregate relations into keys and measures, and rebuilds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from substrait.proto import AggregateFunction
from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.messages import holes, serialize
from blendfusion.planner.ir.nodes import Direction, Expr, Measure, Plan, Rel, once_a_plan
from blendfusion.planner.ir.sorts import reverse


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate relation as group keys and measures; ``template`` holds the rest.

    Its output is the keys, then the set's number if there are several grouping sets, then the
    measures.
    """

    template: bytes
    keys: tuple[Expr, ...]
    measures: tuple[Measure, ...]

    @property
    def n_before_measures(self) -> int:
        """The columns of the output before the first measure."""
        return len(self.keys) + (len(RelMessage.FromString(self.template).aggregate.groupings) > 1)

    @property
    def one_group_a_row(self) -> bool:
        """Whether each row belongs to exactly one group, since there is one grouping set or no
        key."""
        return self.n_before_measures == len(self.keys)

    @property
    def has_one_grouping(self) -> bool:
        """Whether there are group keys, in one grouping set."""
        return bool(self.keys) and self.one_group_a_row

    def change(self, change: Callable[[Expr], Expr]) -> Aggregation:
        """This, with what ``change`` makes of the keys and the expressions of measures."""
        keys = tuple(map(change, self.keys))
        measures = (replace(m, exprs=tuple(map(change, m.exprs))) for m in self.measures)
        return replace(self, keys=keys, measures=tuple(measures))


@once_a_plan
def aggregation(rel: Plan) -> Aggregation:
    """Split an aggregate relation; ``aggregate`` rebuilds it."""
    assert isinstance(rel, Rel)
    message = RelMessage.FromString(rel.template)
    names = [_measure_name(i, rel) for i in range(len(message.aggregate.measures))]
    exprs = iter(rel.exprs)
    measures = []
    for name, measure in zip(names, message.aggregate.measures, strict=True):
        holder = RelMessage()
        holder.aggregate.measures.add().CopyFrom(measure)
        own = tuple(next(exprs) for _ in holes(holder))
        inner = measure.measure
        counts = len(inner.sorts), len(inner.arguments)
        measures.append(Measure(name, serialize(holder), own, *counts))
    del message.aggregate.measures[:]
    del message.aggregate.grouping_expressions[:]
    return Aggregation(serialize(message), tuple(exprs), tuple(measures))


def order_of_first(measure: Measure) -> tuple[tuple[Expr, ...], tuple[Direction, ...]] | None:
    """The order of whose first row ``first_value`` and ``last_value`` have the value; None of other
    aggregates, and without an order."""
    if measure.name not in ("first_value", "last_value") or not measure.n_sorts:
        return None
    keys, directions = sorts_of(measure)
    if measure.name == "last_value":
        directions = tuple(map(reverse, directions))
    return keys, directions


def sorts_of(measure: Measure) -> tuple[tuple[Expr, ...], tuple[Direction, ...]]:
    """The order in which an aggregate reads its rows."""
    message = RelMessage.FromString(measure.template).aggregate.measures[0].measure
    return measure.exprs[: measure.n_sorts], tuple(key.direction for key in message.sorts)


def has_order(measure: Measure) -> bool:
    """Whether an aggregate is the value of the first row in an order."""
    return order_of_first(measure) is not None


def without_filter(measure: Measure) -> Measure:
    """``measure`` over all rows, without its FILTER."""
    if measure.filter is None:
        return measure
    holder = RelMessage.FromString(measure.template)
    holder.aggregate.measures[0].ClearField("filter")
    return replace(measure, template=serialize(holder), exprs=measure.exprs[:-1])


def is_of_distinct(measure: Measure) -> bool:
    """Whether an aggregate reads each value once."""
    inner = RelMessage.FromString(measure.template).aggregate.measures[0].measure
    return bool(inner.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT)


def of_distinct(measure: Measure) -> Measure:
    """``measure`` over its distinct values."""
    holder = RelMessage.FromString(measure.template)
    inner = holder.aggregate.measures[0].measure
    inner.invocation = AggregateFunction.AGGREGATION_INVOCATION_DISTINCT
    return replace(measure, template=serialize(holder))


def is_distinct(plan: Plan) -> bool:
    """Whether a plan gives the distinct rows of its input."""
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return False
    agg = aggregation(plan)
    return agg.has_one_grouping and not agg.measures


def _measure_name(position: int, rel: Rel) -> str:
    # The name stands in the type URL-free field "hint" of the template: see _Reader.rel.
    message = RelMessage.FromString(rel.template)
    return str(message.aggregate.common.hint.output_names[position])


def aggregate(source: Plan, agg: Aggregation) -> Rel:
    """The aggregate relation of ``agg`` over ``source``."""
    message = RelMessage.FromString(agg.template)
    message.aggregate.input.SetInParent()
    del message.aggregate.common.hint.output_names[:]
    for measure in agg.measures:
        holder = RelMessage.FromString(measure.template)
        message.aggregate.measures.add().CopyFrom(holder.aggregate.measures[0])
        message.aggregate.common.hint.output_names.append(measure.name)
    for _ in agg.keys:
        message.aggregate.grouping_expressions.add().SetInParent()
    exprs = tuple(e for m in agg.measures for e in m.exprs) + agg.keys
    width = len(agg.keys) + len(agg.measures) + (len(message.aggregate.groupings) > 1)
    return Rel("aggregate", serialize(message), (source,), exprs, width)


def by_more_keys(agg: Aggregation, keys: tuple[Expr, ...]) -> Aggregation:
    """``agg``, which has one grouping, by further keys behind its own."""
    message = RelMessage.FromString(agg.template)
    n = len(agg.keys)
    message.aggregate.groupings[0].expression_references.extend(range(n, n + len(keys)))
    return replace(agg, template=serialize(message), keys=(*agg.keys, *keys))


def distinct(source: Plan, *keys: Expr) -> Rel:
    """The distinct tuples of ``keys`` over ``source``, one column per key."""
    message = RelMessage()
    message.aggregate.groupings.add().expression_references.extend(range(len(keys)))
    return aggregate(source, Aggregation(serialize(message), keys, ()))
