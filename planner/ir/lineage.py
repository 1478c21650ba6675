"""Traces a column of a plan to the table column that it copies."""

from __future__ import annotations

from typing import NamedTuple

from substrait.proto import Rel as RelMessage
from substrait.proto import Type as TypeMessage

from blendfusion.planner.ir.builders import cast_to_text, table_names
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.nodes import Block, Expr, Field, Plan, Rel
from blendfusion.planner.ir.opaque_names import TABLES, leaf_text


class Column(NamedTuple):
    """The names of a table and of a column in it."""

    table: str
    column: str


def column_of(expr: Expr, plan: Plan) -> Column | None:
    """The table column that ``expr`` copies on every row of ``plan``, perhaps cast to text; None if
    there is none, or if the value may be NULL instead."""
    while True:
        expr = cast_to_text(expr) or expr
        if not isinstance(expr, Field):
            return None
        if isinstance(plan, Block):
            expr, plan = plan.select[expr.index], plan.source
        elif not isinstance(plan, Rel):
            return None
        elif plan.kind == "read":
            names = table_names(plan)
            table = leaf_text(names, TABLES) or ".".join(names)
            return Column(table, read_names(plan)[expr.index]) if table else None
        elif plan.kind == "project":
            expr, plan = plan.exprs[expr.index], plan.inputs[0]
        elif plan.kind in ("filter", "sort", "fetch"):
            plan = plan.inputs[0]
        elif plan.kind == "cross" or (plan.kind == "join" and join_type(plan) in _ROWS_OF_LEFT):
            left, right = plan.inputs
            if expr.index < left.width:
                plan = left
            elif join_type(plan) == "inner":
                expr, plan = Field(expr.index - left.width), right
            else:
                return None
        else:
            return None


_ROWS_OF_LEFT = ("inner", "left", "left_semi", "left_anti", "left_mark")
"""Joins whose first columns are those of the left side."""


def read_names(plan: Rel) -> list[str]:
    """The names of the columns that a read returns."""
    names = base_names(plan)
    body = RelMessage.FromString(plan.template).read
    if body.HasField("projection"):
        return [names[item.field] for item in body.projection.select.struct_items]
    return names


def base_names(plan: Rel) -> list[str]:
    """The names of all columns of the table in a read."""
    body = RelMessage.FromString(plan.template).read
    every, at, names = list(body.base_schema.names), 0, []
    for kind in body.base_schema.struct.types:
        names.append(every[at])
        at += 1 + _names_inside(kind)
    return names


def _names_inside(kind: TypeMessage) -> int:
    """Number of field names that follow the name of a column of this type."""
    if kind.HasField("struct"):
        return sum(1 + _names_inside(field) for field in kind.struct.types)
    if kind.HasField("list"):
        return _names_inside(kind.list.type)
    if kind.HasField("map"):
        return _names_inside(kind.map.key) + _names_inside(kind.map.value)
    return 0
