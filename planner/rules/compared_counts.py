"""Counts rows only up to the number that a count is compared with.

before: ``filter n >= 3`` over ``aggregate count(*) AS n by k`` over ``block(t) where llm(x)``; also
        ``(SELECT count(*) …) > 0``, and a count that another expression compares
after:  the same over the block with a limit of 3 for each ``k``; without groups, with a limit of 3
before: the same of ``count(*) FILTER (WHERE llm(x))``, or of ``sum(CASE WHEN llm(x) THEN 1 ELSE 0
        END)``
after:  the same of ``v`` over ``t`` twice (see ``any_of_group``): rows with ``llm(x)`` count, and
        the others, which come last, keep their group
before: the same beside other aggregates that need no answer, or few
after:  each apart (see ``separate_aggregates``)
safe:   nothing but comparisons with numbers reads the count, and these have the same result for all
        counts from the largest number on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from substrait.proto import AggregateFunction
from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import Aggregation, Measure, aggregation
from blendfusion.planner.ir.builders import (
    function,
    integer_literal,
    is_null_literal,
    limited,
    literal,
)
from blendfusion.planner.ir.joins import outputs
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    fields,
    has_window,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    substitute,
    walk,
    with_input,
)
from blendfusion.planner.ir.sorts import DESC, sorted_by
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.rules.any_of_group import OTHERS, Way, any_of_group, by_ways
from blendfusion.planner.rules.extreme_values import certain_first
from blendfusion.planner.rules.first_of_groups import Wanted, with_first
from blendfusion.planner.rules.first_rows import below_projections, over
from blendfusion.planner.rules.separate_aggregates import separated

_UP_TO = {"gt": 1, "gte": 0, "lt": 0, "lte": 1, "equal": 1, "not_equal": 1}
"""Comparisons of a count with a number, and what to add to the number: counts from there on have
the same result."""
_TURNED = {"gt": "lt", "lt": "gt", "gte": "lte", "lte": "gte"}
_MOST_LEVELS = 8
"""The most relations between a count and what reads it: expressions may grow with each."""
_ELSEWHERE = Node("column", b"")
"""In place of columns of other relations."""


def compared_counts(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or "aggregate" not in plan.kinds or not asks_anything(plan):
        return plan
    if plan.has_subqueries:
        plan = _in_subqueries(plan, plan.exprs)
    if plan.kind not in ("project", "aggregate"):
        return plan
    below = _below(plan.inputs[0], plan.exprs)
    return plan if below is plan.inputs[0] else plan.with_inputs(below)


def _in_subqueries(plan: Rel, read: Sequence[Expr]) -> Rel:
    """``plan`` with the counts limited that are the values of its subqueries; ``read``: the
    expressions over its input that read them."""
    found = dict.fromkeys(p for e in plan.exprs for p in walk(e) if isinstance(p, Node) and p.rels)
    new: dict[Expr, Expr] = {}
    for own in found:
        if len(own.rels) != 1 or own.children or own.rels[0].width != 1:
            continue

        def value(part: Expr, own: Node = own) -> Expr | None:
            return Field(0) if part == own else _ELSEWHERE if isinstance(part, Field) else None

        below = _below(own.rels[0], [substitute(e, value) for e in read])
        if below is not own.rels[0]:
            new[own] = replace(own, rels=(below,))
    if not new:
        return plan
    return replace(plan, exprs=tuple(substitute(e, new.get) for e in plan.exprs))


def _below(plan: Plan, read: Iterable[Expr], levels: int = _MOST_LEVELS) -> Plan:
    """``plan`` with its counts limited, of whose columns only the expressions ``read`` are read;
    itself if there are none."""
    if not isinstance(plan, Rel | Block) or "aggregate" not in plan.kinds:
        return plan
    read = [e for e in read if fields(e)]
    if not levels:
        return plan
    if not asks_anything(plan) or any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return plan
    if plan.kind == "aggregate":
        return _counted(plan, read)
    if isinstance(plan, Rel) and plan.kind in ("join", "cross"):
        return _joined(plan, read, levels - 1)
    if isinstance(plan, Block):
        read = [*plan.where, *(inline(e, plan.select) for e in read)]
    elif plan.kind == "project":
        read = [inline(e, plan.exprs) for e in read]
    elif plan.kind in ("filter", "sort"):
        read = [*read, *plan.exprs]
    elif plan.kind != "fetch":
        return plan
    new: Rel | Block = plan
    if isinstance(plan, Rel) and plan.has_subqueries:
        new = _in_subqueries(plan, read)
    below = _below(plan.inputs[0], read, levels - 1)
    return new if below is plan.inputs[0] else new.with_inputs(below)


def _joined(join: Rel, read: Sequence[Expr], levels: int) -> Plan:
    n_left = join.inputs[0].width
    new: Rel | Block = join
    for side in (0, 1):
        place = {i: column for i, (of, column) in enumerate(outputs(join)) if of == side}
        inside = {i + side * n_left: i for i in range(join.inputs[side].width)}
        own = [_moved(e, place) for e in read] + [_moved(e, inside) for e in join.exprs]
        below = _below(join.inputs[side], own, levels)
        if below is not join.inputs[side]:
            new = with_input(new, side, below)
    return new


def _moved(expr: Expr, place: dict[int, int]) -> Expr:
    def column(part: Expr) -> Expr | None:
        if not isinstance(part, Field):
            return None
        return Field(place[part.index]) if part.index in place else _ELSEWHERE

    return substitute(expr, column)


def _counted(plan: Plan, read: Sequence[Expr]) -> Plan:
    assert isinstance(plan, Rel)
    agg, rows = aggregation(plan), plan.inputs[0]
    n = agg.n_before_measures
    if len(agg.measures) > 1:
        return separated(plan, lambda own, places: _spared(own, n, places, read))
    if not agg.one_group_a_row or not agg.measures:
        return plan
    count = Field(n)
    enough = _enough(read, count)
    if enough is None or not _is_count(agg.measures[0]):
        return plan
    columns, block = below_projections(rows)
    if not isinstance(block, Block):
        plain = not agg.keys and _counts_rows(agg.measures[0])
        return plan.with_inputs(limited(rows, 0, enough)) if plain else plan
    if block.once or not may_move(block):
        return plan
    columns = tuple(inline(e, block.select) for e in columns)
    (measure,) = agg.measures
    own = replace(measure, exprs=tuple(inline(e, columns) for e in measure.exprs))
    if _counts_rows(own):
        return _of_block(plan, agg, block, enough)
    ways = _ways(own)
    keys = tuple(inline(key, columns) for key in agg.keys)
    twice = by_ways(block, replace(agg, keys=keys, measures=(own,)), ways) if ways else None
    if twice is None:
        return plan
    wanted = Wanted(twice.exprs[1:], twice.exprs[:1], (DESC,), enough)
    new = with_first(twice.inputs[0], wanted)
    return plan if new is None else twice.with_inputs(new)


def _spared(plan: Rel, n_keys: int, places: Sequence[int], read: Sequence[Expr]) -> Plan:
    """One of several aggregates; ``read`` is over all of them."""
    inside = {i: i for i in range(n_keys)} | {n_keys + p: n_keys + i for i, p in enumerate(places)}
    own = _counted(plan, [_moved(e, inside) for e in read]) if len(places) == 1 else plan
    return any_of_group(plan) if own is plan else own


def _of_block(plan: Rel, agg: Aggregation, block: Block, enough: int) -> Plan:
    rows = plan.inputs[0]
    if agg.keys:
        new = with_first(rows, Wanted(agg.keys, (), (), enough))
        return plan if new is None else plan.with_inputs(new)
    if not any(map(needs_model, block.where)):
        return plan
    first = certain_first(block)
    source = sorted_by(block.source, first) if first else block.source
    return plan.with_inputs(over(rows, block, replace(block, source=source, count=enough)))


def _is_count(measure: Measure) -> bool:
    function = RelMessage.FromString(measure.template).aggregate.measures[0].measure
    if function.invocation == AggregateFunction.AGGREGATION_INVOCATION_DISTINCT:
        return False
    return measure.name in ("count", "sum") and measure.n_args == 1 and not measure.n_sorts


def _counts_rows(measure: Measure) -> bool:
    (value,) = measure.args
    return measure.name == "count" and measure.filter is None and _has_value(value)


def _has_value(expr: Expr) -> bool:
    return literal_like(expr) and literal(expr) is not None


def _ways(measure: Measure) -> list[Way]:
    """The rows that count, and the others; none if it is another sum."""
    (value,), one = measure.args, integer_literal(1)
    terms: list[Expr] = [] if measure.filter is None else [measure.filter]
    branches = value.children if isinstance(value, Node) and value.name == "if_then" else ()
    if measure.name == "sum":
        numbers = [literal(result) for result in branches[1:]]
        if terms or numbers != [1, 0]:
            return []
        return [Way(one, branches[0]), Way(branches[2], None)]
    if len(branches) == 2 and _has_value(branches[1]):
        terms.append(branches[0])
    elif not _has_value(value):
        terms.append(function("is_not_null", (value,)))
    return [Way(one, terms[0] if len(terms) == 1 else function("and", tuple(terms))), OTHERS]


def _enough(read: Iterable[Expr], count: Field) -> int | None:
    """The number from which on all counts are the same to the expressions ``read``; None if one of
    them reads the count itself."""
    most = 1
    for expr in read:
        own = _compared_up_to(expr, count)
        if own is None:
            return None
        most = max(most, own)
    return most


def _compared_up_to(expr: Expr, count: Field) -> int | None:
    if expr == count:
        return None
    if isinstance(expr, Node) and expr.children:
        left, *others = expr.children
        name, right = expr.name, others[0] if len(others) == 1 else None
        if right is not None and type(literal(left)) is int:
            left, right, name, others = right, left, _TURNED.get(name, name), [left]
        numbers = [number for o in others if type(number := literal(o)) is int]
        if others and len(numbers) == len(others) and _is_of_count(left, count):
            if name in _UP_TO:
                return numbers[0] + _UP_TO[name]
            if name == "singular_or_list":
                return max(numbers) + 1
    return _enough(expr.children, count)


def _is_of_count(expr: Expr, count: Field) -> bool:
    """Whether an expression is the count, or a number where there is none: in a left join."""
    if expr == count:
        return True
    if not isinstance(expr, Node) or expr.name not in ("if_then", "coalesce"):
        return False
    results = expr.children
    if expr.name == "if_then":
        n = len(expr.children) // 2 * 2
        results = (*expr.children[1:n:2], *expr.children[n:])
        if any(count in walk(condition) for condition in expr.children[0:n:2]):
            return False
    return all(r == count or type(literal(r)) is int or is_null_literal(r) for r in results)
