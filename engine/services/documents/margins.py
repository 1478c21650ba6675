"""Headers and footers: lines at the edges of a page that neighbouring pages repeat."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from blendfusion.services.documents.words import Line, Word, lines_of

_EDGE = 0.13
"""The part of a page's height that is its upper or lower edge."""
_MOST = 3
"""The lines of a header."""
_NUMBER = re.compile(
    r"[-–—\s]*+((page|p\.|seite|página)\s*+)?(#|[ivxlc]{1,6})(\s*+(of|/|von|de|sur)\s*+#)?[-–—\s]*+",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")

Edge = tuple[bool, str]
"""Whether a line is at the top, and its text without numbers."""


def edges_of(words: Sequence[Word], height: float) -> dict[Edge, list[Word]]:
    """The lines at the edges of a page."""
    found: dict[Edge, list[Word]] = {}
    lines = lines_of(words)
    for line in lines[:_MOST]:
        if line.box[3] < _EDGE * height:
            found.setdefault((True, _shape(line)), []).extend(line.words)
    for line in lines[-_MOST:]:
        if line.box[1] > (1 - _EDGE) * height:
            found.setdefault((False, _shape(line)), []).extend(line.words)
    return found


def margins(
    words: Sequence[Word], height: float, others: Collection[Edge]
) -> tuple[list[Word], list[Word], list[Word]]:
    """The words of the header, of the body and of the footer. ``others``: edges of neighbouring
    pages."""
    header: list[Word] = []
    footer: list[Word] = []
    for (top, shape), found in edges_of(words, height).items():
        if (top, shape) in others or _NUMBER.fullmatch(shape):
            (header if top else footer).extend(found)
    gone = {id(word) for word in (*header, *footer)}
    body = [word for word in words if id(word) not in gone]
    return (header, body, footer) if body else ([], list(words), [])


def _shape(line: Line) -> str:
    return _DIGITS.sub("#", line.text).strip()
