"""Parses a query with sqlglot, without its logging, which would contain the query's text.

Its parser is compiled where sqlglotc is installed, so that no class can inherit from it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.tokenizer import nesting, tokenize, word

_STOP = "stop"
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


class _Silence(threading.local):
    """Leaves out what sqlglot logs while a thread is ``without_logging``."""

    parsing = False

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.parsing


_silence = _Silence()
logging.getLogger("sqlglot").addFilter(_silence.filter)


@contextmanager
def without_logging() -> Iterator[None]:
    """Inside the block, sqlglot logs nothing on this thread: it would log the statements that it
    takes as text."""
    _silence.parsing = True
    try:
        yield
    finally:
        _silence.parsing = False


def stop_of(key: exp.Ordered) -> int | None:
    """Where the DESC of a sort key ends in the text; None without one, or where it mentions
    NULLs."""
    stop = str(key.meta.get(_STOP))  # a comment of the query may have written it, too
    return int(stop) if stop.isdecimal() else None


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
    given = [*_operators(tokens)]
    try:
        with without_logging():
            return Parser().parse(given, sql)[0], -1
    except ParseError as problem:
        return None, _failure_offset(given, problem)
    except (SqlglotError, RecursionError, IndexError):
        return None, -1


def _failure_offset(tokens: Iterable[Token], problem: ParseError) -> int:
    """The offset of the token that ``problem`` is about."""
    found = {(one["line"], one["col"]) for one in problem.errors}
    return next((token.start for token in tokens if (token.line, token.col) in found), -1)


def _operators(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens with ``@>`` and ``<@`` as one, ``~`` as the operator that DataFusion has, and IS
    UNKNOWN as IS TRUE. A DESC carries its place to the key that it ends."""
    whole = None
    for at, first in enumerate(tokens):
        if whole is not None:
            whole = None
            continue
        second = tokens[at + 1] if at + 1 < len(tokens) else None
        pair = "" if second is None else first.text + second.text
        if second is not None and pair in _PAIRS and first.end + 1 == second.start:
            whole = Token(_PAIRS[pair], pair, first.line, first.col, first.start, second.end)
        elif first.token_type == TokenType.TILDE:
            first = _as(TokenType.RLIKE, first)
        elif first.token_type == TokenType.DESC:
            first = _as(TokenType.DESC, first, f"{exp.SQLGLOT_META} {_STOP}={first.end + 1}")
        elif first.text.upper() == "UNKNOWN" and _is_tested(tokens, at):
            first = _as(TokenType.TRUE, first)
        yield whole or first


def _as(kind: TokenType, token: Token, *comments: str) -> Token:
    """The token as one of another kind."""
    return Token(kind, token.text, token.line, token.col, token.start, token.end, [*comments])


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
