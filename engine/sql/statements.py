"""Recognises the statements that BlendFusion executes itself: EXPLAIN of a query with calls, and
SET blendfusion.…"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError
from blendfusion.sql.tokenizer import tokenize


@dataclass(frozen=True, slots=True)
class Explain:
    query: str
    analyze: bool
    verbose: bool


LIST_TABLES = (
    "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables "
    "WHERE table_catalog <> '__blendfusion'"
)
"""What SHOW TABLES says, without what lies between the stages of queries."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``SET blendfusion.name = value``; the value as text."""

    name: str
    value: str


def statement(sql: str) -> Explain | Setting | None:
    """What ``sql`` says to BlendFusion itself; None for a query like any other."""
    head = sql.lstrip()[:8].lower()
    if not head.startswith(("explain", "set ", "set\n", "set\t")):
        return None
    if head.startswith("explain"):
        return _explain(sql)
    return _setting(sql, tokenize(sql))


def explainable(sql: str) -> str | None:
    """The query of a statement that is planned without being carried out: itself, or that of
    CREATE … AS; None for other statements, as DROP."""
    tokens, depth = tokenize(sql), 0
    first = tokens[0].text.upper() if tokens else ""
    if first in ("SELECT", "WITH", "VALUES", "FROM", "(", "INSERT", "COPY"):
        return sql
    for at, token in enumerate(tokens[:-1] if first == "CREATE" else ()):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0 and token.token_type == TokenType.ALIAS:
            return sql[tokens[at + 1].start :]
    return None


def shows_tables(sql: str) -> bool:
    """``sql`` is SHOW TABLES."""
    return re.fullmatch(r"\s*show\s+tables\s*;?\s*", sql, re.IGNORECASE) is not None


_CREATES_TABLE = re.compile(
    r"\s*create\s+(or\s+replace\s+)?(temp(orary)?\s+)?table\b", re.IGNORECASE
)


def creates(sql: str) -> bool:
    """``sql`` is CREATE …: to plan it is to carry it out, or to plan it a second time an error."""
    return sql.lstrip()[:6].lower() == "create"


def creates_table(sql: str) -> bool:
    """``sql`` is CREATE TABLE, which DataFusion carries out as soon as it sees it."""
    return _CREATES_TABLE.match(sql) is not None


def _explain(sql: str) -> Explain | None:
    rest = sql.lstrip()[len("explain") :]
    flags = {"analyze": False, "verbose": False}
    while True:
        word = rest.split(maxsplit=1)[0].lower() if rest.split() else ""
        if word == "format":
            return None  # one of DataFusion's own ways to write its plan
        if word not in flags:
            return Explain(rest, flags["analyze"], flags["verbose"])
        flags[word] = True
        rest = rest.lstrip()[len(word) :]


def _setting(sql: str, tokens: list[Token]) -> Setting | None:
    words = [t for t in tokens if t.token_type != TokenType.SEMICOLON]
    own = len(words) >= 4 and words[1].text.lower() == "blendfusion"
    if not own or words[2].token_type != TokenType.DOT:
        return None
    if len(words) < 6 or words[4].text.lower() not in ("=", "to"):
        raise QueryError(f"{sql.strip()!r} is incomplete", hint="SET blendfusion.option = value")
    value = sql[words[5].start : words[-1].end + 1].strip()
    return Setting(words[3].text.lower(), value.strip("'"))
