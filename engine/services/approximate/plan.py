"""Puts samples of groups into a staged plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from blendfusion.planner.ir.aggregates import is_of_distinct
from blendfusion.planner.ir.nodes import (
    Block,
    Measure,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    has_window,
    is_volatile,
    through_projection,
)
from blendfusion.planner.ir.nodes import over as in_place_of
from blendfusion.planner.ir.traversal import subplans, transform
from blendfusion.planner.needs.groups import aggregate_with_need
from blendfusion.planner.stages.split import Stage, StagedPlan
from blendfusion.services.approximate.estimates import EstimatedGroups
from blendfusion.services.approximate.sample import SampledStage, dependent_columns
from blendfusion.services.approximate.within import Within

_ESTIMATED = ("count", "sum", "avg")


def sampled_plan(plan: StagedPlan, within: Within) -> StagedPlan:
    """``plan`` with samples below its counts, sums and averages over answers; the same plan where
    there are none that a sample can give."""
    for stage in plan.stages:
        for groups in subplans(stage.block.source):
            if isinstance(groups, Rel) and groups.kind == "aggregate":
                plan = _with_sample(plan, stage.number, groups, within) or plan
    return plan


def _with_sample(plan: StagedPlan, reader: int, groups: Rel, within: Within) -> StagedPlan | None:
    """``plan`` with a sample below one aggregate of the source of a stage; None if there is none
    that its stages allow."""
    blocks = {stage.number: stage.block for stage in plan.stages}
    rows, source = through_projection(groups.inputs[0])[1], blocks[reader].source
    if not isinstance(rows, StoredRows) or rows.stage not in blocks:
        return None
    if _readers(plan)[rows.stage] != 1 or not any(p is groups for p in subplans(source)):
        return None
    asking = replace(blocks[rows.stage], until=None)
    whole = groups.with_inputs(in_place_of(groups.inputs[0], rows, asking))
    found = aggregate_with_need(whole, _above(source, groups))
    if found is None:
        return None
    new, sampled, need = found
    dependent = dependent_columns(need, sampled)
    if not dependent or not all(_has_bounds(need.measures[i]) for i in dependent):
        return None
    sample, number = SampledStage(within, need), max(blocks) + 1
    estimated = Block(
        new.with_inputs(StoredRows(rows.stage, sampled.width)), (), all_fields(new.width)
    )
    stored = StoredRows(number, new.width)
    read = transform(source, lambda p: stored if p is groups else p, ("aggregate",))
    stages: list[Stage] = []
    for stage in plan.stages:
        if stage.number == reader:
            own = Stage(reader, stage.block.with_inputs(read))
            stages += [Stage(number, estimated), own]
        else:
            stages.append(Stage(rows.stage, sampled) if stage.number == rows.stage else stage)
    operators: dict[int, Callable[..., Any]] = {rows.stage: sample, number: EstimatedGroups(sample)}
    return replace(plan, stages=tuple(stages), operators={**plan.operators, **operators})


def _readers(plan: StagedPlan) -> Counter[int]:
    """How often the rows of each stage are read."""
    every = (p for stage in plan.stages for p in subplans(stage.block))
    return Counter(p.stage for p in every if isinstance(p, StoredRows))


def _above(plan: Plan, groups: Rel) -> list[Rel]:
    """The relations above ``groups`` that read each of its rows by itself, from below; none if
    there are others among them."""
    found: list[Rel] = []
    while plan is not groups:
        if not isinstance(plan, Rel) or plan.kind not in ("project", "filter", "sort", "fetch"):
            return []
        if plan.has_subqueries or any(has_window(e) or is_volatile(e) for e in plan.exprs):
            return []
        found.append(plan)
        plan = plan.inputs[0]
    return found[::-1]


def _has_bounds(measure: Measure) -> bool:
    """Whether a sample of rows says something about an aggregate."""
    if measure.name not in _ESTIMATED or measure.n_sorts or measure.n_args != 1:
        return False
    return not is_of_distinct(measure)
