"""Rewrites ``FROM t SELECT a`` as ``SELECT a FROM t``, and ``FROM t`` as ``SELECT * FROM t``.

DataFusion plans both forms, but names in any letter case, the types of answers and the other rules
are looked up in queries that begin with SELECT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Piece, Translation, edit
from blendfusion.language.query_text.tokenizer import Sql, sql_of

_SET_OPERATORS = ("UNION", "INTERSECT", "EXCEPT", "MINUS")
_BEFORE = (*_SET_OPERATORS, "EXPLAIN", "ANALYZE", "VERBOSE")
_TAIL = ("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "FETCH")
_MAY_BEGIN = re.compile(
    r"(?:^|\(|\b(?:as|all|distinct|name|union|intersect|except|minus|explain|analyze|verbose))"
    r"\s*from\b",
    re.IGNORECASE,
)
_BEHIND_WITH = re.compile(r"\)\s*from\b", re.IGNORECASE), re.compile(r"\bwith\b", re.IGNORECASE)
"""The words of a text in which FROM begins the query behind common table expressions."""


def select_first(text: Sql) -> Translation | None:
    """``text`` with SELECT before FROM in each query; None if no query begins with FROM."""
    whole: Translation | None = None
    while True:
        found = _rewrite(whole.sql if whole is not None else text)
        if found is None:
            return whole
        whole = found if whole is None else whole.then(found)


def _rewrite(text: Sql) -> Translation | None:
    """``text`` with SELECT before FROM in the first query that begins with FROM."""
    given = text.strip()
    if not (_MAY_BEGIN.search(given) or all(words.search(given) for words in _BEHIND_WITH)):
        return None
    reader = Reader(text)
    behind = set(_bodies(reader)) if "WITH" in reader.words else set()
    for at in range(len(reader.tokens)):
        if reader.words[at] == "FROM" and (at in behind or _begins(reader, at)):
            return _select_first(reader, text, at)
    return None


def _begins(reader: Reader, at: int) -> bool:
    """Whether a query begins with the FROM at this place, after no common table expressions."""
    words = ["", "", *reader.words[:at]]
    before, last = words[-2:]
    if at == 0 or (reader.kind(at - 1) == TokenType.L_PAREN and before != "TRIM"):
        return True
    if last in ("ALL", "DISTINCT", "NAME"):
        return before in (*_SET_OPERATORS, "BY")
    return last in _BEFORE or (last == "AS" and words[2] == "CREATE")


def _bodies(reader: Reader) -> Iterator[int]:
    """The places behind lists of common table expressions."""
    end = len(reader.tokens)
    for start in range(end):
        at = start
        while at < end and reader.words[at] in ("WITH", "RECURSIVE"):
            at += 1
        while at > start and at < end:
            while at < end and reader.words[at] != "AS":
                at = reader.close.get(at, at) + 1
            while at < end and not reader.opens(at):
                at += 1
            at = reader.close.get(at, end) + 1
            if at >= end or reader.kind(at) != TokenType.COMMA:
                yield at
                break
            at += 1


def _select_first(reader: Reader, text: Sql, start: int) -> Translation:
    """``text`` with the query whose FROM is at ``start`` written SELECT first."""
    chosen, end = _until(reader, start + 1, "SELECT"), len(text)
    begin = reader.tokens[start].start
    if chosen is None:
        return edit(text, [(begin, begin, "SELECT * ")])
    behind = _until(reader, chosen + 1, *_TAIL) or _end(reader, chosen + 1)
    select = reader.tokens[chosen].start
    if behind < len(reader.tokens):
        end = reader.tokens[behind].start
    parts = [(0, begin), (select, end), None, (begin, select), (end, len(text))]
    pieces = [
        Piece(" ", select, select)
        if span is None
        else Piece(text[slice(*span)], *span, copied=True)
        for span in parts
        if span is None or span[0] < span[1]
    ]
    return Translation(sql_of(text), tuple(pieces))


def _until(reader: Reader, at: int, *words: str) -> int | None:
    """The first of ``words`` in the rest of this query, outside of brackets."""
    end = _end(reader, at)
    while at < end:
        if reader.words[at] in words:
            return at
        at = reader.close.get(at, at) + 1
    return None


def _end(reader: Reader, at: int) -> int:
    """The end of the query, or of its operand of a set operator."""
    while at < len(reader.tokens):
        operator = reader.words[at] in _SET_OPERATORS and reader.kind(at - 1) != TokenType.STAR
        if operator or reader.kind(at) in (TokenType.R_PAREN, TokenType.SEMICOLON):
            break
        at = reader.close.get(at, at) + 1
    return at
