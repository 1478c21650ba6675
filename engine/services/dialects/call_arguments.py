"""The arguments of a call in a query, for remedies that repeat them."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"""(?:[\w.]|"[^"]+")+|'%[%\w\s/:.,-]*'""")
"""A column or a word, or a format of dates: what a remedy may repeat without showing a value."""


def plain_arguments(name: str, query: str) -> list[str] | None:
    """The arguments of the first call of ``name`` in a query; None without such a call, and where
    one of them is anything but a column, a word or a format of dates.

    >>> plain_arguments("strftime", "SELECT strftime('%Y', t.day) FROM t")
    ["'%Y'", 't.day']
    """
    begun = re.search(rf"\b{re.escape(name)}\s*\(", query, re.IGNORECASE)
    if begun is None:
        return None
    closed = query.find(")", begun.end())
    given = [part.strip() for part in query[begun.end() : closed].split(",")]
    return given if closed > 0 and all(map(_PLAIN.fullmatch, given)) else None
