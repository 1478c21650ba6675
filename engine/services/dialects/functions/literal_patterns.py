"""Patterns of GLOB and SIMILAR TO as regular expressions of all of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_GLOB = {"*": "(?s:.*)", "?": "(?s:.)"}
_SIMILAR = {"%": "(?s:.*)", "_": "(?s:.)", ".": r"\.", "^": r"\^", "$": r"\$"}
_SET = r"\[\^?\]?[^\]]*\]"


def glob(pattern: str) -> str:
    """The expression that a pattern of SQLite's GLOB is."""
    parts = re.findall(rf"{_SET}|.", pattern, re.DOTALL)
    return _whole(_GLOB.get(p) or (p if len(p) > 1 else re.escape(p)) for p in parts)


def similar(pattern: str) -> str:
    """The expression that a pattern of SIMILAR TO is."""
    parts = re.findall(rf"{_SET}|\\\\.|.", pattern, re.DOTALL)
    return _whole(_SIMILAR.get(p, p) for p in parts)


def _whole(parts: Iterable[str]) -> str:
    return f"^(?:{''.join(parts)})$"


OF_OPERATORS = {"GLOB": glob, "SIMILAR": similar}
