"""Finds calls that are only compared with literals, and the comparisons that decide them."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from sqlglot import exp

from blendfusion.errors import close_matches
from blendfusion.types import Comparison, ComparisonOperator, ConstraintKind
from blendfusion.udfs.declare.call import Call


class Operand(NamedTuple):
    """A literal as the query has it; a date or a timestamp as answers have them."""

    kind: Literal["text", "number", "date", "timestamp"]
    text: str


class LiteralComparison(NamedTuple):
    """One comparison of a call with literals, the call on the left."""

    operator: ComparisonOperator
    operands: tuple[Operand, ...]


_OPERATORS: dict[type[exp.Expr], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NEQ: "=",
    exp.NullSafeEQ: "=",
    exp.NullSafeNEQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_SWAPPED: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


def literal_comparisons(node: exp.Expr) -> tuple[LiteralComparison, ...] | None:
    """The comparisons with literals that are all the query does with ``node``; None if it does more
    with it, or anything that is not known to be less."""
    child, parent = node, node.parent
    while type(parent) is exp.Paren:
        child, parent = parent, parent.parent
    if parent is None or _may_be_read_otherwise(parent):
        return None
    left = child.arg_key == "this"
    if type(parent) is exp.Case and left:
        return _each("=", [branch.this for branch in parent.args["ifs"]])
    if type(parent) is exp.In and left:
        return _each("=", parent.expressions)
    if type(parent) is exp.Between and left and not parent.args.get("symmetric"):
        return _one("between", [parent.args["low"], parent.args["high"]])
    if type(parent) is exp.Like and left and type(parent.parent) is not exp.Escape:
        return _one("like", [parent.expression])
    operator = _OPERATORS.get(type(parent))
    if operator is None:
        return None
    if left:
        return _one(operator, [parent.expression])
    return _one(_SWAPPED.get(operator, operator), [parent.this])


def _may_be_read_otherwise(comparison: exp.Expr) -> bool:
    """``a = f > 2`` is ``a = (f > 2)`` to sqlglot and ``(a = f) > 2`` to DataFusion."""
    if isinstance(comparison.parent, exp.And | exp.Or):
        return False
    return isinstance(comparison.parent, exp.Binary) and comparison.arg_key != "this"


def _each(
    operator: ComparisonOperator, others: Sequence[exp.Expr]
) -> tuple[LiteralComparison, ...] | None:
    found = [_one(operator, [other]) for other in others]
    known = [one for one in found if one is not None]
    return tuple(c for one in known for c in one) if len(known) == len(found) and found else None


def _one(
    operator: ComparisonOperator, others: Sequence[exp.Expr]
) -> tuple[LiteralComparison, ...] | None:
    operands = [_operand(other) for other in others]
    known = tuple(operand for operand in operands if operand is not None)
    return (LiteralComparison(operator, known),) if len(known) == len(operands) else None


def _operand(literal: exp.Expr) -> Operand | None:
    while type(literal) is exp.Paren:
        literal = literal.this
    if type(literal) is exp.Literal and literal.is_string:
        # A backslash may escape what follows: in LIKE, and in the literals of some dialects.
        return None if "\\" in literal.this else Operand("text", literal.this)
    if type(literal) is exp.Literal:
        return Operand("number", literal.this) if _is_exact(literal.this) else None
    if type(literal) is exp.Neg:
        inner = _operand(literal.this)
        negative = inner is None or inner.kind != "number" or inner.text.startswith("-")
        return None if inner is None or negative else Operand("number", f"-{inner.text}")
    if type(literal) is exp.Cast and type(literal.this) is exp.Literal and literal.this.is_string:
        return _moment(literal.this.this, literal.to)
    return None


def _is_exact(number: str) -> bool:
    """The number is the same whether it is read as a decimal or as a double."""
    digits = re.sub(r"[eE].*|\.", "", number).strip("0")
    if number.isdigit():
        return len(number) <= 18
    return len(digits) <= 15 and math.isfinite(float(number))


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(rf"{_DATE.pattern}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}")


def _moment(text: str, to: exp.DataType) -> Operand | None:
    if to.expressions:
        return None
    if to.this.name == "DATE":
        found = _date(text)
        return None if found is None else Operand("date", found)
    if to.this.name in ("TIMESTAMP", "TIMESTAMPNTZ"):
        found = _timestamp(text)
        return None if found is None else Operand("timestamp", found)
    return None


def _date(text: str) -> str | None:
    """``text`` if it is a date as answers have them."""
    try:
        return datetime.date.fromisoformat(text).isoformat() if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def _timestamp(text: str) -> str | None:
    """The timestamp, or the midnight of a date, as answers have them."""
    if not (_DATE.fullmatch(text) or _TIMESTAMP.fullmatch(text)):
        return None
    try:
        return datetime.datetime.fromisoformat(text).isoformat()
    except ValueError:
        return None


# -- calls -----------------------------------------------------------------------------------------


def until_decided(
    calls: Sequence[Call], places: Sequence[tuple[LiteralComparison, ...] | None]
) -> list[Call]:
    """The calls of a whole query, in order. A call is changed if some comparisons need only the
    beginning of its answers. ``places``: the result of ``literal_comparisons`` for the place of
    each.

    Calls with equal tasks share their answers, so the places of all of them count.
    """
    together: dict[object, list[int]] = {}
    for i, call in enumerate(calls):
        together.setdefault(call.task, []).append(i)
    result = list(calls)
    for members in together.values():
        comparisons = _comparisons(calls[members[0]], [places[i] for i in members])
        if any(calls[i].stated for i in members):
            continue  # the text states the whole answer, not its beginning
        for i in members if comparisons else ():
            task = calls[i].task
            constraint = replace(task.constraint, decides=comparisons)
            result[i] = replace(calls[i], task=replace(task, constraint=constraint))
    return result


def never_equal(call: Call, places: tuple[LiteralComparison, ...] | None) -> str | None:
    """The warning about a comparison of ``call`` with a text that is none of its options; None if
    there is none."""
    options = call.task.constraint.options
    texts = [
        o.text for c in places or () if c.operator == "=" for o in c.operands if o.kind == "text"
    ]
    wrong = next((text for text in texts if options and text not in options), None)
    return None if wrong is None else unknown_option(call, wrong)


def unknown_option(call: Call, text: str) -> str:
    """The warning about a comparison of ``call`` with a text that is none of its options."""
    options = call.task.constraint.options
    return f"{call.text} never equals {text!r}. {close_matches(text, options)}"


def _comparisons(
    call: Call, places: Sequence[tuple[LiteralComparison, ...] | None]
) -> tuple[Comparison, ...]:
    """The comparisons of the call at all places, in a fixed order; () if a place does more than
    compare."""
    found: set[Comparison] = set()
    for place in places:
        for one in place or (None,):
            comparison = None if one is None else _of_kind(one, call.task.constraint.kind)
            if (
                comparison is None
                or call.ingredient.kind.has_body
                or not call.ingredient.kind.asks_model
            ):
                return ()
            found.add(comparison)
    return tuple(sorted(found))


def _of_kind(one: LiteralComparison, kind: ConstraintKind) -> Comparison | None:
    """The comparison with answers of a kind, if DataFusion compares them without a cast. After a
    cast, the beginning of an answer decides nothing that is known here."""
    operands = [_as(operand, kind) for operand in one.operands]
    known = tuple(operand for operand in operands if operand is not None)
    if len(known) != len(operands) or (one.operator == "like" and kind not in ("text", "regex")):
        return None
    return Comparison(one.operator, known)


def _as(operand: Operand, kind: ConstraintKind) -> str | None:
    if kind in ("text", "regex"):
        return operand.text if operand.kind == "text" else None
    if kind in ("integer", "number"):
        return operand.text if operand.kind == "number" else None
    if kind == "date":
        return _date(operand.text) if operand.kind in ("date", "text") else None
    if kind == "timestamp":
        return _timestamp(operand.text)
    return None
