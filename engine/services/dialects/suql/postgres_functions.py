"""Translates PostgreSQL features of SUQL's queries that DataFusion lacks: ``&&``,
``'{a,b}'::text[]``, and intervals of times such as ``'2:13.32'``."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.udfs.declare.arguments import sql_string

_INTERVALS = (
    ("^([0-9]+):([0-9]+):([0-9.]+)$", "${1} hours ${2} minutes ${3} seconds"),
    ("^([0-9]+):([0-9]+[.][0-9]+)$", "${1} minutes ${2} seconds"),
    ("^([0-9]+):([0-9]+)$", "${1} hours ${2} minutes"),
    ("^([0-9]+([.][0-9]+)?)$", "${1} seconds"),
)
"""The times that PostgreSQL reads as intervals, and the same in words."""


def claim(weaver: Weaver, *, but: Iterable[int] = ()) -> None:
    """Have PostgreSQL's forms written in DataFusion's, ``but`` for the operators at some
    positions."""
    reader, skipped = weaver.reader, set(but)
    for at in range(len(reader.tokens)):
        if reader.kind(at) == TokenType.DAMP and at not in skipped:
            _overlap(weaver, at)
        elif contains(reader, at) and at not in skipped:
            _array(weaver, at - 1)
            _array(weaver, at + 2)
        elif reader.kind(at) == TokenType.DCOLON:
            _cast(weaver, at)
        elif reader.word(at) == "CAST" and reader.opens(at + 1):
            _cast_function(weaver, at)


def contains(reader: Reader, at: int) -> bool:
    """``@>`` or ``<@`` stands at ``at``: the tokenizer sees two."""
    pair = reader.kind(at), reader.kind(at + 1)
    return (
        pair in ((TokenType.PARAMETER, TokenType.GT), (TokenType.LT, TokenType.PARAMETER))
        and reader.tokens[at].end + 1 == reader.tokens[at + 1].start
    )


def list_texts(reader: Reader, start: int, stop: int) -> list[str] | None:
    """The texts in ``ARRAY['a', 'b']`` or ``'{a,b}'`` as literals, with a cast or without; None if
    the tokens are anything else."""
    cast = next((i for i in range(start, stop) if reader.kind(i) == TokenType.DCOLON), stop)
    if cast == start + 1 and reader.kind(start) == TokenType.STRING:
        return _items(reader.tokens[start].text)
    start += reader.kind(start) == TokenType.ARRAY
    if reader.kind(start) != TokenType.L_BRACKET or reader.close.get(start) != cast - 1:
        return None
    parts = reader.parts(start + 1, cast - 1)
    if any(b != a + 1 or reader.kind(a) != TokenType.STRING for a, b in parts):
        return None
    return [reader.source_text(a, b) for a, b in parts]


def _items(text: str) -> list[str] | None:
    """The items of PostgreSQL's ``{a,b}`` as literals."""
    text = text.strip()
    if text[:1] + text[-1:] != "{}":
        return None
    items = (item.strip().strip('"') for item in text[1:-1].split(","))
    return [sql_string(item) for item in items if item]


def _overlap(weaver: Weaver, at: int) -> None:
    start, stop = weaver.reader.operand_before(at), weaver.reader.operand_after(at + 1)
    for side in (start, at + 1):
        _array(weaver, side)
    weaver.rewrite(start, stop, "array_has_any(", (start, at), ", ", (at + 1, stop), ")")


def _array(weaver: Weaver, at: int) -> None:
    """``'{a,b}'`` as an array."""
    reader = weaver.reader
    items = _items(reader.tokens[at].text) if reader.kind(at) == TokenType.STRING else None
    if items is not None:
        weaver.rewrite(at, at + 1, f"ARRAY[{', '.join(items)}]")


def _cast(weaver: Weaver, at: int) -> None:
    reader = weaver.reader
    stop = reader.type_end(at + 1)
    literal = reader.kind(at - 1) == TokenType.STRING
    if reader.kind(stop - 1) == TokenType.R_BRACKET:
        _array(weaver, at - 1)
    elif reader.word(at + 1) == "INTERVAL" and (not literal or ":" in reader.tokens[at - 1].text):
        start = reader.operand_before(at)
        weaver.rewrite(start, stop, *_interval((start, at)))


def _cast_function(weaver: Weaver, at: int) -> None:
    """``CAST(x AS INTERVAL)``."""
    reader = weaver.reader
    close = reader.close[at + 1]
    if reader.word(close - 1) == "INTERVAL" and reader.word(close - 2) == "AS":
        weaver.rewrite(at, close + 1, *_interval((at + 2, close - 2)))


def _interval(value: tuple[int, int]) -> Iterable[str | tuple[int, int]]:
    yield "CAST(" + "regexp_replace(" * len(_INTERVALS)
    yield value
    for pattern, words in _INTERVALS:
        yield f", {sql_string(pattern)}, {sql_string(words)})"
    yield " AS INTERVAL)"
