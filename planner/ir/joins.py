"""The kinds, widths and construction of joins and unions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

from substrait.proto import JoinRel as JoinRelMessage
from substrait.proto import Rel as RelMessage
from substrait.proto import SetRel as SetRelMessage

from blendfusion.errors import PlanError
from blendfusion.planner.ir.builders import boolean_literal, conjunction
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    fields,
    inline,
    is_volatile,
    shift,
    substitute,
)

JOIN_NAMES = {
    number: name.removeprefix("JOIN_TYPE_").lower()
    for name, number in JoinRelMessage.JoinType.items()
}

PASSES_ON = (
    ("inner", "left", "left_semi", "left_anti", "left_mark"),
    ("inner", "right", "right_semi", "right_anti"),
)
"""The joins whose rows are those of their left side, each none or several times; and of their right
side."""
DROPS = (("inner", "left_semi"), ("inner", "right_semi"))
"""The joins that drop rows without a partner, of the left side, and of the right one."""
ALL_COME = (("left", "left_mark", "outer"), ("right", "outer"))
"""The joins that have each row of their left side, and of their right side."""
TESTED = {
    **dict.fromkeys(("left_semi", "left_anti", "left_mark"), 1),
    **dict.fromkeys(("right_semi", "right_anti"), 0),
}
"""The input of which a join only sees whether there is a partner: it has rows of the other one,
none more than once."""
GROWS_WITH_LEFT = ("inner", "left", "left_semi", "right_semi", "left_anti", "left_mark")
"""Joins that keep all of their rows when their left input grows."""
GROWS_WITH_RIGHT = ("inner", "right", "left_semi", "right_semi", "right_anti")


def join_type(rel: Rel) -> str:
    """The kind of a join in Substrait's terms: inner, left, right, outer, left_semi, left_anti,
    left_mark, right_semi, …."""
    if rel.kind == "cross":
        return "inner"
    return _type_in(rel.template)


@lru_cache(maxsize=4096)
def _type_in(template: bytes) -> str:
    return str(JOIN_NAMES.get(RelMessage.FromString(template).join.type, "other"))


def terms_of(join: Rel) -> tuple[Expr, ...]:
    """The conjuncts of a join's condition."""
    return tuple(t for e in join.exprs for t in conjuncts(e))


def columns_within(wider: Rel, join: Rel) -> tuple[Field, ...]:
    """The columns of a join in one whose inputs have more columns behind theirs."""
    at = {column: Field(i) for i, column in enumerate(outputs(wider))}
    return tuple(at[column] for column in outputs(join))


def is_join(plan: Plan) -> TypeGuard[Rel]:
    """Whether a plan is a join, with a condition or without."""
    return isinstance(plan, Rel) and plan.kind in ("join", "cross")


def join_plans(left: Plan, right: Plan, terms: tuple[Expr, ...], kind: str = "inner") -> Rel:
    """The join of two plans on the conjunction of ``terms``, of a ``join_type``; a cross join
    without terms."""
    message = RelMessage()
    if not terms and kind == "inner":
        message.cross.left.SetInParent()
        message.cross.right.SetInParent()
        return Rel("cross", serialize(message), (left, right), (), left.width + right.width)
    message.join.left.SetInParent()
    message.join.right.SetInParent()
    message.join.expression.SetInParent()
    message.join.type = JoinRelMessage.JoinType.Value(f"JOIN_TYPE_{kind.upper()}")
    condition = conjunction(terms or (boolean_literal(True),))
    width = join_width(kind, left.width, right.width)
    return Rel("join", serialize(message), (left, right), (condition,), width)


def exchanged_fields(left: int, right: int) -> tuple[Field, ...]:
    """The columns of a join, in order, as references to the same join with its sides exchanged.
    ``left`` and ``right`` are the numbers of columns of the sides."""
    return tuple(Field((i + right) % (left + right)) for i in range(left + right))


def exchange_sides(term: Expr, left: int, right: int) -> Expr:
    """A term over a join of ``left`` and ``right`` columns, over it with its sides exchanged."""
    return inline(term, exchanged_fields(left, right))


def join_width(kind: str, left: int, right: int) -> int:
    if kind in ("left_semi", "left_anti"):
        return left
    if kind in ("right_semi", "right_anti"):
        return right
    if kind in ("inner", "outer", "left", "right"):
        return left + right
    if kind == "left_mark":
        return left + 1
    raise PlanError(f"a join of type {kind}")


def outputs(join: Rel) -> list[tuple[int, int]]:
    """For each column of a join, (input, column of it); (2, 0) for the mark of a mark join."""
    left, right = ([(side, i) for i in range(p.width)] for side, p in enumerate(join.inputs))
    kind = join_type(join)
    if kind in ("left_semi", "left_anti"):
        return left
    if kind in ("right_semi", "right_anti"):
        return right
    return [*left, (2, 0)] if kind == "left_mark" else left + right


def union_all(branches: Sequence[Plan]) -> Rel:
    """The rows of plans of equal columns, one plan after the other."""
    message = RelMessage()
    message.set.op = SetRelMessage.SET_OP_UNION_ALL
    for _ in branches:
        message.set.inputs.add()
    return Rel("set", serialize(message), tuple(branches), (), branches[0].width)


def is_union_all(plan: Plan) -> bool:
    """Whether a plan is a UNION ALL."""
    return isinstance(plan, Rel) and plan.kind == "set" and _is_all(plan.template)


@lru_cache(maxsize=4096)
def _is_all(template: bytes) -> bool:
    return bool(RelMessage.FromString(template).set.op == SetRelMessage.SET_OP_UNION_ALL)


def keys_of(
    term: Expr, side: int, left: int, names: Sequence[str] = ("equal",)
) -> tuple[Expr | None, Expr | None]:
    """The operands of an equality of both sides, or of another function in ``names``, over the
    columns of their sides, that of ``side`` first."""
    if not isinstance(term, Node) or term.name not in names or is_volatile(term):
        return None, None
    sides: list[Expr | None] = [None, None]
    for child in term.children:
        read = fields(child)
        if read and max(read) < left:
            sides[0] = child
        elif read and min(read) >= left:
            sides[1] = shift(child, -left)
    return sides[side], sides[1 - side]


def with_wider_input(join: Rel, side: int, new: Plan) -> Rel:
    """The join with an input that may have more columns than the old one, behind those."""
    behind = sum(p.width for p in join.inputs[: side + 1])
    gained = new.width - join.inputs[side].width

    def place(part: Expr) -> Expr | None:
        moves = isinstance(part, Field) and part.index >= behind
        return Field(part.index + gained) if isinstance(part, Field) and moves else None

    left, right = (new, join.inputs[1]) if side == 0 else (join.inputs[0], new)
    exprs = tuple(substitute(e, place) for e in join.exprs)
    width = join_width(join_type(join), left.width, right.width)
    return replace(join, inputs=(left, right), exprs=exprs, width=width)


def over_side(terms: tuple[Expr, ...], join: Rel, width: int) -> tuple[Expr, ...]:
    """Terms over the output of a join and further columns as terms over one input, which is as wide
    as ``width``, and those."""
    columns = outputs(join)

    def place(part: Expr) -> Expr | None:
        if not isinstance(part, Field):
            return None
        i = part.index
        return Field(columns[i][1] if i < join.width else width + i - join.width)

    return tuple(substitute(t, place) for t in terms)
