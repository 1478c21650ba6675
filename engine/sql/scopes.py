"""The common table expressions that are visible at a place in a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.call_sites import closing, nesting


def visible_tables(sql: str, tokens: Sequence[Token], at: int) -> str:
    """The WITH clause of the common table expressions that are visible at offset ``at`` of ``sql``,
    '' if there are none: those that end before it, in a query that surrounds it.
    """
    found: dict[str, str] = {}
    recursive = False
    for i, token in enumerate(tokens):
        if token.token_type == TokenType.WITH and token.start < at <= _end_of_query(tokens, i):
            recursive |= tokens[i + 1].token_type == TokenType.RECURSIVE
            for name, start, end in _definitions(tokens, i):
                if end <= at:
                    found[name] = sql[start:end]
    if not found:
        return ""
    return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(found.values())} "


def _end_of_query(tokens: Sequence[Token], at: int) -> int:
    """The offset at which the query with the WITH at position ``at`` ends: the bracket around
    it."""
    depth = 0
    for token in tokens[at:]:
        depth += nesting(token)
        if depth < 0:
            return int(token.start)
    return int(tokens[-1].end) + 1


def _definitions(tokens: Sequence[Token], at: int) -> Iterator[tuple[str, int, int]]:
    """(name, start, end) of each common table expression of the WITH at position ``at``."""
    i = at + 1
    if i < len(tokens) and tokens[i].token_type == TokenType.RECURSIVE:
        i += 1
    while i < len(tokens):
        first, word = i, i
        while word < len(tokens) and tokens[word].token_type != TokenType.ALIAS:
            word += 1
        body = word + 1
        while body < len(tokens) and tokens[body].token_type != TokenType.L_PAREN:
            body += 1  # AS [NOT] MATERIALIZED (…
        close = closing(tokens, body) if body < len(tokens) else None
        if close is None:
            return
        yield tokens[first].text.lower(), tokens[first].start, tokens[close].end + 1
        if close + 1 >= len(tokens) or tokens[close + 1].token_type != TokenType.COMMA:
            return
        i = close + 2
