"""Where operands end, with what stands behind calls: OVER, FILTER, WITHIN GROUP."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader

_SIGNS = (TokenType.DASH, TokenType.PLUS, TokenType.TILDE)
_PRODUCTS = (TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV)


def case_end(reader: Reader, at: int) -> int:
    """One past the END of the CASE at ``at``."""
    depth = 0
    while at < len(reader.tokens):
        depth += (reader.word(at) == "CASE") - (reader.word(at) == "END")
        at += 1
        if depth == 0:
            return at
    return at


def operand_end(reader: Reader, at: int) -> int:
    """One past the operand that starts at ``at``, with its sign, casts and window."""
    while reader.kind(at) in _SIGNS:
        at += 1
    if reader.word(at) == "CASE":
        return case_end(reader, at)
    stop = reader.operand_after(at)
    while True:
        if reader.word(stop) == "OVER":
            stop = reader.close.get(stop + 1, stop + 1) + 1
        elif reader.word(stop) in ("FILTER", "WITHIN"):
            opened = stop + 1 + (reader.word(stop) == "WITHIN")
            if not reader.opens(opened):
                return stop
            stop = reader.close[opened] + 1
        elif reader.kind(stop) == TokenType.DCOLON:
            stop = reader.type_end(stop + 1)
        else:
            return stop


def operand_start(reader: Reader, at: int) -> int:
    """Where the operand starts that ends before ``at``."""
    if reader.word(at - 1) == "END":
        depth, start = 0, at - 1
        while start >= 0:
            depth += (reader.word(start) == "END") - (reader.word(start) == "CASE")
            if depth == 0:
                return start
            start -= 1
    start = reader.operand_before(at)
    while reader.word(start - 1) in ("OVER", "FILTER", "GROUP", "WITHIN"):
        start = reader.operand_before(start - 1)
    return start


def is_product(reader: Reader, at: int) -> bool:
    """Whether the token at ``at`` is an operator that binds like ``*``."""
    return reader.kind(at) in _PRODUCTS
