"""Asks about the rows of each group until one decides whether any row, or every row, is so.

before: ``aggregate bool_or(llm(x)) by k`` over ``block(t)``; also of bool_and, and of max and min
        of ``CASE WHEN llm(x) THEN 1 ELSE 0 END``
after:  ``aggregate bool_or(v) by k`` over ``block where v AND llm(x) OR NOT v AND llm(x) IS FALSE
        OR v IS NULL`` over ``t`` with each of the rows TRUE, FALSE and NULL as ``v``; of which
        ``first_of_groups`` asks about the rows with TRUE first
safe:   a group has the value TRUE if a row has it, else FALSE if a row has that. The group itself
        is there by its rows with NULL; where a CASE has an ELSE, by those with that value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from blendfusion.planner.ir.aggregates import Aggregation, Measure, aggregated, aggregation
from blendfusion.planner.ir.builders import (
    boolean_literal,
    case,
    function,
    integer_literal,
    literal,
    rows_of,
)
from blendfusion.planner.ir.joins import joined
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    asks,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.rules.answers_with_partners import is_kept

_OF_BOOLEANS = ("bool_or", "bool_and")


class _Way(NamedTuple):
    """A value of the aggregate, and the condition under which a row has it; None: every row may."""

    value: Expr | None
    condition: Expr | None


def any_of_group(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block, agg = plan.inputs[0], aggregation(plan)
    if not agg.has_one_grouping or len(agg.measures) != 1 or not isinstance(block, Block):
        return plan
    (measure,) = agg.measures
    if measure.n_sorts or measure.filter is not None or len(measure.args) != 1:
        return plan
    value = inline(measure.args[0], block.select)
    keys = tuple(inline(key, block.select) for key in agg.keys)
    if block.once or not may_move(block) or any(map(is_volatile, (value, *keys))):
        return plan
    if any(needs_model(key) or literal_like(key) for key in keys):
        return plan
    ways = _ways(measure, value)
    if not ways or any(ask.domain is not None or not is_kept(ask) for ask in asks(value)):
        return plan
    return _by_ways(block, agg, keys, ways)


def _ways(measure: Measure, value: Expr) -> list[_Way]:
    """The values that a row may have, in the order in which one of them decides its group."""
    if not needs_model(value):
        return []
    if measure.name in _OF_BOOLEANS:
        decisive = measure.name == "bool_or"
        tests = [_Way(boolean_literal(True), value)]
        tests.append(_Way(boolean_literal(False), function("is_false", (value,))))
        return [*(tests if decisive else tests[::-1]), _Way(None, None)]
    if measure.name not in ("max", "min") or not isinstance(value, Node):
        return []
    if value.name != "if_then" or len(value.children) not in (2, 3):
        return []
    condition, *results = value.children
    numbers = [literal(result) for result in results]
    if any(type(number) is not int for number in numbers):
        return []
    found = [_Way(results[0], condition)]
    if len(results) == 1:
        return [*found, _Way(None, None)]
    found.append(_Way(results[1], function("is_not_true", (condition,))))
    best = numbers.index((max if measure.name == "max" else min)(numbers))  # type: ignore[type-var]
    return [found[best], found[1 - best]._replace(condition=None)]


def _by_ways(block: Block, agg: Aggregation, keys: tuple[Expr, ...], ways: Sequence[_Way]) -> Plan:
    own = Field(block.source.width)
    numbers = [integer_literal(i) for i in range(len(ways))]
    terms: list[Expr] = []
    branches: list[tuple[Expr, Expr]] = []
    for number, way in zip(numbers, ways, strict=True):
        chosen: Expr = function("equal", (own, number))
        if way.value is not None:
            branches.append((chosen, way.value))
        terms.append(chosen if way.condition is None else function("and", (chosen, way.condition)))
    source = joined(block.source, rows_of(numbers), ())
    where = (*block.where, function("or", tuple(terms)))
    select = (*keys, case(branches, None))
    (measure,) = agg.measures
    over = replace(measure, exprs=(Field(len(keys)),))
    fields = tuple(Field(i) for i in range(len(keys)))
    return aggregated(Block(source, where, select), replace(agg, keys=fields, measures=(over,)))
