"""Checks the keys of ORDER BY, which DataFusion 55 plans although no relation has them.

``SELECT a FROM t ORDER BY t.missing`` is a plan that cannot be carried out."""

from __future__ import annotations

import re

from datafusion import DataFrame

_SORT = re.compile(r"^ *Sort: (.*)$", re.MULTILINE)
_QUALIFIED = re.compile(r"\b\w++(?:\.\w++)++")
"""Possessive, and from the first letter of a word: a name may have 100,000 letters."""


def check_sort_keys(frame: DataFrame) -> None:
    """Raises DataFusion's error for a key that names no column of its relation.

    A physical plan is made only where a key is named nowhere below the sort."""
    plan = frame.logical_plan().display_indent()
    sorts = [*_SORT.finditer(plan)]
    last = {name[0]: name.start() for name in _QUALIFIED.finditer(plan)} if sorts else {}
    for sort in sorts:
        if any(last[name] < sort.end() for name in _QUALIFIED.findall(sort[1])):
            frame.execution_plan()
            return
