"""Determines the types to which DataFusion casts answers beside columns: ``llm_map('…', x) =
stars``.

What a column holds is not known before DataFusion plans. It then casts the text to the column's
type; asked for values of that type, the model cannot answer what would fail to be cast.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from datafusion import DataFrame

from blendfusion.types import Constraint

_REFUSED = re.compile(
    r"comparison operation (?:Utf8 \S+ (\w+)|(\w+) \S+ Utf8)\b"
    r"|coercion from List\((\w+)[^)]*\), Utf8 "
    r"|expr type Utf8 can't cast to (\w+) in SetComparison"
    r"|expr type (?!Utf8\b)(\w+) can't cast to Utf8 in SetComparison"
    r"|inputs were of type (?:Utf8, but got incompatible type (\w+)|(\w+), but \w+ \w+ type Utf8)"
)


class OptimizedText(NamedTuple):
    """The text of the optimized plan of a frame, or why DataFusion makes none."""

    plan: str = ""
    problem: str = ""


def optimize(frame: DataFrame) -> OptimizedText:
    try:
        return OptimizedText(plan=frame.optimized_logical_plan().display_indent())
    except Exception as problem:  # what is wrong besides shows when the frame is run
        return OptimizedText(problem=str(problem))


def types_beside_columns(optimized: OptimizedText, names: Collection[str]) -> dict[str, Constraint]:
    """The types to which DataFusion coerces the answers of the calls of these names, by name, where
    it shows them.

    Where DataFusion refuses a text, it names no call: the type is then that of one call or several.
    """
    if optimized.problem:
        constraint = refused_type(optimized.problem)
        return dict.fromkeys(names, constraint) if constraint is not None else {}
    from blendfusion.language.query_text.infer_constraints import combine, of_arrow
    from blendfusion.language.query_text.plan_casts import casts_of_calls

    kinds = defaultdict[str, list[Constraint]](list)
    for name, kind in casts_of_calls(optimized.plan, names):
        constraint = of_arrow(kind)
        kinds[name] += [constraint] if constraint is not None else []
    found = {name: combine(some) for name, some in kinds.items()}
    return {name: constraint for name, constraint in found.items() if constraint is not None}


def least(
    types: Mapping[str, Constraint],
    problem: str,
    without: Callable[[Mapping[str, Constraint]], str],
) -> dict[str, Constraint]:
    """As few of ``types`` as mend ``problem``; none if they do not. ``without``: the error that is
    left with some types."""

    def mends(some: Mapping[str, Constraint]) -> bool:
        left = without(some)
        return not left or (left != problem and refused_type(left) is not None)

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


def refused_type(problem: str) -> Constraint | None:
    """The type beside which DataFusion's error message refuses text, or a list of text."""
    from blendfusion.language.query_text.infer_constraints import of_arrow

    kinds = _REFUSED.search(problem)
    return of_arrow(kinds[kinds.lastindex or 0]) if kinds else None
