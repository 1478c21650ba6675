"""Regular expressions that mean the same in every allowed Python."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ("engine", "planner", "udfs", "models", "native")
_POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]*\})\+|\(\?>")


def test_no_group_is_possessive() -> None:
    """Python before 3.11.5 matches such a group wrongly where there is a choice inside (gh-106052).
    Possessive characters are right, as in ``[^"]*+``."""
    assert _POSSESSIVE_GROUP.search('(?:[^"]++|"")*+"')
    files = (file for folder in PACKAGE for file in (ROOT / folder).rglob("*.py"))
    found = [file for file in files if _POSSESSIVE_GROUP.search(file.read_text("utf-8"))]
    assert found == []
