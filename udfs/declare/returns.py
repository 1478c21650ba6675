"""The names of types, as ``returns`` gives them, and the Arrow types of answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from blendfusion.types import Constraint

RETURNS: Mapping[str, Constraint] = {
    "bool": Constraint("boolean"),
    "boolean": Constraint("boolean"),
    "int": Constraint("integer"),
    "integer": Constraint("integer"),
    "bigint": Constraint("integer"),
    "float": Constraint("number"),
    "double": Constraint("number"),
    "number": Constraint("number"),
    "date": Constraint("date"),
    "timestamp": Constraint("timestamp"),
    "str": Constraint("text"),
    "text": Constraint("text"),
    "varchar": Constraint("text"),
    "string": Constraint("text"),
    "list": Constraint("list", item=Constraint("text")),
    "list[str]": Constraint("list", item=Constraint("text")),
    "list[int]": Constraint("list", item=Constraint("integer")),
    "list[float]": Constraint("list", item=Constraint("number")),
    "list[date]": Constraint("list", item=Constraint("date")),
}
"""The names of types. Behind the name of a list may stand its number of items: ``list{3}``,
``list[int]{1,4}``, ``list{2,}``, ``list+`` (at least one), ``list*``. ``decimal(10,2)``, with any
precision and scale, is a type, too."""

MOST_ITEMS = 100
"""The maximum length of a list that ``returns`` may require."""

_COUNTED = re.compile(r"(list(?:\[\w+\])?)(?:([*+])|\{(\d+)(?:(,)(\d*))?\})")


_DECIMAL = re.compile(r"(?:decimal|numeric)\((\d{1,3})(?:,(\d{1,3}))?\)")
MOST_PRECISION = 38
"""The digits of the widest decimal."""


def decimal_constraint(precision: int, scale: int) -> Constraint | None:
    """The constraint of ``DECIMAL(precision, scale)``; None if there is no such type."""
    if not 0 <= scale <= precision or not 1 <= precision <= MOST_PRECISION:
        return None
    return Constraint("number", digits=(precision, scale))


def constraint_named(name: str) -> Constraint | None:
    """The constraint that ``returns => name`` sets; None if it is not a type.

    >>> str(constraint_named("list[int]{2,4}"))
    'list of 2 to 4 integer'
    """
    name = name.lower().replace(" ", "")
    decimal = _DECIMAL.fullmatch(name)
    if decimal is not None:
        return decimal_constraint(int(decimal[1]), int(decimal[2] or 0))
    counted = _COUNTED.fullmatch(name)
    if counted is None or counted[1] not in RETURNS:
        return RETURNS.get(name)
    listed, sign, least, comma, most = counted.groups()
    if sign is not None:
        return replace(RETURNS[listed], min_items=int(sign == "+"))
    fewest = int(least)
    highest = int(most) if most else None if comma else fewest
    if max(fewest, highest or 0) > MOST_ITEMS or (highest is not None and highest < fewest):
        return None
    return replace(RETURNS[listed], min_items=fewest, max_items=highest)


def type_name(constraint: Constraint) -> str:
    """The name of a constraint without options or pattern, as ``returns`` takes it.

    >>> [type_name(constraint_named(name)) for name in ("INT", "list+", "list[date]{2}", "list{1,3}")]
    ['integer', 'list{1,}', 'list[date]{2}', 'list{1,3}']
    """
    if constraint.digits is not None:
        return "decimal({},{})".format(*constraint.digits)
    if constraint.kind != "list":
        return constraint.kind
    items = {"integer": "[int]", "number": "[float]", "date": "[date]"}
    name = f"list{items.get(constraint.item.kind, '') if constraint.item is not None else ''}"
    fewest, most = constraint.min_items, constraint.max_items
    if not fewest and most is None:
        return name
    bounds = str(fewest) if fewest == most else f"{fewest},{'' if most is None else most}"
    return f"{name}{{{bounds}}}"


def arrow_type(constraint: Constraint) -> pa.DataType:
    """The Arrow type of answers under a constraint."""
    if constraint.kind == "list":
        return pa.list_(arrow_type(constraint.item or Constraint()))
    if constraint.digits is not None:
        return pa.decimal128(*constraint.digits)
    if constraint.kind == "struct":
        return pa.struct([(f.name, arrow_type(f.constraint)) for f in constraint.fields])
    return {
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "score": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }.get(constraint.kind, pa.string())
