"""Finds features that DataFusion silently drops when it writes a plan as Substrait."""

from __future__ import annotations

import re

_DROPPED = (
    (re.compile(r"^\s*WindowAggr:.*\bFILTER \(WHERE"), "FILTER of a window function"),
    (re.compile(r"^\s*Aggregate:.*\bIGNORE NULLS"), "IGNORE NULLS of an aggregate"),
)


def dropped_feature(text: str) -> str | None:
    """The feature of a DataFusion plan (as text) that its Substrait would lack, if any is known."""
    for line in text.splitlines():
        for pattern, what in _DROPPED:
            if pattern.search(line):
                return what
    return None
