"""Patterns of GLOB and SIMILAR TO as regular expressions of all of a text."""

from __future__ import annotations

import re

from blendfusion.language.query_text.similar_to import (
    CHARACTER_SET,
    of_whole_text,
    regular_expression,
)

_GLOB = {"*": "(?s:.*)", "?": "(?s:.)"}


def glob(pattern: str) -> str:
    """The expression that a pattern of SQLite's GLOB is."""
    parts = re.findall(rf"{CHARACTER_SET}|.", pattern, re.DOTALL)
    return of_whole_text(_GLOB.get(p) or (p if len(p) > 1 else re.escape(p)) for p in parts)


OF_OPERATORS = {"GLOB": glob, "SIMILAR": regular_expression}
