"""Determines the types to which DataFusion casts answers beside columns: ``llm_map('…', x) =
stars``.

What a column holds is not known before DataFusion plans. It then casts the text to the column's
type; asked for values of that type, the model cannot answer what would fail to be cast.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from datafusion import DataFrame

from blendfusion.sql.infer_constraints import combined, of_arrow
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import VALUE
from blendfusion.udfs.declare.call_registry import after_call

_REFUSED = re.compile(
    r"comparison operation (?:Utf8 \S+ (\w+)|(\w+) \S+ Utf8)\b"
    r"|coercion from List\((\w+)[^)]*\), Utf8 "
    r"|expr type Utf8 can't cast to (\w+) in SetComparison"
    r"|inputs were of type (?:Utf8, but got incompatible type (\w+)|(\w+), but \w+ \w+ type Utf8)"
)

_SIDE = r"(?:left\.|right\.)?"
"""The names that DataFusion gives the sides of EXCEPT ALL and INTERSECT ALL."""


def types_beside_columns(
    frame: DataFrame, held: Mapping[str, Collection[str]]
) -> dict[str, Constraint]:
    """The types to which DataFusion coerces the answers of these calls in ``frame``, by name, where
    it shows them. ``held``: the columns that hold the answers of each."""
    try:
        plan = frame.optimized_logical_plan().display_indent()
    except Exception as problem:  # what is wrong besides shows when the frame is run
        return refused(str(problem), held)
    return coerced(plan, held)


def coerced(plan: str, held: Mapping[str, Collection[str]]) -> dict[str, Constraint]:
    """The types to which DataFusion's ``plan`` casts the calls of these names, or columns that hold
    their answers. Calls without a cast, or with contrary ones, are left out."""
    found = {
        name: combined([*_casts(plan, name), *(k for c in columns for k in _column_casts(plan, c))])
        for name, columns in held.items()
    }
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def refused(problem: str, names: Iterable[str]) -> dict[str, Constraint]:
    """The types beside which DataFusion's error message refuses text, or a list of text.

    It names no call, so it tells nothing where there are several.
    """
    kinds = _REFUSED.search(problem)
    only = list(names)
    constraint = of_arrow(kinds[kinds.lastindex or 0]) if kinds else None
    return {only[0]: constraint} if constraint is not None and len(only) == 1 else {}


def _casts(plan: str, name: str) -> list[Constraint]:
    constraints = []
    for start in re.finditer(rf"\bCAST\({_SIDE}(get_field\()?{name}(?=\()", plan):
        # An alias may come before the type: CAST(f(x) AS name AS Int64).
        field = rf', Utf8\("{VALUE}"\)\)' if start[1] else ""
        rest = plan[after_call(plan, start.end()) :]
        kinds = re.match(rf"{field}(?: AS \w+)* AS (\w+)", rest)
        constraint = of_arrow(kinds[1]) if kinds else None
        if constraint is not None:
            constraints.append(constraint)
    return constraints


def _column_casts(plan: str, column: str) -> list[Constraint]:
    kinds = re.findall(rf"\bCAST\({re.escape(column)} AS (\w+)", plan)
    return [constraint for constraint in map(of_arrow, kinds) if constraint is not None]
