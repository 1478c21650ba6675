"""Gives casts names of their own: ``SELECT x, CAST(x AS DOUBLE), count(*) … GROUP BY 1, 2``.

DataFusion 55 names a cast as what it casts. So it refuses ``x`` beside ``CAST(x AS DOUBLE)`` as
keys of groups, and ``sum(x)`` beside ``sum(CAST(x AS INT))``. Its function ``arrow_cast`` is the
same cast, with the type in its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

_FUNCTIONS = {"CAST": "arrow_cast", "TRY_CAST": "arrow_try_cast"}

Edit = tuple[int, int, str]


def named_casts(sql: str, arrow_type: Callable[[str], str | None]) -> Translation | None:
    """``sql`` with its casts as calls of ``arrow_cast``; None if it has none. A column of a select
    list that has no alias is named as it is written. ``arrow_type``: the name that ``arrow_cast``
    has for a type of SQL; a cast to one without stays."""
    reader = Reader(sql)
    casts = [edit for at in range(len(reader.tokens)) for edit in _edits(reader, at, arrow_type)]
    if not casts:
        return None
    names: list[Edit] = []
    for _, _, select, _ in reader.selects:
        for start, end in reader.items(select):
            first, last = reader.span(start, end)
            is_cast = any(first <= edit[0] < last for edit in casts)
            if is_cast and alias_of(reader, start, end) is None:
                names.append((last, last, f" AS {quoted_name(sql[first:last])}"))
    return edit(sql, [*casts, *names])


def _edits(reader: Reader, at: int, arrow_type: Callable[[str], str | None]) -> Iterator[Edit]:
    """The edits for a cast whose word, or ``::``, is the token ``at``."""
    function = _FUNCTIONS.get(reader.word(at))
    if reader.kind(at) == TokenType.DCOLON:
        end = reader.type_end(at + 1)
        name = arrow_type(reader.source_text(at + 1, end))
        if name is not None:
            start = reader.span(reader.operand_before(at), at)[0]
            yield start, start, "arrow_cast("
            yield *reader.span(at, end), f", {sql_string(name)})"
    elif function is not None and reader.opens(at + 1):
        stop = reader.close[at + 1]
        behind = reader.first(at + 2, stop, TokenType.ALIAS)
        name = None if behind is None else arrow_type(reader.source_text(behind + 1, stop))
        if behind is not None and name is not None:
            yield *reader.span(at, at + 1), function
            yield *reader.span(behind, stop), f", {sql_string(name)}"
