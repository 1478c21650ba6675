"""What SUQL's queries take from PostgreSQL and DataFusion has not: ``&&``, ``'{a,b}'::text[]``, and
intervals of times such as ``'2:13.32'``."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import TokenType

from blendfusion.dialects.reader import Reader
from blendfusion.dialects.translation import Piece
from blendfusion.dialects.weaver import Form, Weaver
from blendfusion.udfs.call import quoted

_INTERVALS = (
    ("^([0-9]+):([0-9]+):([0-9.]+)$", "${1} hours ${2} minutes ${3} seconds"),
    ("^([0-9]+):([0-9]+[.][0-9]+)$", "${1} minutes ${2} seconds"),
    ("^([0-9]+):([0-9]+)$", "${1} hours ${2} minutes"),
    ("^([0-9]+([.][0-9]+)?)$", "${1} seconds"),
)
"""The times that PostgreSQL reads as intervals, and the same in words."""


def claim(weaver: Weaver, *, but: Iterable[int] = ()) -> None:
    """Have PostgreSQL's forms written in DataFusion's, ``but`` for the operators at some positions."""
    reader, skipped = weaver.reader, set(but)
    for at in range(len(reader.tokens)):
        if reader.kind(at) == TokenType.DAMP and at not in skipped:
            _overlap(weaver, at)
        elif reader.kind(at) == TokenType.DCOLON:
            _cast(weaver, at)
        elif reader.word(at) == "CAST" and reader.opens(at + 1):
            _cast_function(weaver, at)


def listed(reader: Reader, start: int, stop: int) -> list[int] | None:
    """The positions of the texts in ``ARRAY['a', 'b']``; None if the tokens are anything else."""
    if reader.kind(start) == TokenType.ARRAY:
        start += 1
    while reader.kind(stop - 1) == TokenType.R_BRACKET and reader.close.get(start) != stop - 1:
        cast = stop - 1
        while cast > start and reader.kind(cast) != TokenType.DCOLON:
            cast -= 1
        stop = cast if cast > start else start
    if reader.kind(start) != TokenType.L_BRACKET or reader.close.get(start) != stop - 1:
        return None
    parts = reader.parts(start + 1, stop - 1)
    texts = [a for a, b in parts if b == a + 1 and reader.kind(a) == TokenType.STRING]
    return texts if len(texts) == len(parts) else None


def _overlap(weaver: Weaver, at: int) -> None:
    start, stop = weaver.reader.operand_before(at), weaver.reader.operand_after(at + 1)

    def write() -> Iterable[Piece | str]:
        yield "array_has_any("
        yield from weaver.woven(start, at)
        yield ", "
        yield from weaver.woven(at + 1, stop)
        yield ")"

    weaver.add(Form(start, stop, write))


def _cast(weaver: Weaver, at: int) -> None:
    reader = weaver.reader
    stop = reader.type_end(at + 1)
    literal = reader.kind(at - 1) == TokenType.STRING
    text = reader.tokens[at - 1].text.strip() if literal else ""
    if literal and reader.kind(stop - 1) == TokenType.R_BRACKET and text[:1] + text[-1:] == "{}":
        items = [item.strip().strip('"') for item in text[1:-1].split(",")]
        array = f"ARRAY[{', '.join(quoted(i) for i in items if i)}]"
        weaver.add(Form(at - 1, at, lambda: [array]))
    elif reader.word(at + 1) == "INTERVAL" and (":" in text or not literal):
        start = reader.operand_before(at)
        weaver.add(Form(start, stop, lambda: _interval(weaver.woven(start, at))))


def _cast_function(weaver: Weaver, at: int) -> None:
    """``CAST(x AS INTERVAL)``."""
    reader = weaver.reader
    close = reader.close[at + 1]
    if reader.word(close - 1) == "INTERVAL" and reader.word(close - 2) == "AS":
        weaver.add(Form(at, close + 1, lambda: _interval(weaver.woven(at + 2, close - 2))))


def _interval(value: Iterable[Piece | str]) -> Iterable[Piece | str]:
    yield "CAST(" + "regexp_replace(" * len(_INTERVALS)
    yield from value
    for pattern, words in _INTERVALS:
        yield f", {quoted(pattern)}, {quoted(words)})"
    yield " AS INTERVAL)"
