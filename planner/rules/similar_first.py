"""Tries the rows most similar to a question first, if any rows that pass will do.

before: ``block where llm_filter('q', x) limit k`` over ``source``
after:  the same over ``sort by llm_similarity(x, 'q') descending`` over ``source``
safe:   without ORDER BY a query may give any k rows that pass. Each is verified as before; only
        which of them come first is another. ``pays`` says for which texts: as a rule for those
        whose vectors an index of the session holds, since all rows are read, and vectors needed of
        all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from blendfusion.planner.ir.builders import order_rows, project, text_literal
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Plan,
    all_fields,
    asks_model,
    is_volatile,
)
from blendfusion.planner.ir.traversal import has_order
from blendfusion.udfs.declare.arguments import Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.functions.llm_similarity import LLM_SIMILARITY

Pays: TypeAlias = Callable[[Expr, Plan], bool]
"""Whether it pays to compute the vectors of an expression, over a plan, for all rows."""


def never(text: Expr, over: Plan) -> bool:
    return False


def always(text: Expr, over: Plan) -> bool:
    return True


def similar_first(plan: Plan, pays: Pays = never) -> Plan:
    if not isinstance(plan, Block) or plan.count is None or has_order(plan.source):
        return plan
    question = next((e for e in plan.where if _is_question(e)), None)
    if question is None:
        return plan
    assert isinstance(question, Ask)
    if not pays(question.args[0], plan.source):
        return plan
    call = bind(LLM_SIMILARITY, [Value(), Value()], {})
    nearness = Ask(call, (question.args[0], text_literal(question.call.task.question)))
    width = plan.source.width
    near = Block(plan.source, (), (*all_fields(width), nearness))
    return replace(plan, source=project(order_rows(near, Field(width)), all_fields(width)))


def _is_question(expr: Expr) -> bool:
    """Whether an expression is a yes/no question about one text."""
    return (
        isinstance(expr, Ask)
        and asks_model(expr)
        and expr.call.task.constraint.kind == "boolean"
        and not expr.call.aggregate
        and len(expr.args) == 1
        and expr.domain is None
        and not is_volatile(expr.args[0])
    )
