"""Warnings about the plan of a query: a type that switches planning off, a stage that DataFusion
refuses, what is probably a mistake."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from blendfusion.errors import PlanWarning, level_of_caller

_OF_WINDOWS = re.compile(r"\bwindow\b|\bIGNORE NULLS\b")
_OF_TYPES = re.compile(
    r"\b(?<!node of )(?<!plan )(type|literal|decimals)\b|Substrait would change|own plan"
)
_PLAIN = "This query runs without the planner and may ask more values than it needs"


def warn_of_plain(reason: str | None, known: set[str]) -> None:
    """Warn once for each ``reason`` why a query runs plain that names a window, a type or a
    literal; ``known`` holds the earlier ones."""
    if reason is None:
        return
    remedy = ""
    if _OF_WINDOWS.search(reason):
        remedy = "The same window over a table of the answers, CREATE TABLE … AS, asks no more."
    elif _OF_TYPES.search(reason):
        remedy = "A cast of the column in a view, CAST(… AS …), plans it."
    if remedy:
        _warn_once(reason, f"{_PLAIN}: {reason}. {remedy}", known)


def warn_of_refusal(reason: str | None, known: set[str]) -> None:
    """Warn once for each ``reason`` why DataFusion refused a stage while a query ran."""
    remedy = "Another form of the query, such as a view for a part of it, may be planned."
    if reason is not None:
        _warn_once(reason, f"{_PLAIN}: {reason.rstrip('.')}. {remedy}", known)


def warn_of_doubts(problems: Iterable[str], known: set[str]) -> None:
    """Warn once of each probable mistake of a query."""
    for problem in problems:
        _warn_once(problem, problem, known)


def _warn_once(key: str, text: str, known: set[str]) -> None:
    if key not in known:
        known.add(key)
        warnings.warn(text, PlanWarning, stacklevel=level_of_caller())
