"""Parses a query with sqlglot, without its logging, which would contain the query's text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser, binary_range_parser
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.tokenizer import nesting, tokenize, word

STOP = "stop"
"""Where a DESC that does not mention NULLs ends in the text: metadata of an ``exp.Ordered``."""

_GAP = "bf_gap_"
_MOST_GAPS = 8
_PAIRS = {"@>": TokenType.AT_GT, "<@": TokenType.LT_AT}
_BETWEEN = {
    *("SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER"),
    *("LIMIT", "OFFSET", "UNION", "INTERSECT", "EXCEPT", "ON", "AND", "OR", "AS", "ASC", "DESC"),
    *("JOIN", "LEFT", "RIGHT", "INNER", "FULL", "CROSS", "WHEN", "THEN", "ELSE", "END", "BY"),
}
"""The words that delimit an expression."""


class ParsedStatement(NamedTuple):
    """The tree of a statement, and the offsets of the parts that sqlglot cannot read."""

    tree: exp.Expr | None
    gaps: tuple[tuple[int, int], ...] = ()


class _Silent(Parser):
    RANGE_PARSERS = {  # noqa: RUF012 as sqlglot declares it
        **Parser.RANGE_PARSERS,
        TokenType.TILDE: binary_range_parser(exp.RegexpLike),
    }
    failed = -1
    """The offset of the token at which the last attempt ended."""

    def _warn_unsupported(self) -> None:
        """sqlglot would log the statements that it takes as text."""

    def raise_error(self, message: str, token: Token | None = None) -> None:
        found = token or self._curr or self._prev
        self.failed = found.start if found else -1
        super().raise_error(message, found or Token.string(""))

    def _parse_ordered(
        self, parse_method: Callable[[], exp.Expr | None] | None = None
    ) -> exp.Ordered | None:
        ordered = super()._parse_ordered(parse_method)
        if ordered is not None and self._prev.token_type == TokenType.DESC:
            ordered.meta[STOP] = self._prev.end + 1
        return ordered


def tree_of(sql: str) -> exp.Expr | None:
    """The syntax tree of one statement; None if sqlglot cannot read it."""
    return _tree(tokenize(sql), sql)[0]


def parse_statement(tokens: Sequence[Token], sql: str, kept: Iterable[str]) -> ParsedStatement:
    """Parses one statement. An expression that sqlglot cannot parse becomes a function whose
    arguments are the calls of ``kept`` in that expression."""
    known, found = frozenset(kept), list(tokens)
    if found and word(found[0]) == "PREPARE":  # name (types) AS
        found = found[next((i + 1 for i, t in enumerate(found) if word(t) == "AS"), 0) :]
    gaps: list[tuple[int, int]] = []
    for _ in range(_MOST_GAPS):
        tree, failed = _tree(found, sql)
        if tree is not None:
            return ParsedStatement(tree, tuple(gaps))
        at = next((i for i, t in enumerate(found) if t.start >= failed), len(found) - 1)
        start, end = _expression(found, at)
        inside = found[start:end]
        if not inside or any(word(t) in ("SELECT", "WITH", "VALUES") for t in inside):
            break
        gaps.append((inside[0].start, inside[-1].end + 1))
        found[start:end] = _gap(inside, known)
    return ParsedStatement(None, tuple(gaps))


def _tree(tokens: Sequence[Token], sql: str) -> tuple[exp.Expr | None, int]:
    """The tree, or None and the offset at which it fails."""
    parser = _Silent()
    try:
        return parser.parse(list(_operators(tokens)), sql)[0], -1
    except (SqlglotError, RecursionError, IndexError):
        return None, parser.failed


def _operators(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with ``@>`` and ``<@`` as one, and IS UNKNOWN as IS TRUE."""
    whole = None
    for at, first in enumerate(tokens):
        if whole is not None:
            whole = None
            continue
        second = tokens[at + 1] if at + 1 < len(tokens) else None
        pair = "" if second is None else first.text + second.text
        if second is not None and pair in _PAIRS and first.end + 1 == second.start:
            whole = Token(_PAIRS[pair], pair, first.line, first.col, first.start, second.end)
        elif first.text.upper() == "UNKNOWN" and _is_tested(tokens, at):
            first = Token(TokenType.TRUE, "TRUE", first.line, first.col, first.start, first.end)
        yield whole or first


def _is_tested(tokens: Sequence[Token], at: int) -> bool:
    """IS or IS NOT stands before the token at ``at``."""
    before = [word(token) for token in tokens[max(0, at - 2) : at]]
    return before[-1:] == ["IS"] or before == ["IS", "NOT"]


def _expression(tokens: Sequence[Token], at: int) -> tuple[int, int]:
    """The positions of the expression around ``at``; those of the one around a gap in it."""
    while True:
        start, end = _outwards(tokens, at, -1) + 1, _outwards(tokens, at, 1)
        if not any(token.text == _GAP for token in tokens[start:end]) or start == 0:
            return start, end
        at = start - 1


def _outwards(tokens: Sequence[Token], at: int, step: int) -> int:
    """The position, from ``at`` in one direction, at which its expression is over."""
    depth, i = 0, at if word(tokens[at]) not in _BETWEEN or step < 0 else at + 1
    if step < 0 and i == at:
        i -= 1
    while 0 <= i < len(tokens):
        token = tokens[i]
        depth += step * nesting(token)
        if depth < 0:
            return i
        if depth == 0 and (token.token_type == TokenType.COMMA or word(token) in _BETWEEN):
            return i
        i += step
    return i


def _gap(inside: Sequence[Token], known: frozenset[str]) -> list[Token]:
    first, last = inside[0], inside[-1]

    def make(kind: TokenType, text: str, of: Token) -> Token:
        return Token(kind, text, of.line, of.col, of.start, of.end)

    calls: list[Token] = []
    for token in inside:
        if token.token_type == TokenType.VAR and token.text in known:
            calls += [make(TokenType.COMMA, ",", token)] if calls else []
            calls += [
                token,
                make(TokenType.L_PAREN, "(", token),
                make(TokenType.R_PAREN, ")", token),
            ]
    return [
        make(TokenType.VAR, _GAP, first),
        make(TokenType.L_PAREN, "(", first),
        *calls,
        make(TokenType.R_PAREN, ")", last),
    ]
