"""Determines the types to which DataFusion casts answers beside columns: ``llm_map('…', x) =
stars``.

What a column holds is not known before DataFusion plans. It then casts the text to the column's
type; asked for values of that type, the model cannot answer what would fail to be cast.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from datafusion import DataFrame

from blendfusion.sql.infer_constraints import combined
from blendfusion.types import Constraint
from blendfusion.udfs.declare.call import VALUE
from blendfusion.udfs.declare.call_registry import after_call

_TYPES = (
    (re.compile(r"U?Int\d+"), Constraint("integer")),
    (re.compile(r"Float\d+|Decimal\d+"), Constraint("number")),
    (re.compile(r"Boolean"), Constraint("boolean")),
    (re.compile(r"Date\d+"), Constraint("date")),
    (re.compile(r"Timestamp"), Constraint("timestamp")),
)
_REFUSED = re.compile(
    r"comparison operation (?:Utf8 \S+ (\w+)|(\w+) \S+ Utf8)\b"
    r"|coercion from List\((\w+)[^)]*\), Utf8 "
    r"|expr type Utf8 can't cast to (\w+) in SetComparison"
)


def types_beside_columns(frame: DataFrame, names: Sequence[str]) -> dict[str, Constraint]:
    """The types to which DataFusion coerces the answers of these calls in ``frame``, by name, where
    it shows them."""
    try:
        plan = frame.optimized_logical_plan().display_indent()
    except Exception as problem:  # what is wrong besides shows when the frame is run
        return refused(str(problem), names)
    return coerced(plan, names)


def coerced(plan: str, names: Iterable[str]) -> dict[str, Constraint]:
    """The types to which DataFusion's ``plan`` casts the calls of these names. Calls without a
    cast, or with contrary ones, are left out."""
    found = {name: combined(_casts(plan, name)) for name in names}
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def refused(problem: str, names: Iterable[str]) -> dict[str, Constraint]:
    """The types beside which DataFusion's error message refuses text, or a list of text.

    It names no call, so it tells nothing where there are several.
    """
    kinds = _REFUSED.search(problem)
    only = list(names)
    constraint = _constraint(kinds[kinds.lastindex or 0]) if kinds else None
    return {only[0]: constraint} if constraint is not None and len(only) == 1 else {}


def _casts(plan: str, name: str) -> list[Constraint]:
    constraints = []
    for start in re.finditer(rf"\bCAST\((get_field\()?{name}(?=\()", plan):
        # An alias may come before the type: CAST(f(x) AS name AS Int64).
        field = rf', Utf8\("{VALUE}"\)\)' if start[1] else ""
        rest = plan[after_call(plan, start.end()) :]
        kinds = re.match(rf"{field}(?: AS \w+)* AS (\w+)", rest)
        constraint = _constraint(kinds[1]) if kinds else None
        if constraint is not None:
            constraints.append(constraint)
    return constraints


def _constraint(kind: str) -> Constraint | None:
    return next((c for pattern, c in _TYPES if pattern.fullmatch(kind)), None)
