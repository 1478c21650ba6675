"""Limits the depth and length of a query's text. Beyond these limits, DataFusion's parser takes
exponential time, or its recursion ends the process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError, check_encodable
from blendfusion.language.query_text.sqlglot_tree import tree_of
from blendfusion.language.query_text.tokenizer import nesting, tokenize

MOST_NESTED = 32
"""Brackets in brackets. DataFusion 55 reads 32 ``NOT (`` in 40 ms, 40 of them in a minute."""
MOST_CHAINED = 4_000
"""Operators in one expression, or tables in one FROM. 4,000 ANDs take DataFusion 55 some seconds to
plan; 20,000 overflow its stack."""

MOST_NESTED_UNREAD = 12
"""NOT (, CASE, CAST ( and INTERVAL in each other, in a text that sqlglot cannot read either:
DataFusion 55 tries each of them again for every mistake inside, 16 deep for a second, 20 deep for
half a minute."""

EXPLAINS = re.compile(
    r"(?:(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    r"\b(?:EXPLAIN|ANALYZE|VERBOSE|FORMAT|INDENT|TREE|PGJSON|GRAPHVIZ)\b)*",
    re.IGNORECASE | re.DOTALL,
)
"""The words of EXPLAIN before the statement."""
_MOST_EXPLAINS = 50
"""Each is one more call on DataFusion's stack, which ends at some thousand; it plans only one."""

_TRIED_AGAIN = re.compile(r"\b(NOT|CASE|CAST|TRY_CAST|INTERVAL)\b", re.IGNORECASE)
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
    """Raise QueryError for a text that DataFusion must not be given, or cannot."""
    check_encodable(query)
    explains = EXPLAINS.match(query)
    if explains and len(explains[0].split()) > _MOST_EXPLAINS:
        raise QueryError("line 1: EXPLAIN of EXPLAIN", hint="Write it once.")
    brackets = sum(map(query.count, "([{"))
    tried = len(_TRIED_AGAIN.findall(query))
    if max(len(query) - 2 * MOST_CHAINED, brackets - MOST_NESTED, tried - MOST_NESTED_UNREAD) <= 0:
        return
    tokens = tokenize(query)
    _check_length(tokens)
    deep = _tried_again(tokens) > MOST_NESTED_UNREAD and tree_of(query) is None
    if deep or _intervals(tokens) > MOST_NESTED_UNREAD:
        raise QueryError(
            "the query has a mistake, which cannot be found: CASE, CAST, INTERVAL or NOT are nested "
            f"more than {MOST_NESTED_UNREAD} deep",
            hint="Write the inner ones as queries of their own: WITH name AS (…).",
        )


def _check_length(tokens: Sequence[Token]) -> None:
    chained = [0]
    for token in tokens:
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


def _intervals(tokens: Sequence[Token]) -> int:
    """How often INTERVAL follows INTERVAL at most."""
    runs = (list(run) for _, run in groupby(t.token_type for t in tokens))
    return max((len(run) for run in runs if run[0] == TokenType.INTERVAL), default=0)


def _tried_again(tokens: Sequence[Token]) -> int:
    """How deep CASE, CAST ( and NOT ( stand in each other at most."""
    deepest, cases, brackets = 0, 0, [False]
    before = ""
    for token in tokens:
        word, depth = token.text.upper(), nesting(token)
        if depth > 0:
            brackets.append(_TRIED_AGAIN.fullmatch(before) is not None)
        elif depth < 0:
            brackets = brackets[:-1] or [False]
        cases = max(0, cases + (word == "CASE") - (word == "END"))
        deepest = max(deepest, cases + sum(brackets))
        before = word
    return deepest
