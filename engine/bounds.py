"""How deep and how long a query's text may be: beyond, DataFusion's parser takes exponential time, or its
recursion ends the process."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.callsites import nesting, tokenize
from blendfusion.errors import QueryError

MOST_NESTED = 32
"""Brackets in brackets. DataFusion 55 reads 32 ``NOT (`` in 40 ms, 40 of them in a minute."""
MOST_CHAINED = 4_000
"""Operators in one expression, or tables in one FROM. 4,000 ANDs take DataFusion 55 some seconds to
plan; 20,000 overflow its stack."""

_NO_OPERATORS = {
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.DOT,
    TokenType.WHEN,
    TokenType.THEN,
}


def check_bounds(query: str) -> None:
    """Raise QueryError for a text that DataFusion must not be given."""
    if len(query) <= 2 * MOST_CHAINED and sum(map(query.count, "([{")) <= MOST_NESTED:
        return  # too short to be either
    chained = [0]
    for token in tokenize(query):
        depth = nesting(token)
        if depth > 0:
            chained.append(0)
        elif depth < 0:
            chained = chained[:-1] or [0]
        elif token.token_type == TokenType.COMMA:
            chained[-1] = 0
        elif token.token_type not in _NO_OPERATORS:
            chained[-1] += 1
        if len(chained) > MOST_NESTED + 1:
            raise QueryError(
                f"line {token.line}: brackets are nested more than {MOST_NESTED} deep",
                hint="Give parts of the query names: WITH name AS (…).",
            )
        if chained[-1] > MOST_CHAINED:
            raise QueryError(
                f"line {token.line}: more than {MOST_CHAINED:,} operators in one expression",
                hint="Write equal comparisons as IN (…), or join a table of the values.",
            )
