"""Writes comparisons of rows as comparisons of their parts: ``(a, b) = (1, 'x')`` as ``(a = 1 AND
b = 'x') IS TRUE``.

DataFusion compares structs, of which neither the planner nor a type inferred for a call knows the
parts, and whose literals Substrait cannot carry. Its rules stay: a comparison of rows is never
NULL, NULL equals NULL, and comes before every other value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.language.query_text.source_map import Translation

_Range: TypeAlias = "tuple[int, int]"
_Parts: TypeAlias = "list[str | _Range]"

_OPERATORS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "<>",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
}
_CONSTRUCTORS = ("ROW", "STRUCT")
_LITERALS = (TokenType.NUMBER, TokenType.STRING, TokenType.TRUE, TokenType.FALSE)


def row_values(reader: Reader) -> Translation | None:
    """The text with comparisons of rows written out: ``=``, ``<>``, ``<`` and the like, IN and NOT
    IN with lists of rows; None if it has none."""
    weaver = Weaver(reader)
    for at in range(1, len(reader.tokens)):
        if reader.kind(at - 1) == TokenType.R_PAREN:
            _compare(weaver, at)
    return weaver.whole() if weaver.forms else None


def _compare(weaver: Weaver, at: int) -> None:
    """Rewrite the comparison whose operator stands at ``at``, if both sides are rows."""
    reader = weaver.reader
    operator = _OPERATORS.get(reader.tokens[at].token_type)
    negated = reader.word(at) == "NOT" and reader.word(at + 1) == "IN"
    is_list = negated or reader.word(at) == "IN"
    if (operator is None and not is_list) or at - 1 not in reader.open:
        return
    left, right = _row(reader, reader.open[at - 1]), at + 1 + negated
    if left is None:
        return
    start, row = left
    if is_list:
        if not reader.opens(right):
            return
        stop = reader.close[right] + 1
        rows = [_row_of(reader, *part) for part in reader.parts(right + 1, stop - 1)]
        operator = "="
    else:
        right += reader.word(right) in _CONSTRUCTORS
        stop = reader.close.get(right, right) + 1
        rows = [_row_of(reader, at + 1, stop)]
    if not rows or not all(other is not None and len(other) == len(row) for other in rows):
        return
    parts: _Parts = ["(("]
    for i, other in enumerate(rows):
        assert other is not None
        assert operator is not None
        parts += [" OR "] * (i > 0)
        parts += _compare_rows(reader, row, other, "=" if operator == "<>" else operator)
    parts.append(f") IS {'NOT ' * (negated or operator == '<>')}TRUE)")
    weaver.rewrite(start, stop, *parts)


def _row(reader: Reader, opened: int) -> tuple[int, list[_Range]] | None:
    """(where the row starts whose parenthesis is ``opened``, its parts); None if it is no row."""
    start = opened - (reader.word(opened - 1) in _CONSTRUCTORS)
    if start == opened and (reader.is_called(opened) or reader.word(opened - 1) == "IN"):
        return None
    row = _row_of(reader, start, reader.close[opened] + 1)
    return None if row is None else (start, row)


def _row_of(reader: Reader, start: int, stop: int) -> list[_Range] | None:
    """The parts of a row from ``start`` to ``stop``; None if something else stands there."""
    opened = start + (reader.word(start) in _CONSTRUCTORS)
    if not reader.opens(opened) or reader.close[opened] != stop - 1:
        return None
    if reader.is_query(opened, stop):
        return None
    parts = reader.parts(opened + 1, stop - 1)
    return parts if len(parts) > 1 and all(a < b for a, b in parts) else None


def _compare_rows(
    reader: Reader, left: Sequence[_Range], right: Sequence[_Range], operator: str
) -> _Parts:
    pairs = [*zip(left, right, strict=True)]
    equal = [_equal(reader, a, b) for a, b in pairs]
    if operator == "=":
        return _together(equal, " AND ")
    differs: Callable[[Reader, _Range, _Range], _Parts] = _less
    if operator[0] == ">":
        pairs = [(b, a) for a, b in pairs]
    ways = [
        _together([*equal[:i], differs(reader, *pair)], " AND ") for i, pair in enumerate(pairs)
    ]
    if operator[-1] == "=":
        ways.append(_together(equal, " AND "))
    return _together(ways, " OR ")


def _together(terms: Sequence[_Parts], word: str) -> _Parts:
    parts: _Parts = ["("]
    for i, term in enumerate(terms):
        parts += [*([word] if i else []), *term]
    return [*parts, ")"]


def _equal(reader: Reader, left: _Range, right: _Range) -> _Parts:
    for one, other in ((left, right), (right, left)):
        if _is_null(reader, other):
            return [*_operand(reader, one), " IS NULL"]
    literal = _is_literal(reader, left) or _is_literal(reader, right)
    if literal:
        return [*_operand(reader, left), " = ", *_operand(reader, right)]
    # In DataFusion's grammar, AND binds the right operand closer.
    return ["(", *_operand(reader, left), " IS NOT DISTINCT FROM ", *_operand(reader, right), ")"]


def _less(reader: Reader, left: _Range, right: _Range) -> _Parts:
    if _is_null(reader, right):
        return ["FALSE"]
    if _is_null(reader, left):
        return [*_operand(reader, right), " IS NOT NULL"]
    less = [*_operand(reader, left), " < ", *_operand(reader, right)]
    if _is_literal(reader, left):
        return less
    first = [*_operand(reader, left), " IS NULL"]
    if not _is_literal(reader, right):
        first += [" AND ", *_operand(reader, right), " IS NOT NULL"]
    return ["(", *less, " OR ", *first, ")"]


def _operand(reader: Reader, part: _Range) -> _Parts:
    """A part of a row as an operand of a comparison."""
    return [part] if reader.operand_after(part[0]) == part[1] else ["(", part, ")"]


def _is_null(reader: Reader, part: _Range) -> bool:
    return part[1] - part[0] == 1 and reader.word(part[0]) == "NULL"


def _is_literal(reader: Reader, part: _Range) -> bool:
    """Whether a literal that is not NULL stands there."""
    start, end = part
    start += reader.kind(start) == TokenType.DASH
    start += end - start == 2 and reader.word(start) in ("DATE", "TIMESTAMP")
    return end - start == 1 and reader.kind(start) in _LITERALS
