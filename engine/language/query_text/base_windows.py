"""Writes windows that start from another one in full: DataFusion 55 plans ``OVER (w ROWS …)`` and
``WINDOW v AS (w ORDER BY a)`` as if ``w`` were not there."""

from __future__ import annotations

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import edit

_CLAUSES = ("PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS")


def base_windows(sql: str) -> str:
    """``sql`` with the clauses of a named window wherever another one starts with its name.

    >>> print(base_windows("SELECT sum(a) OVER (w ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY b)"))
    SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t WINDOW w AS (ORDER BY b)
    """
    reader = Reader(sql)
    if not reader.outer:
        return sql
    windows = _find_windows(reader)
    edits = []
    for at in range(2, len(reader.tokens) - 2):
        if at in windows or _is_over(reader, at):
            text = _clauses(reader, at, windows, ())
            if text is not None:
                edits.append((*reader.span(at + 1, at + 2), text))
    return str(edit(sql, edits).sql) if edits else sql


def _is_over(reader: Reader, at: int) -> bool:
    """Whether the parentheses at ``at`` are a window's."""
    behind = reader.word(at - 1) == "OVER" and reader.opens(at)
    return behind and (at - 2 in reader.open or reader.word(at - 2) == "NULLS")


def _find_windows(reader: Reader) -> dict[int, tuple[str, int, int]]:
    """The windows that WINDOW names, by where their parentheses open: the name, and the range of
    tokens that may use it."""
    found = {}
    for start, end, select, _ in reader.selects:
        at = select.items[1]
        while at < end and reader.word(at) != "WINDOW":
            at = reader.close.get(at, at) + 1
        while at + 3 < end and reader.word(at + 2) == "AS" and reader.opens(at + 3):
            found[at + 3] = reader.name(at + 1), start, end
            at = reader.close[at + 3] + 1
    return found


def _clauses(
    reader: Reader, at: int, windows: dict[int, tuple[str, int, int]], above: tuple[int, ...]
) -> str | None:
    """The clauses of the window that the parentheses at ``at`` start with; None if they start with
    none."""
    first = at + 1
    if not reader.is_name(first) or reader.word(first) in _CLAUSES:
        return None
    name = reader.name(first)
    around = [
        (end - start, opens)
        for opens, (own, start, end) in windows.items()
        if own == name and start <= at < end
    ]
    if not around or min(around)[1] in above:
        raise reader.refusal(first, f"the window {name} is not defined")
    opens = min(around)[1]
    inner = _clauses(reader, opens, windows, (*above, at, opens))
    rest = reader.source_text(opens + 1 + (inner is not None), reader.close[opens])
    return f"{inner or ''} {rest}".strip()
