"""Texts of several statements, cut at their semicolons."""

from __future__ import annotations

from typing import NamedTuple

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.tokenizer import tokenize


class Statement(NamedTuple):
    """A statement without its semicolon, the line that it begins on, from 1, and the place of its
    first character, from 0."""

    text: str
    line: int
    start: int


def split(text: str) -> tuple[list[Statement], str]:
    """The statements of ``text`` that a semicolon ends, and the rest behind the last one.

    Semicolons in strings, quoted names and comments end nothing. A text that cannot be read, such
    as one with an open quote, is all rest.

    >>> split("SELECT ';'; SELECT 2")
    ([Statement(text="SELECT ';'", line=1, start=0)], 'SELECT 2')
    """
    found: list[Statement] = []
    start = 0
    for token in tokenize(text):
        if token.token_type == TokenType.SEMICOLON:
            _add(found, text, start, token.start)
            start = token.end + 1
    rest = text[start:]
    return found, rest.strip() if tokenize(rest) or not found else ""


def has_open_quote(text: str) -> bool:
    """Whether the end of ``text`` stands inside quotes.

    >>> has_open_quote("SELECT 'it"), has_open_quote("SELECT 'it''s'")
    (True, False)
    """
    if not text.strip() or tokenize(text):
        return False
    return any(tokenize(f"{text}{quote}") for quote in ("'", '"'))


def script(text: str) -> list[Statement]:
    """Every statement of a script; the last one needs no semicolon."""
    found, rest = split(text)
    if rest:
        _add(found, text, text.rindex(rest), len(text))
    return found


def _add(found: list[Statement], text: str, start: int, end: int) -> None:
    body = text[start:end]
    tokens = tokenize(body)
    if tokens or (body.strip() and not _is_comment(body)):
        first = start + (tokens[0].start if tokens else len(body) - len(body.lstrip()))
        line = text.count("\n", 0, first) + 1
        found.append(Statement(text[first:end].strip(), line, first))


def _is_comment(text: str) -> bool:
    """Nothing but comments: the tokenizer finds no token in a text that it can read."""
    return not tokenize(text) and bool(tokenize(f"{text}\nx"))
