"""Asks a model's predicate behind a join on answers, if the join drops more rows per cost.

before: ``(block select l.*, llm(l.x) AS c where llm(l.y)) join d on c = d.c``
after:  ``block where llm(l.y)`` over ``(block select l.*, llm(l.x) AS c) join d on c = d.c``
safe:   an inner or semi join passes on the rows of that side, each none or several times: a row on
        which the predicate is not true is dropped before or after it.
cost:   a predicate comes before such a join as a rule. The share of the rows dropped per cost
        decides (Hellerstein and Stonebraker 1993): a join on stored answers is free, and models
        have prices. A join with all rows of a table is assumed to drop few rows, one with filtered
        rows, or a semi join, half of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from blendfusion.planner.ir.builders import is_in_rows
from blendfusion.planner.ir.joins import DROPS, columns_within, join_type, outputs, with_wider_input
from blendfusion.planner.ir.lineage import answer_columns
from blendfusion.planner.ir.necessary import is_null_test
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    asks,
    asks_model,
    conjuncts,
    fields,
    inline,
    is_volatile_block,
    needs_model,
)

Expected: TypeAlias = Callable[[Sequence[Expr], Plan], tuple[float, float]]
"""The share of rows that predicates over a plan pass together, and the cost of a row."""

_HALF = 0.5
_KEPT_BY_TABLES = 0.9
_MARGIN = 1.5
"""How much more a join must drop per cost."""


def alike(terms: Sequence[Expr], over: Plan) -> tuple[float, float]:
    """Half of the rows pass each predicate, and all calls cost the same."""
    calls = {ask for term in terms for ask in asks(term) if asks_model(ask)}
    return float(_HALF ** len(terms)), float(len(calls))


def costly_predicates_last(plan: Plan, expected: Expected = alike) -> Plan:
    if not isinstance(plan, Rel) or plan.kind != "join":
        return plan
    kind = join_type(plan)
    for side in (0, 1):
        block = plan.inputs[side]
        if kind not in DROPS[side] or not isinstance(block, Block):
            continue
        if block.where and not block.has_limit and not is_volatile_block(block):
            late = _late(plan, side, block, expected)
            if late:
                return _with_late(plan, side, block, late)
    return plan


def _late(join: Rel, side: int, block: Block, expected: Expected) -> tuple[Expr, ...]:
    """The predicates of a block below a join that had better come after it."""
    start = join.inputs[0].width if side else 0
    read = {i - start for e in join.exprs for i in fields(e)} & answer_columns(block)
    keys = [block.select[i] for i in sorted(read) if needs_model(block.select[i])]
    decided = {ask for term in block.where if is_in_rows(term) for ask in asks(term)}
    if not keys or decided.issuperset(ask for key in keys for ask in asks(key)):
        return ()
    whole = join_type(join) == "inner" and not _drops_rows(join.inputs[1 - side])
    dropped = 1 - (_KEPT_BY_TABLES if whole else _HALF)
    _, cost = expected(keys, block.source)
    known = {ask for key in keys for ask in asks(key)}
    late = []
    for term in block.where:
        passed, own = expected([term], block.source)
        if known.isdisjoint(asks(term)) and dropped * own > _MARGIN * (1 - passed) * cost:
            late.append(term)
    return tuple(late)


def _with_late(join: Rel, side: int, block: Block, late: tuple[Expr, ...]) -> Plan:
    """The join over ``block`` without the predicates ``late``, which stand above it."""
    needed = sorted(set().union(*map(fields, late)))
    select = (*block.select, *map(Field, needed))
    early = tuple(t for t in block.where if t not in late)
    wider = replace(block, where=early, select=select)
    new = with_wider_input(join, side, wider)
    columns = outputs(new)
    above = {n: Field(columns.index((side, block.width + i))) for i, n in enumerate(needed)}
    where = tuple(inline(t, above) for t in late)
    return Block(new, where, columns_within(new, join))


def _drops_rows(plan: Plan) -> bool:
    """Whether the rows of a side of a join seem to be some of a table's."""
    if isinstance(plan, Block):
        return plan.has_limit or bool(plan.where) or _drops_rows(plan.source)
    if not isinstance(plan, Rel):
        return False
    if plan.kind == "filter" and not all(map(is_null_test, conjuncts(plan.exprs[0]))):
        return True
    semi = plan.kind == "join" and join_type(plan) not in ("inner", "left", "outer")
    return plan.kind == "fetch" or semi or any(map(_drops_rows, plan.inputs))
