"""Reads the largest or smallest value of rows that a model chooses from the first of them in order.

before: ``aggregate max(n)`` over ``block(t) where llm(x)``
after:  the same over ``limit 1`` over ``sort by n descending`` over the block, ``n`` not NULL; of
        equal ``n``, rows that pass whatever the answers are come first
safe:   the first row that passes has the largest value, and the aggregate of no row is NULL. A
        limit ends the questions; the rows behind it are not asked about.

before: ``aggregate max(CASE WHEN llm(x) THEN 1 ELSE 0 END)`` over ``block(t)``
after:  ``aggregate max(v)`` over ``block where v = 0 OR llm(x)`` over ``t`` with each of the rows 1
        and 0 as ``v``; to which the rule above applies
safe:   the largest value is that of the condition if it is true on any row. Where it is on none,
        every row has the other value.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import (
    cast_to_text,
    filtered,
    function,
    limited,
    literal,
    ordered,
    rows_of,
)
from blendfusion.planner.ir.joins import joined
from blendfusion.planner.ir.necessary import ALWAYS, NEVER, any_of, necessary, to_fail
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


def extreme_values(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "aggregate":
        return plan
    block, agg = plan.inputs[0], aggregation(plan)
    if agg.n_before_measures or len(agg.measures) != 1 or not isinstance(block, Block):
        return plan
    measure = agg.measures[0]
    if measure.name not in ("max", "min") or measure.n_sorts or measure.filter is not None:
        return plan
    value = inline(measure.args[0], block.select)
    if is_volatile(value) or literal_like(value) or not may_move(block):
        return plan
    if needs_model(value):
        by_value = _by_value(value, block, measure.name)
        return plan if by_value is None else replace(plan, inputs=(by_value,), exprs=(Field(0),))
    if not any(map(needs_model, block.where)):
        return plan
    present = function("is_not_null", (value,))
    select = (value, *among_equal(block))
    chosen = replace(block, where=(*block.where, present), select=select)
    first = limited(
        ordered(chosen, *all_fields(chosen.width), descending=measure.name == "max"), 0, 1
    )
    return replace(plan, inputs=(first,), exprs=(Field(0),))


def among_equal(block: Block) -> tuple[Expr, ...]:
    """The order in which a block is asked about rows that are equal in a query's order: first those
    that pass whatever the answers are, then by values, so that a second run asks nothing."""
    texts = dict.fromkeys(arg for e in block.where for ask in asks(e) for arg in ask.args)
    others: tuple[Expr, ...] = tuple(t for t in texts if isinstance(cast_to_text(t) or t, Field))
    fails = any_of([to_fail(term) for term in block.where])
    return others if fails in (ALWAYS, NEVER) else (function("is_true", (fails,)), *others)


def _by_value(value: Expr, block: Block, aggregate: str) -> Block | None:
    """The rows of a block once for each result of ``CASE WHEN condition THEN … ELSE … END``, those
    of the wanted result only where the condition decides for it; None for any other value."""
    if not isinstance(value, Node) or value.name != "if_then" or len(value.children) not in (2, 3):
        return None
    condition, *rest = value.children
    results = [result for result in rest if isinstance(result, Node)]
    numbers = [literal(result) for result in rest]
    if any(type(number) is not int for number in numbers):
        return None
    decided = [condition, function("is_not_true", (condition,))][: len(results)]
    wanted = numbers.index((max if aggregate == "max" else min)(numbers))  # type: ignore[type-var]
    own = Field(block.source.width)
    is_other = function("not_equal", (own, results[wanted]))
    term = decided[wanted] if len(results) == 1 else function("or", (is_other, decided[wanted]))
    possible = tuple(c for c in conjuncts(necessary(term)) if c != ALWAYS)
    source = filtered(joined(block.source, rows_of(results), ()), possible)
    return Block(source, (*block.where, term), (own,))
