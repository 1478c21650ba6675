"""Patterns of GLOB and of SIMILAR TO as regular expressions of all of a text."""

from __future__ import annotations

import re

from blendfusion.language.query_text.similar_to import (
    CHARACTER_SET,
    of_whole_text,
    regular_expression,
)

_GLOB = {"*": "(?s:.*)", "?": "(?s:.)"}


def glob(pattern: str) -> str:
    """The regular expression that is equal to a pattern of SQLite's GLOB."""
    parts = re.findall(rf"{CHARACTER_SET}|.", pattern, re.DOTALL)
    return of_whole_text(_GLOB.get(p) or (p if len(p) > 1 else re.escape(p)) for p in parts)


def whole(pattern: str) -> str:
    """The regular expression of our SQL for one that matches whole texts."""
    return of_whole_text([pattern])


OF_OPERATORS = {"glob": glob, "similar": regular_expression, "whole": whole}
"""By their names in ``System.matches``."""
