"""Warnings about the plan of a query: a type that switches planning off, what is
probably a mistake."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from blendfusion.errors import PlanWarning
from blendfusion.reports.trace import level_of_caller

_OF_TYPES = re.compile(r"\b(?<!node of )(type|literal|decimals)\b")


def warn_of_type(reason: str | None, known: set[str]) -> None:
    """Warn once for each ``reason`` that names a type or a literal; ``known`` holds the earlier
    ones."""
    if reason is not None and _OF_TYPES.search(reason):
        text = (
            f"This query runs without the planner and may ask more values than it needs: {reason}. "
            "A cast of the column in a view, CAST(… AS …), plans it."
        )
        _warn_once(reason, text, known)


def warn_of_doubts(problems: Iterable[str], known: set[str]) -> None:
    """Warn once of each probable mistake of a query."""
    for problem in problems:
        _warn_once(problem, problem, known)


def _warn_once(key: str, text: str, known: set[str]) -> None:
    if key not in known:
        known.add(key)
        warnings.warn(text, PlanWarning, stacklevel=level_of_caller())
