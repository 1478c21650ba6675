"""Numbers the columns that a select list names twice: ``SELECT a, a`` becomes ``a`` and ``a_1``.

DataFusion refuses two columns of one name, which other systems allow. A query that it refuses is
read here once more."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.udfs.declare.arguments import quoted_name

_LONGEST = 60
"""Characters of an expression that names its column."""


def number_repeats(text: str) -> Translation | None:
    """``text`` with a new name for each item of a select list that repeats an earlier one, by its
    alias or, without regard to letter case and qualifiers, its text; None if there is none."""
    reader = Reader(text)
    edits: list[tuple[int, int, str]] = []
    for _, _, select, _ in reader.selects:
        seen: dict[str, int] = {}
        names = {_key(reader, *item) for item in reader.items(select)}
        for start, end in reader.items(select):
            if reader.kind(end - 1) == TokenType.STAR:
                continue
            key = _key(reader, start, end)
            number = seen.get(key, 0)
            seen[key] = number + 1
            if not number:
                continue
            while f"{key}_{number}" in names:
                number += 1
            names.add(f"{key}_{number}")
            new = f" AS {quoted_name(f'{_item_name(reader, start, end)}_{number}')}"
            alias = alias_of(reader, start, end)
            first, last = reader.span(alias, end) if alias is not None else (0, 0)
            stop = reader.span(start, end)[1]
            edits.append((first, last, new[4:]) if alias is not None else (stop, stop, new))
    return edit(text, edits) if edits else None


def alias_of(reader: Reader, start: int, end: int) -> int | None:
    """Where the alias of an item of a select list stands; None if it has none."""
    if end - start > 2 and reader.word(end - 2) == "AS":
        return end - 1
    before = reader.kind(end - 2) if end - start > 1 else None
    is_plain = before not in (None, TokenType.DOT) and reader.is_name(end - 1)
    is_plain = is_plain and reader.word(end - 1) != "END"  # of CASE
    ends = before in (TokenType.R_PAREN, TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER)
    ends = ends or (before is not None and reader.word(end - 2) == "END")
    ends = ends or reader.kind(end - 3) == TokenType.DCOLON
    return end - 1 if is_plain and ends else None


def _key(reader: Reader, start: int, end: int) -> str:
    return _item_name(reader, start, end).lower()


def _item_name(reader: Reader, start: int, end: int) -> str:
    alias = alias_of(reader, start, end)
    if alias is not None:
        return reader.tokens[alias].text
    kept = (
        reader.tokens[at].text
        for at in range(start, end)
        if reader.kind(at) != TokenType.DOT and reader.kind(at + 1) != TokenType.DOT
    )
    return "".join(kept)[:_LONGEST]
