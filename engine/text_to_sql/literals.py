"""Literals in drafted queries and in texts about them, shown as values are."""

from __future__ import annotations

import re

from blendfusion.redaction import WITHHELD, Redaction

STRING = re.compile(r"'((?:[^']|'')*)'")
"""A string in SQL."""


def shown(text: str, redaction: Redaction) -> str:
    """``text`` with the strings in it as ``redaction`` shows values: a model that writes a query
    has seen values of the tables.

    >>> shown("city = 'L''Aquila'", Redaction("off")), shown("city = 'Rome'", Redaction("on"))
    ('city = …', "city = 'Rome'")
    """
    if redaction.shows_all:
        return text
    if not redaction.shows:
        return STRING.sub(WITHHELD, text)
    return STRING.sub(lambda found: redaction.quoted(found[1].replace("''", "'")), text)
