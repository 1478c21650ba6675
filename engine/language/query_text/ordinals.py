"""Writes out ordinals of ORDER BY: ``SELECT k, round(sum(x)) … ORDER BY 2`` sorts by
``round(sum(x))``.

DataFusion refuses the ordinal of an item without an alias that computes with an aggregate. A query
that it refuses is read here once more."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Query, Reader, Select
from blendfusion.language.query_text.repeated_names import alias_of
from blendfusion.language.query_text.source_map import Translation, edit

_ENDS = {"LIMIT", "OFFSET", "FETCH"}


def expand_ordinals(text: str) -> Translation | None:
    """``text`` with the expression of an item in the place of its ordinal; None if there is none.
    An item without a call or with an alias keeps its ordinal, and so does a query with ``*`` or set
    operators."""
    reader = Reader(text)
    edits = [edit for query, _ in reader.scopes() for edit in _edits(reader, query)]
    return edit(text, edits) if edits else None


def _edits(reader: Reader, query: Query) -> Iterator[tuple[int, int, str]]:
    branch = query.branches[0] if len(query.branches) == 1 else None
    if not isinstance(branch, Select) or reader.word(branch.end) != "ORDER":
        return
    items = reader.items(branch)
    if any(_is_star(reader, *item) for item in items):
        return
    start = branch.end + 1
    end = next((at for at in range(start, query.end) if reader.word(at) in _ENDS), query.end)
    for first, last in reader.parts(start, end):
        alone = first + 1 == last or reader.word(first + 1) in ("ASC", "DESC", "NULLS")
        number = reader.tokens[first].text
        if reader.kind(first) != TokenType.NUMBER or not alone or not number.isdecimal():
            continue
        if not 0 < int(number) <= len(items):
            continue
        item = items[int(number) - 1]
        if alias_of(reader, *item) is None and _has_call(reader, *item):
            yield *reader.span(first, first + 1), reader.source_text(*item)


def _is_star(reader: Reader, start: int, end: int) -> bool:
    """Whether an item is ``*`` or ``t.*``, also with EXCLUDE or the like behind it."""
    stars = (at for at in range(start, end) if reader.kind(at) == TokenType.STAR)
    return any(at == start or reader.kind(at - 1) == TokenType.DOT for at in stars)


def _has_call(reader: Reader, start: int, end: int) -> bool:
    """Whether an item computes with an aggregate, perhaps: a number in its place would be an
    ordinal itself."""
    return any(
        reader.kind(at) == TokenType.L_PAREN and at > start and reader.is_name(at - 1)
        for at in range(start, end)
    )
