"""What DataFusion leaves out, without a word, when it writes a plan as Substrait."""

from __future__ import annotations

import re

_LOST = (
    (re.compile(r"^\s*WindowAggr:.*\bFILTER \(WHERE"), "FILTER of a window function"),
    (re.compile(r"^\s*WindowAggr:.*\(DISTINCT "), "DISTINCT in a window function"),
    (re.compile(r"^\s*(WindowAggr|Aggregate):.*\bIGNORE NULLS"), "IGNORE NULLS"),
)


def lost(text: str) -> str | None:
    """What of a DataFusion plan (as text) its Substrait would not say; None for nothing known."""
    for line in text.splitlines():
        for pattern, what in _LOST:
            if pattern.search(line):
                return what
    return None
