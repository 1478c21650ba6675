"""Checks the keys of ORDER BY, which DataFusion 55 plans although no relation has them.

``SELECT a FROM t ORDER BY t.missing`` is a plan that cannot be carried out."""

from __future__ import annotations

import re

from datafusion import DataFrame
from datafusion.plan import LogicalPlan

_SORT = re.compile(r"^ *Sort: (.*)$", re.MULTILINE)
_QUALIFIED = re.compile(r"\b\w++(?:\.\w++)+")
"""Possessive, and from the first letter of a word: a name may have 100,000 letters."""


def is_row_change(plan: LogicalPlan) -> bool:
    """Whether it is an UPDATE or DELETE, which DataFusion 55 carries out for a physical plan."""
    return plan.display().startswith(("Dml: op=[Update]", "Dml: op=[Delete]"))


def check_sort_keys(frame: DataFrame) -> None:
    """Raises DataFusion's error for a key that names no column of its relation.

    A physical plan is made only where a key is named nowhere below the sort."""
    if is_row_change(frame.logical_plan()):
        return
    plan = frame.logical_plan().display_indent()
    sorts = [*_SORT.finditer(plan)]
    last = {name[0]: name.start() for name in _QUALIFIED.finditer(plan)} if sorts else {}
    for sort in sorts:
        if any(last[name] < sort.end() for name in _QUALIFIED.findall(sort[1])):
            frame.execution_plan()
            return
