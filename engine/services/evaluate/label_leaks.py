"""Refuses evaluations in which a model sees the labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from blendfusion.errors import QueryError
from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import table_names
from blendfusion.planner.ir.joins import outputs
from blendfusion.planner.ir.lineage import read_names
from blendfusion.planner.ir.nodes import Ask, Block, Expr, Field, Plan, StoredRows, walk
from blendfusion.planner.ir.traversal import expressions, subplans
from blendfusion.run.reports.trace import Trace
from blendfusion.services.evaluate.compare_answers import comparable
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.language.opaque.prepared_frame import PreparedFrame
    from blendfusion.run.hooks import BaseFrame, BaseSession

Origins: TypeAlias = frozenset[tuple[str, str]]
"""Table columns, by the names of the table and of the column."""

_HINT = "Leave the label out of the call's arguments."


def check_label_unseen(frame: BaseFrame, label: str) -> None:
    """Raise QueryError if a call of ``frame`` reads what its column ``label`` is made of."""
    prepared = frame.prepared
    if prepared.staged is None:
        named = {label.casefold()}
        readers = [c for c in prepared.calls if {n.casefold() for n in c.task.columns} & named]
    else:
        readers = _readers(prepared, frame.schema().names.index(label))
    if readers:
        raise QueryError(f"{readers[0].text} reads the label '{label}'", hint=_HINT)


def check_examples_apart(session: BaseSession, trace: Trace) -> None:
    """Raise QueryError if a row that a call was asked about is among its examples, whose answers
    are labels; also if it is a row of the subquery from which they are picked."""
    for task, values, _ in trace.batches:
        shown = {_spell(example.values) for example in task.examples}
        if task.examples_query is not None:
            frames = session.calls.subqueries(session.engine, task)
            table = frames["examples", task].to_arrow_table()
            rows = zip(*(column.to_pylist() for column in table.columns[:-1]), strict=True)
            shown |= set(map(_spell, rows))
        both = sum(_spell(row) in shown for row in values)
        if both:
            raise QueryError(
                f"{both:,} rows of the evaluation are among the examples of {task.ingredient}",
                hint="Take examples from other rows than those that are evaluated.",
            )


def _spell(values: Iterable[object]) -> tuple[str, ...]:
    """Values as they are compared: an example in other letters or blanks gives the label away,
    too."""
    return tuple(map(comparable, values))


def _readers(prepared: PreparedFrame, column: int) -> list[Call]:
    """The calls with an argument from a table column that the result's ``column`` is made of."""
    assert prepared.staged is not None
    plans: dict[int, Plan] = {s.number: s.block for s in prepared.staged.stages}
    label = _origins(prepared.staged.last.block, column, plans)
    found = []
    for block in plans.values():
        for plan in subplans(block):
            below = partial(_input_origins, plan, plans=plans)
            for expr in expressions(plan):
                for part in walk(expr):
                    if isinstance(part, Ask):
                        seen = (o for arg in part.args for o in _of_expr(arg, below, plans))
                        found += [part.call] if label & frozenset(seen) else []
    return found


def _origins(plan: Plan, column: int, plans: dict[int, Plan]) -> Origins:
    """The table columns that a column of ``plan`` is made of, answers to calls left out."""
    if isinstance(plan, StoredRows):
        return _origins(plans[plan.stage], column, plans)
    below = partial(_input_origins, plan, plans=plans)
    if isinstance(plan, Block):
        return _of_expr(plan.select[column], below, plans, answers=False)
    if plan.kind == "read":
        names = read_names(plan)
        table = ".".join(table_names(plan))
        return frozenset({(table, names[column])}) if column < len(names) else frozenset()
    if plan.kind == "project":
        return _of_expr(plan.exprs[column], below, plans, answers=False)
    if plan.kind in ("filter", "sort", "fetch"):
        return _origins(plan.inputs[0], column, plans)
    if plan.kind in ("join", "cross"):
        side, place = outputs(plan)[column]
        if side < 2:
            return _origins(plan.inputs[side], place, plans)
    if plan.kind == "aggregate":
        split = aggregation(plan)
        if column < len(split.keys):
            return _of_expr(split.keys[column], below, plans, answers=False)
        if column >= split.n_before_measures:
            exprs = split.measures[column - split.n_before_measures].exprs
            return _union(_of_expr(e, below, plans, answers=False) for e in exprs)
    every = ((p, i) for p in plan.inputs for i in range(p.width))
    return _union(_origins(p, i, plans) for p, i in every)


def _input_origins(plan: Plan, index: int, plans: dict[int, Plan]) -> Origins:
    """The table columns of the column ``index`` of a relation's inputs."""
    for below in plan.inputs:
        if index < below.width:
            return _origins(below, index, plans)
        index -= below.width
    return frozenset()


def _of_expr(
    expr: Expr, below: Callable[[int], Origins], plans: dict[int, Plan], *, answers: bool = True
) -> Origins:
    """The table columns that an expression reads; without ``answers``, not those that only its
    calls read."""
    if isinstance(expr, Field):
        return below(expr.index)
    if isinstance(expr, Ask):
        return _union(_of_expr(a, below, plans) for a in expr.args) if answers else frozenset()
    inner = (_of_expr(e, below, plans, answers=answers) for e in expr.children)
    inside = (_origins(p, i, plans) for p in expr.rels for i in range(p.width))
    return _union((*inner, *inside))


def _union(parts: Iterable[Origins]) -> Origins:
    return frozenset().union(*parts)
