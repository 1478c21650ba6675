"""Traces a column of a plan to the table column that it copies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import pyarrow as pa
from substrait.proto import Expression as ExpressionMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import Type as TypeMessage

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import cast_to_text, table_names
from blendfusion.planner.ir.joins import PASSES_ON, join_type, outputs
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    StoredRows,
    all_fields,
    fields,
    has_window,
    inline,
    needs_model,
    once_a_plan,
)
from blendfusion.planner.ir.opaque_names import TABLES, leaf_text
from blendfusion.planner.ir.traversal import asks_anything

T = TypeVar("T")
_EXACT = frozenset(("bool", "i8", "i16", "i32", "i64", "decimal", "string", "date"))
"""Kinds of types whose values are equal everywhere, or nowhere."""
_OF_THEIR_ARGUMENTS = ("min", "max", "sum")
"""Aggregates that are floating-point numbers only where what they read is."""
_DICTIONARY = 1
"""The variation of maps as which DataFusion writes the type of dictionaries."""


class Column(NamedTuple):
    """The names of a table and of a column in it."""

    table: str
    column: str


def column_of(expr: Expr, plan: Plan) -> Column | None:
    """The table column that ``expr`` copies on every row of ``plan``, perhaps cast to text; None if
    there is none, or if the value may be NULL instead."""
    found = _read_of(expr, plan)
    if found is None:
        return None
    read, i = found
    names = table_names(read)
    table = leaf_text(names, TABLES) or ".".join(names)
    return Column(table, read_names(read)[i]) if table else None


def is_safe_cast(expr: Expr, plan: Plan) -> bool:
    """Whether an expression casts a table column so that it never fails: dictionaries to the type
    of their values, whole numbers to floating-point ones."""
    if not isinstance(expr, Node) or expr.name != "cast":
        return False
    found = _read_of(expr.children[0], plan)
    if found is None:
        return False
    read, i = found
    kind = _types(read)[i]
    of_dictionary = kind.HasField("map") and kind.map.type_variation_reference == _DICTIONARY
    to = ExpressionMessage.FromString(expr.template).cast.type
    if of_dictionary:
        return bool(kind.map.value == to)
    return to.HasField("fp64") and kind.WhichOneof("kind") in ("i8", "i16", "i32", "i64")


def may_be_real(expr: Expr, plan: Plan) -> bool:
    """Whether an expression over ``plan`` may have floating-point values: 0.0 and -0.0 are equal in
    groups and joins, and differ in orders and windows."""
    if isinstance(expr, Ask):
        return bool(pa.types.is_floating(expr.call.type))
    if isinstance(expr, Node):
        message = ExpressionMessage.FromString(expr.template)
        if expr.name == "if_then":
            otherwise = expr.children[len(expr.children) // 2 * 2 :]
            return any(may_be_real(e, plan) for e in (*expr.children[1::2], *otherwise))
        if expr.name == "literal":
            return message.literal.WhichOneof("literal_type") not in (*_EXACT, "boolean", "null")
        kind = (
            message.cast.type if message.HasField("cast") else message.scalar_function.output_type
        )
        return kind.WhichOneof("kind") not in _EXACT
    found = _copied_from(expr, plan)
    if found is None:
        return True
    origin, i = found
    if origin.kind == "read":
        return _types(origin)[i].WhichOneof("kind") not in _EXACT
    agg = aggregation(origin)
    place = i - agg.n_before_measures
    if place < 0:
        return i >= len(agg.keys) or may_be_real(agg.keys[i], origin.inputs[0])
    measure = agg.measures[place]
    of_argument = measure.name in _OF_THEIR_ARGUMENTS and may_be_real(
        measure.args[0], origin.inputs[0]
    )
    return measure.name != "count" and (measure.name not in _OF_THEIR_ARGUMENTS or of_argument)


def _read_of(expr: Expr, plan: Plan) -> tuple[Rel, int] | None:
    """The read whose column ``expr`` copies, and the number of the column."""
    found = _copied_from(expr, plan)
    return found if found is not None and found[0].kind == "read" else None


def _copied_from(expr: Expr, plan: Plan) -> tuple[Rel, int] | None:
    """The read, or the aggregate, whose column ``expr`` copies, and the number of the column."""
    while True:
        expr = cast_to_text(expr) or expr
        if not isinstance(expr, Field):
            return None
        if isinstance(plan, Block):
            expr, plan = plan.select[expr.index], plan.source
        elif not isinstance(plan, Rel):
            return None
        elif plan.kind in ("read", "aggregate"):
            return plan, expr.index
        elif plan.kind == "project":
            expr, plan = plan.exprs[expr.index], plan.inputs[0]
        elif plan.kind in ("filter", "sort", "fetch"):
            plan = plan.inputs[0]
        elif plan.kind == "cross" or (plan.kind == "join" and join_type(plan) in PASSES_ON[0]):
            left, right = plan.inputs
            if expr.index < left.width:
                plan = left
            elif join_type(plan) == "inner":
                expr, plan = Field(expr.index - left.width), right
            else:
                return None
        else:
            return None


@once_a_plan
def answer_columns(plan: Plan) -> frozenset[int]:
    """The columns of ``plan`` whose values depend on answers. Their rows may do so, too: a number
    of rows is such a column, a column of the kept rows is not."""
    if isinstance(plan, StoredRows) or not asks_anything(plan):
        return frozenset()
    if isinstance(plan, Block) or plan.kind == "project":
        exprs = plan.select if isinstance(plan, Block) else plan.exprs
        below = answer_columns(plan.inputs[0])
        return frozenset(i for i, e in enumerate(exprs) if needs_model(e) or fields(e) & below)
    if plan.kind in ("filter", "sort", "fetch"):
        return answer_columns(plan.inputs[0])
    if plan.kind in ("join", "cross"):
        known = {(side, i) for side, p in enumerate(plan.inputs) for i in answer_columns(p)}
        made = enumerate(outputs(plan))
        return frozenset(i for i, column in made if column in known or column[0] == 2)
    if plan.kind == "aggregate":
        keys, below = aggregation(plan).keys, answer_columns(plan.inputs[0])
        plain = {i for i, key in enumerate(keys) if not fields(key) & below}
        return frozenset(range(plan.width)) - plain
    return frozenset(range(plan.width))


@once_a_plan
def passed_on(plan: Plan) -> Mapping[int, Mapping[int, Expr]]:
    """The inputs whose rows make up those of ``plan``, each row none or several times, by number;
    with the columns of ``plan`` that copy or compute something from such an input alone."""
    if isinstance(plan, Block):
        return {0: dict(enumerate(plan.select))}
    if not isinstance(plan, Rel):
        return {}
    if plan.kind in ("filter", "sort", "fetch"):
        return {0: dict(enumerate(all_fields(plan.width)))}
    if plan.kind == "project" and not any(map(has_window, plan.exprs)):
        return {0: dict(enumerate(plan.exprs))}
    if plan.kind == "aggregate":
        agg = aggregation(plan)
        return {0: dict(enumerate(agg.keys))} if agg.has_one_grouping else {}
    if plan.kind not in ("join", "cross"):
        return {}
    columns = list(enumerate(outputs(plan)))
    return {
        side: {i: Field(column) for i, (of, column) in columns if of == side}
        for side in (0, 1)
        if join_type(plan) in PASSES_ON[side]
    }


def over(expr: Expr, columns: Mapping[int, Expr]) -> Expr | None:
    """``expr`` over a relation whose column i is ``columns[i]``; None if one is unknown."""
    if not fields(expr) <= columns.keys():
        return None
    return inline(expr, columns)


def read_names(plan: Rel) -> list[str]:
    """The names of the columns that a read returns."""
    return _columns_read(plan, base_names(plan))


def _types(plan: Rel) -> Sequence[TypeMessage]:
    """The types of the columns that a read returns."""
    return _columns_read(plan, RelMessage.FromString(plan.template).read.base_schema.struct.types)


def _columns_read(plan: Rel, columns: Iterable[T]) -> list[T]:
    body, every = RelMessage.FromString(plan.template).read, [*columns]
    if body.HasField("projection"):
        return [every[item.field] for item in body.projection.select.struct_items]
    return every


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
