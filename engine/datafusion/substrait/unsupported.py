"""Finds features that DataFusion silently drops when it writes a plan as Substrait."""

from __future__ import annotations

import re

_TEXT = re.compile(r'"[^"]*"')
_NESTED = re.compile(r"\([^()\[\]]*\)|\[[^()\[\]]*\]")


def dropped_feature(text: str) -> str | None:
    """The feature of a DataFusion plan (as text) that its Substrait would lack, if any is known."""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("WindowAggr:") and " FILTER " in _outer(line.partition("[[")[2]):
            return "FILTER of a window function"
        if line.startswith("Aggregate:") and "IGNORE NULLS" in line:
            return "IGNORE NULLS of an aggregate"
    return None


def _outer(text: str) -> str:
    """``text`` without what is quoted or stands in parentheses or brackets: arguments, orders."""
    text, found = _TEXT.sub("", text), 1
    while found:
        text, found = _NESTED.subn("", text)
    return text
