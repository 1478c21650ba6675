"""Asks about the rows of each group until one decides a value that has a condition of its own.

before: ``aggregate bool_or(llm(x)) by k`` over ``block(t)``; also of bool_and, of max and min of
        ``CASE WHEN llm(x) THEN 1 ELSE 0 END``
after:  ``aggregate bool_or(v) by k`` over ``block where v AND llm(x) OR NOT v AND llm(x) IS FALSE
        OR v IS NULL`` over ``t`` with each of the rows TRUE, FALSE and NULL as ``v``; of which
        ``first_of_groups`` asks about the rows with TRUE first
safe:   a group has the value TRUE if a row has it, else FALSE if a row has that. The group itself
        is there by its rows with NULL; where a CASE has an ELSE, by those with that value.

before: ``aggregate max(d) FILTER (WHERE llm(x)) by k`` over ``block(t)``; also of min, of
        ``CASE WHEN llm(x) THEN d END``, and of ``first_value(d ORDER BY e)`` and ``last_value``
after:  ``aggregate max(v) by k`` over ``block where n = 1 OR llm(x)`` over ``t`` with each of the
        numbers 0 and 1 as ``n``, where ``v`` is ``d`` with 0 and NULL with 1, which comes last
safe:   of the rows that meet the condition, the first one in the order of ``d`` decides; where
        there is none, the value is NULL, as that of the rows with 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from blendfusion.planner.ir.aggregates import (
    Aggregation,
    Measure,
    aggregated,
    aggregation,
    sorted_first_by,
    unfiltered,
)
from blendfusion.planner.ir.builders import (
    boolean_literal,
    case,
    filtered,
    function,
    integer_literal,
    literal,
    rows_of,
)
from blendfusion.planner.ir.joins import joined
from blendfusion.planner.ir.necessary import ALWAYS, necessary, never_fails
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    asks,
    conjuncts,
    inline,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.rules.answers_with_partners import is_kept
from blendfusion.planner.rules.one_of_equal_rows import OF_EACH_ONCE

_OF_FIRST = ("first_value", "last_value")
_OF_BOOLEANS = ("bool_or", "bool_and")


class Way(NamedTuple):
    """A value of the aggregate, and the condition under which a row has it; None: every row may."""

    value: Expr | None
    condition: Expr | None


OTHERS = Way(None, None)
"""A group is there by any row; its value is NULL then."""


def any_of_group(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block, agg = plan.inputs[0], aggregation(plan)
    if len(agg.measures) != 1 or not agg.one_group_a_row or not isinstance(block, Block):
        return plan
    (measure,) = agg.measures
    if measure.n_args != 1 or measure.name not in (_OF_FIRST if measure.n_sorts else OF_EACH_ONCE):
        return plan
    keys, exprs = (
        tuple(inline(e, block.select) for e in part) for part in (agg.keys, measure.exprs)
    )
    if not any(map(asks, exprs)) and not any(map(needs_model, block.where)):
        return plan
    measure = replace(measure, exprs=exprs)
    ways = _ways(measure)
    new = by_ways(block, replace(agg, keys=keys, measures=(measure,)), ways) if ways else None
    return plan if new is None else new


def _ways(measure: Measure) -> list[Way]:
    """The values that a row may have, in the order in which one of them decides its group; none if
    that order spares no answer."""
    (value,), condition = measure.args, measure.filter
    if condition is not None:
        return _gated(condition, replace(measure, exprs=measure.exprs[:-1]))
    if not needs_model(value) or measure.n_sorts:
        return []
    if measure.name in _OF_BOOLEANS:
        decisive = measure.name == "bool_or"
        tests = [Way(boolean_literal(True), value)]
        tests.append(Way(boolean_literal(False), function("is_false", (value,))))
        return [*(tests if decisive else tests[::-1]), OTHERS]
    if measure.name not in ("max", "min") or not isinstance(value, Node) or value.name != "if_then":
        return []
    when, *results = value.children
    if len(results) == 1:
        if not needs_model(results[0]) and not never_fails(results[0]):
            return []  # it is read in order, also on rows that do not meet the condition
        return _gated(when, replace(measure, exprs=(results[0],)))
    numbers = [literal(result) for result in results]
    if len(results) != 2 or any(type(number) is not int for number in numbers):
        return []
    found = [Way(results[0], when), Way(results[1], function("is_not_true", (when,)))]
    best = numbers.index((max if measure.name == "max" else min)(numbers))  # type: ignore[type-var]
    return [found[best], found[1 - best]._replace(condition=None)]


def _gated(condition: Expr, measure: Measure) -> list[Way]:
    """The ways of ``measure``, which has no FILTER, over the rows that meet a condition."""
    (value,) = measure.args
    found = _ways(measure) if needs_model(value) else [Way(value, None)]
    if not found:
        return []
    ways = (way for way in found if way.value is not None)
    return [*(way._replace(condition=_both(condition, way.condition)) for way in ways), OTHERS]


def _both(one: Expr, other: Expr | None) -> Expr:
    return one if other is None else function("and", (one, other))


def by_ways(block: Block, agg: Aggregation, ways: Sequence[Way]) -> Rel | None:
    """The aggregate ``agg`` of one measure over the source of the block, of which each row has the
    values of ``ways``, each where it meets the condition. None if its keys or its order ask, or if
    its rows or answers may be others when they are read again."""
    (measure,) = agg.measures
    keys, sorts = agg.keys, measure.exprs[: measure.n_sorts]
    if block.once or not may_move(block) or any(map(is_volatile, (*measure.exprs, *keys))):
        return None
    if any(map(needs_model, (*keys, *sorts))) or any(map(literal_like, keys)):
        return None
    if any(ask.domain is not None or not is_kept(ask) for e in measure.exprs for ask in asks(e)):
        return None
    own = Field(block.source.width)
    numbers = [integer_literal(i) for i in range(len(ways))]
    terms: list[Expr] = []
    branches: list[tuple[Expr, Expr]] = []
    for number, way in zip(numbers, ways, strict=True):
        chosen: Expr = function("equal", (own, number))
        if way.value is not None:
            branches.append((chosen, way.value))
        terms.append(chosen if way.condition is None else function("and", (chosen, way.condition)))
    term = function("or", tuple(terms))
    possible = tuple(c for c in conjuncts(necessary(term)) if c != ALWAYS)
    source = filtered(joined(block.source, rows_of(numbers), ()), possible)
    where = (*block.where, term)
    n = len(keys)
    first = (own, *sorts) if sorts else ()
    select = (*keys, case(branches, None), *first)
    value, *by = all_fields(len(select))[n:]
    over = replace(unfiltered(measure), exprs=(*by[1:], value))
    if by:
        over = sorted_first_by(over, by[0], descending=measure.name == "last_value")
    groups = replace(agg, keys=all_fields(n), measures=(over,))
    return aggregated(Block(source, where, select), groups)
