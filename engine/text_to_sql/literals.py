"""Literals in drafted queries and in texts about them, shown as values are."""

from __future__ import annotations

import re

from blendfusion.redaction import WITHHELD, Redaction

_PARTS = re.compile(
    r"""[eE]'(?P<escaped>(?:[^'\\]|\\.|'')*)'|'(?P<plain>(?:[^']|'')*)'"""
    r"""|(?P<name>"(?:[^"]|"")*")|(?P<other>--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)""",
    re.DOTALL,
)
"""The parts of a query in which a quote may stand: strings, names, comments and dollar quotes."""


def strings(sql: str) -> list[str]:
    """The strings of a query; a quote in a name or a comment begins none.

    >>> strings("\\"it's\\" = 'L''Aquila' -- it's not 'Rome'")
    ["L'Aquila"]
    """
    return [text for found in _PARTS.finditer(sql) if (text := _text(found)) is not None]


def shown(text: str, redaction: Redaction) -> str:
    """``text`` with the strings in it as ``redaction`` shows values, and without the comments: a
    model that writes a query has seen values of the tables.

    >>> shown("city = 'L''Aquila'", Redaction("off")), shown("city = 'Rome'", Redaction("on"))
    ('city = …', "city = 'Rome'")
    """
    if redaction.shows_all:
        return text

    def one(found: re.Match[str]) -> str:
        if found["name"]:
            return found[0]
        value = _text(found)
        return WITHHELD if value is None else redaction.quoted(value)

    return _PARTS.sub(one, text)


def _text(found: re.Match[str]) -> str | None:
    text = found["plain"] if found["escaped"] is None else found["escaped"]
    return None if text is None else text.replace("''", "'")
