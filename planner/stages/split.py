"""Cuts a rewritten plan into stages: DataFusion plans linked by pipelines, in execution order.

Every block becomes a stage: a DataFusion plan as its source, and the row-wise work above it. No
plan waits inside another: a stage reads another's stored output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from blendfusion.planner.ir.builders import project
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    Root,
    StoredRows,
    all_fields,
    substitute,
    through_projection,
)
from blendfusion.planner.ir.traversal import subplans, transform
from blendfusion.planner.stages.join_condition_bug import readable
from blendfusion.planner.stages.monotonicity import asks_for_a_row, stages_to_end
from blendfusion.planner.stages.offset_bug import may_lose_rows
from blendfusion.planner.stages.right_join_bug import as_left_join
from blendfusion.planner.stages.sort_key_bug import apart


@dataclass(frozen=True, slots=True)
class Stage:
    """A block whose source is a DataFusion plan over tables and stored stages."""

    number: int
    block: Block


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """Stages in order; the output of the last one is the query's, under ``names``."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]
    whole: frozenset[int] = frozenset()
    """Stages of which readers outside of the plan need all rows."""
    operators: Mapping[int, Callable[..., Any]] = field(default_factory=dict)
    """Stages that a service runs: functions like ``rows_of_decided_groups``, with a text for
    EXPLAIN."""

    @property
    def last(self) -> Stage:
        return self.stages[-1]


def _with_domain(store: Callable[[Plan], StoredRows], expr: Expr) -> Expr | None:
    """A call with candidates, or a value among rows. The candidates or rows are a stage that runs
    before it."""
    inner = partial(_with_domain, store)
    if isinstance(expr, Node) and expr.rels:
        children = tuple(substitute(c, inner) for c in expr.children)
        return replace(expr, children=children, rels=tuple(map(store, expr.rels)))
    if not isinstance(expr, Ask) or expr.domain is None:
        return None
    args = tuple(substitute(a, inner) for a in expr.args)
    return Ask(expr.call, args, store(expr.domain))


def cut_stages(root: Root) -> StagedPlan:
    """Cut a rewritten plan into stages. Equal blocks are one stage, run once."""
    numbers: dict[Block, int] = {}

    def store(plan: Plan) -> StoredRows:
        if isinstance(plan, StoredRows):
            return plan
        block = Block(plan, (), all_fields(plan.width))
        return StoredRows(numbers.setdefault(block, len(numbers)), plan.width)

    def cut(plan: Plan) -> Plan:
        if not isinstance(plan, Block):
            return apart(as_left_join(readable(plan)))
        block = plan
        if plan.has_subqueries:
            with_domain = partial(_with_domain, store)
            where = tuple(substitute(e, with_domain) for e in plan.where)
            select = tuple(substitute(e, with_domain) for e in plan.select)
            block = replace(plan, where=where, select=select)
        return keep(block.with_inputs(below_top(plan.source)))

    def keep(block: Block) -> Plan:
        number = numbers.setdefault(block, len(numbers))
        if block.width == 0:  # stored with one column, since its rows would be lost otherwise
            return project(StoredRows(number, 1), ())
        return StoredRows(number, block.width)

    def limits(source: Plan) -> Plan:
        """Limits that may end stages become sources of stages of their own, because only the needs
        of a whole stage are known. The same applies to limits that DataFusion would misplan below
        others."""
        if "fetch" not in source.kinds:
            return source
        rows = {id(p.inputs[1]) for p in subplans(source) if asks_for_a_row(p)}

        def limit(plan: Plan) -> Plan:
            alone = id(plan) not in rows and (stages_to_end(plan) or may_lose_rows(plan))
            return keep(Block(plan, (), all_fields(plan.width))) if alone else plan

        return transform(source, limit, ("fetch",))

    def below_top(plan: Plan) -> Plan:
        """A source with such limits cut off, except at its top."""
        columns, top = through_projection(plan)
        if not isinstance(top, Rel) or top.kind != "fetch":
            return limits(plan)
        below = limits(top.inputs[0])
        return plan if below is top.inputs[0] else project(top.with_inputs(below), columns)

    plan = below_top(transform(root.plan, cut, (Block.kind, "join", "sort")))
    if not isinstance(
        plan, StoredRows
    ):  # DataFusion runs the last plan, so it is the source of the last stage
        numbers[Block(plan, (), all_fields(plan.width))] = len(numbers)
    stages = [Stage(number, block) for block, number in numbers.items()]
    return StagedPlan(tuple(stages), root.names)
