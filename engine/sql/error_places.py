"""Finds the place in a query that an error of DataFusion's is about."""

from __future__ import annotations

import re

from blendfusion.sql.source_map import Translation
from blendfusion.sql.tokenizer import identifier, tokenize

_UNKNOWN = re.compile(r"unknown (?:column|table|function) '(.+)'")
_AT = re.compile(r" at Line: (\d+), Column: (\d+)")


def unknown_name(message: str, text: str) -> tuple[int, int] | None:
    """Where the name that ``message`` calls unknown stands in ``text`` first, also as in
    ``'table::column'``; None for other messages and names."""
    found = _UNKNOWN.search(message)
    last = found[1].split(".")[-1].strip("\"'") if found else None
    for token in tokenize(text) if last else ():
        if last in (token.text, identifier(token), *token.text.split("::")):
            return token.start, token.end + 1
    return None


def syntax_place(problem: str, ours: Translation) -> tuple[int, int] | None:
    """Where DataFusion stops to understand ``ours.sql``, in its source; None if it does not say."""
    found = _AT.search(problem)
    lines = ours.sql.splitlines(keepends=True)
    if found is None or not 0 < int(found[1]) <= len(lines):
        return None
    start = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
    return ours.origin(start, start + 1)
