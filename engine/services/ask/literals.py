"""Drafted queries, and texts about them, as ``show_values`` shows them: a model that writes a query
has seen values of the tables, and may write one as a literal, a name or a comment."""

from __future__ import annotations

import re
from collections.abc import Collection

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.language.query_text.tokenizer import QUOTED, is_keyword, tokenize
from blendfusion.redaction import WITHHELD, Redaction
from blendfusion.services.ask.links import words_of
from blendfusion.udfs.declare.arguments import quoted_name

_PARTS = re.compile(
    r"""[eE]'(?P<escaped>(?:[^'\\]|\\.|'')*)'|'(?P<plain>(?:[^']|'')*)'"""
    r"""|(?P<name>"(?:[^"]|"")*")|(?P<other>--[^\n]*|/\*.*?\*/|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)""",
    re.DOTALL,
)
"""The parts of a query in which a quote may stand: strings, names, comments and dollar quotes."""
_COMMENTS = re.compile(r"\S(?:.*\S)?", re.DOTALL)
_SYNTAX = frozenset(
    """both cast current day dow doy epoch exclude extract following group hour ignore leading
    materialized microsecond millisecond minute month nulls last ordinality preceding precision quarter
    respect second signed ties trailing try_cast unbounded unsigned week within year zone""".split()
)
"""Words of SQL's syntax that the tokenizer takes for names."""
_ALIAS = re.compile(r"[a-z]|t[0-9]{1,2}")
"""Names that tell nothing: a letter, and those of tables as models count them."""


def strings(sql: str) -> list[str]:
    """The strings of a query; a quote in a name or a comment begins none.

    >>> strings("\\"it's\\" = 'L''Aquila' -- it's not 'Rome'")
    ["L'Aquila"]
    """
    return [text for found in _PARTS.finditer(sql) if (text := _text(found)) is not None]


def show_literals(text: str, redaction: Redaction) -> str:
    """A text about a query with the strings in it as ``redaction`` shows values.

    >>> show_literals("'L''Aquila' is no value", Redaction("off"))
    '… is no value'
    """
    if redaction.shows_all:
        return text

    def one(found: re.Match[str]) -> str:
        if found["name"]:
            return found[0]
        value = _text(found)
        return WITHHELD if value is None else redaction.quote(value)

    return _PARTS.sub(one, text)


def shown_query(
    sql: str, redaction: Redaction, names: Collection[str] = (), question: str = ""
) -> str:
    """A query, or a part of one, with its literals, and the names in it that a model may have made
    of values, as ``redaction`` shows values; without its comments. What stays is ``names`` (in
    lower case), names of such words (``avg_age``), words of SQL, short aliases (``a``, ``T1``),
    options, and what the person has said in the ``question``.

    >>> query = "SELECT CAST(age AS REAL) AS \\"Ann\\" FROM t1 WHERE city = 'Rome' LIMIT 3"
    >>> shown_query(query, Redaction("off"), {"age", "city"})
    'SELECT CAST(age AS REAL) AS … FROM t1 WHERE city = … LIMIT …'
    """
    if redaction.shows_all:
        return sql
    tokens = tokenize(sql)
    if not tokens:
        return _without_comments(sql)
    parts: list[str] = []
    at = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        option = following is not None and following.token_type == TokenType.FARROW
        parts.append(_without_comments(sql[at : token.start]))
        parts.append(
            sql[token.start : token.end + 1]
            if option or is_keyword(token) or _is_known(token, names) or _is_from(token, question)
            else _value(token, redaction)
        )
        at = token.end + 1
    return "".join((*parts, _without_comments(sql[at:])))


def _without_comments(between: str) -> str:
    """The text between two tokens; a comment, or what is no token, is hidden."""
    return _COMMENTS.sub(WITHHELD, between)


def _is_known(token: Token, names: Collection[str]) -> bool:
    if token.token_type not in (TokenType.VAR, TokenType.IDENTIFIER):
        return False
    folded = token.text.lower()
    if folded in names or folded in _SYNTAX or _ALIAS.fullmatch(folded):
        return True
    return all(word in names for word in words_of(folded.replace("_", " ")) or (folded,))


def _is_from(token: Token, question: str) -> bool:
    """Whether the words of a token stand side by side in the question."""
    words = " ".join(words_of(token.text))
    return bool(words) and f" {words} " in f" {' '.join(words_of(question))} "


def _value(token: Token, redaction: Redaction) -> str:
    if token.token_type == TokenType.STRING:
        return redaction.quote(token.text)
    text = redaction.pass_on(token.text)
    return quoted_name(text) if token.token_type in QUOTED and redaction.shows else text


def _text(found: re.Match[str]) -> str | None:
    text = found["plain"] if found["escaped"] is None else found["escaped"]
    return None if text is None else text.replace("''", "'")
