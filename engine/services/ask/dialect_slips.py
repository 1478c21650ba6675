"""A draft in the SQL of another system, in ours: models write TOP, YEAR(), DATEDIFF, strftime and
texts in double quotes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from blendfusion.errors import BlendFusionError
from blendfusion.services.ask.check import FAILS, Attempt

if TYPE_CHECKING:
    from blendfusion.services.ask.state import AskState

_SYSTEMS = ("snowflake", "mysql", "blendsql")
"""The dialects that are tried in turn; blendsql has the functions of SQLite."""
_QUOTED = re.compile(r'"([^"]*)"')
_TOP = re.compile(r"\s*(SELECT(?:\s+DISTINCT)?)\s+TOP\s*\(?\s*(\d+)\s*\)?\s+(.*)", re.I | re.DOTALL)
_LIMIT = re.compile(r"\bLIMIT\b", re.IGNORECASE)


def is_slip(failed: Attempt) -> bool:
    """Whether a draft fails by what other systems know: a function, TOP, or a text in double
    quotes. A grouping that lacks columns is none: MySQL would take any of their values."""
    function = "unknown function" in failed.problem or _TOP.fullmatch(failed.sql) is not None
    return failed.rank == FAILS and (
        function or ("unknown column" in failed.problem and '"' in failed.sql)
    )


def in_our_words(session: AskState, sql: str, names: Collection[str]) -> Iterator[str]:
    """Translates a draft from each of ``_SYSTEMS``, in their order, and yields the results that
    differ from it. MySQL reads double quotes as those of a text, so it is left out if the draft has
    one of ``names`` in double quotes. Nothing runs."""
    limited = without_top(sql)
    if limited != sql:
        yield limited
    has_names = any(text.lower() in names for text in _QUOTED.findall(sql))
    for system in _SYSTEMS:
        if system == "mysql" and has_names:
            continue
        try:
            found = session.translated(limited, system)
        except BlendFusionError:
            continue
        if found != sql:
            yield found


def without_top(sql: str) -> str:
    """A query with LIMIT for its TOP.

    >>> without_top("SELECT TOP 5 a FROM t ORDER BY a")
    'SELECT a FROM t ORDER BY a LIMIT 5'
    """
    found = _TOP.fullmatch(sql)
    if found is None or _LIMIT.search(sql):
        return sql
    return f"{found[1]} {found[3]} LIMIT {found[2]}"
