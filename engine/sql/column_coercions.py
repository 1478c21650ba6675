"""Determines the types to which DataFusion casts answers beside columns: ``llm_map('…', x) =
stars``.

What a column holds is not known before DataFusion plans. It then casts the text to the column's
type; asked for values of that type, the model cannot answer what would fail to be cast.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping

from datafusion import DataFrame

from blendfusion.sql.infer_constraints import combined, of_arrow
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import VALUE
from blendfusion.udfs.declare.call_registry import after_call

_REFUSED = re.compile(
    r"comparison operation (?:Utf8 \S+ (\w+)|(\w+) \S+ Utf8)\b"
    r"|coercion from List\((\w+)[^)]*\), Utf8 "
    r"|expr type Utf8 can't cast to (\w+) in SetComparison"
    r"|expr type (?!Utf8\b)(\w+) can't cast to Utf8 in SetComparison"
    r"|inputs were of type (?:Utf8, but got incompatible type (\w+)|(\w+), but \w+ \w+ type Utf8)"
)

_SIDE = r"(?:left\.|right\.)?"
"""The names that DataFusion gives the sides of EXCEPT ALL and INTERSECT ALL."""
_CAST_OF_CALL = re.compile(rf"\bCAST\({_SIDE}(?P<field>get_field\()?(?P<name>\w+)(?=\()")
_CAST = re.compile(r"\bCAST\((?=(.*?) AS (\w+))")


def types_beside_columns(
    frame: DataFrame, held: Mapping[str, Collection[str]]
) -> dict[str, Constraint]:
    """The types to which DataFusion coerces the answers of these calls in ``frame``, by name, where
    it shows them. ``held``: the columns that hold the answers of each.

    Where DataFusion refuses a text, it names no call: the type is then that of one call or several.
    """
    try:
        plan = frame.optimized_logical_plan().display_indent()
    except Exception as problem:  # what is wrong besides shows when the frame is run
        constraint = refused(str(problem))
        return dict.fromkeys(held, constraint) if constraint is not None else {}
    return coerced(plan, held)


def refusal(frame: DataFrame) -> str:
    """The error of planning ``frame``; '' if there is none."""
    try:
        frame.optimized_logical_plan()
    except Exception as problem:
        return str(problem)
    return ""


def least(
    types: Mapping[str, Constraint],
    problem: str,
    without: Callable[[Mapping[str, Constraint]], str],
) -> dict[str, Constraint]:
    """As few of ``types`` as mend ``problem``; none if they do not. ``without``: the error that is
    left with some types."""

    def mends(some: Mapping[str, Constraint]) -> bool:
        left = without(some)
        return not left or (left != problem and refused(left) is not None)

    for name in types:
        if mends({name: types[name]}):
            return {name: types[name]}
    kept = dict(types)
    if not mends(kept):
        return {}
    for name in types:
        fewer = {other: kept[other] for other in kept if other != name}
        if mends(fewer):
            kept = fewer
    return kept


def coerced(plan: str, held: Mapping[str, Collection[str]]) -> dict[str, Constraint]:
    """The types to which DataFusion's ``plan`` casts the calls of these names, or columns that hold
    their answers. Calls without a cast, or with contrary ones, are left out."""
    calls, casts = defaultdict[str, list[str | None]](list), defaultdict[str, list[str]](list)
    for cast in _CAST_OF_CALL.finditer(plan):
        if cast["name"] in held:
            calls[cast["name"]].append(_kind_behind(plan, cast))
    for column, kind in _CAST.findall(plan):
        casts[column].append(kind)
    found = {}
    for name, columns in held.items():
        kinds = [*calls[name], *(k for c in columns for k in _of_columns(casts, plan, c))]
        known = [c for kind in kinds if kind and (c := of_arrow(kind)) is not None]
        found[name] = combined(known)
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def refused(problem: str) -> Constraint | None:
    """The type beside which DataFusion's error message refuses text, or a list of text."""
    kinds = _REFUSED.search(problem)
    return of_arrow(kinds[kinds.lastindex or 0]) if kinds else None


def _kind_behind(plan: str, cast: re.Match[str]) -> str | None:
    """The type to which a call is cast. An alias may come before it: CAST(f(x) AS name AS
    Int64)."""
    field = rf', Utf8\("{VALUE}"\)\)' if cast["field"] else ""
    kinds = re.match(rf"{field}(?: AS \w+)* AS (\w+)", plan[after_call(plan, cast.end()) :])
    return kinds[1] if kinds else None


def _of_columns(casts: Mapping[str, Collection[str]], plan: str, column: str) -> Iterable[str]:
    """The types to which a column is cast."""
    if " AS " in column:  # where such a name ends, only the name tells
        return re.findall(rf"\bCAST\({re.escape(column)} AS (\w+)", plan)
    return casts.get(column, ())
