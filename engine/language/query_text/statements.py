"""Recognises the statements that BlendFusion executes itself: EXPLAIN of a query with calls, and
SET blendfusion.…"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import Sql


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of a statement that is planned and not executed."""

    query: str
    """The query at its place in the text; blanks replace the text before it."""
    analyze: bool
    verbose: bool
    form: str
    """The FORMAT in lower case; '' for none."""
    creates: bool
    """The query is that of CREATE … AS."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``SET blendfusion.name = value``; the value as text."""

    name: str
    value: str


BLANK = r"(?:\s|--[^\n]*\n|/\*.*?\*/)"
"""A blank or a comment."""
_FIRST = re.compile(rf"{BLANK}*+(\w+)", re.DOTALL)
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM")
_PLANNED = (*_QUERIES, "INSERT", "COPY", "UPDATE", "DELETE")


def statement(sql: str) -> Explain | Setting | None:
    """The statement of ``sql`` that BlendFusion runs itself; None for a query, and for EXPLAIN of
    other statements, such as DROP."""
    match first_word(sql):
        case "EXPLAIN":
            return _explain(TokenTree(sql))
        case "SET":
            return _setting(TokenTree(sql))
    return None


def first_word(sql: str) -> str:
    """The first word of ``sql`` in upper case, behind comments; '' for another beginning."""
    found = _FIRST.match(sql)
    return found[1].upper() if found else ""


CREATES_TABLE = re.compile(
    rf"{BLANK}*+create{BLANK}++(or{BLANK}++replace{BLANK}++)?(temp(orary)?{BLANK}++)?table\b",
    re.IGNORECASE | re.DOTALL,
)


_INTO = re.compile(r"\binto\b", re.IGNORECASE)


def selects_into(sql: str) -> bool:
    """``sql`` is SELECT … INTO t …, which DataFusion carries out as soon as it sees it."""
    if first_word(sql) not in _QUERIES or not _INTO.search(sql):
        return False
    return _place_of_into(TokenTree(sql)) is not None


def _place_of_into(tree: TokenTree) -> int | None:
    """The place of the clause INTO, which is no option (``into => 5``), column or name in quotes;
    None without one."""
    for at, word in enumerate(tree.words):
        option = tree.kind(at + 1) == TokenType.FARROW
        column = at > 0 and tree.kind(at - 1) == TokenType.DOT
        if word == "INTO" and tree.kind(at) == TokenType.INTO and not option and not column:
            return at
    return None


_BEFORE_NAME = ("TEMP", "TEMPORARY", "UNLOGGED", "TABLE")


def created_by_into(sql: str) -> Translation:
    """SELECT … INTO t … as CREATE TABLE t AS SELECT …

    >>> created_by_into("SELECT a INTO t FROM r").sql
    'CREATE TABLE t AS SELECT a FROM r'
    """
    tree = TokenTree(sql)
    name, clause = _into(tree)
    first = tree.tokens[0].start
    return edit(sql, [(first, first, f"CREATE TABLE {name} AS "), clause])


def without_into(sql: str) -> str:
    """The query of SELECT … INTO t …"""
    return edit(sql, [_into(TokenTree(sql))[1]]).sql


def _into(tree: TokenTree) -> tuple[str, tuple[int, int, str]]:
    """The name of the table of SELECT … INTO as SQL, and the edit that leaves the clause out.
    Raises QueryError for a file, which other systems write: INTO OUTFILE 'a.csv'."""
    at = _place_of_into(tree)
    assert at is not None
    start = at + 1
    while tree.word(start) in _BEFORE_NAME:
        start += 1
    end = start + 1
    while tree.kind(end) == TokenType.DOT:
        end += 2
    if TokenType.STRING in (tree.kind(start), tree.kind(end)):
        raise tree.refusal(at, "INTO names no file", "Write COPY (SELECT …) TO 'file.csv'.")
    gone = tree.span(at - 1, at)[1] if at else 0
    return str(tree.source_text(start, end)), (gone, tree.span(at, end)[1], "")


_READS = {*_QUERIES, "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "SUMMARIZE"}


def is_planned_only(sql: str) -> bool:
    """``sql`` is a query that planning does not carry out, as it does EXPLAIN ANALYZE and SELECT …
    INTO."""
    tree = TokenTree(sql)
    runs = _place_of_into(tree) is not None or "ANALYZE" in tree.words
    return not runs and (tree.opens(0) or tree.word(0) in _READS)


def creates(sql: str) -> bool:
    """``sql`` is CREATE …: to plan it is to carry it out, or to plan it a second time an error."""
    return first_word(sql) == "CREATE"


def creates_table(sql: str) -> bool:
    """``sql`` is CREATE TABLE, which DataFusion carries out as soon as it sees it."""
    return CREATES_TABLE.match(sql) is not None


def query_inside(sql: str) -> tuple[int, int] | None:
    """The offsets of the query of CREATE TABLE … AS, INSERT INTO … or COPY (…) TO …; None for
    another statement, and for one without a query.

    >>> query_inside("COPY (SELECT 1) TO 'a.csv'")
    (6, 14)
    """
    if first_word(sql) not in ("CREATE", "INSERT", "COPY"):
        return None
    tree = TokenTree(sql)
    end = len(tree.tokens)
    while end and tree.kind(end - 1) == TokenType.SEMICOLON:
        end -= 1
    if not tree.balanced or tree.first(0, end, TokenType.SEMICOLON) is not None:
        return None
    if creates_table(sql):
        behind = tree.first(0, end, TokenType.ALIAS)
        start = end if behind is None else behind + 1
    elif tree.word(0) == "COPY" and tree.opens(1):
        start, end = 2, tree.close[1]
    elif tree.word(0) == "INSERT":
        start = next((i for i in range(end) if _is_query(tree, i) and not tree.depth(0, i)), end)
    else:
        return None
    return tree.span(start, end) if start < end and _is_query(tree, start) else None


def _is_query(tree: TokenTree, at: int) -> bool:
    return tree.word(at) in _QUERIES or (tree.opens(at) and tree.is_query(at, tree.close[at] + 1))


def selecting_all(sql: str) -> Translation | None:
    """``FROM t …`` without SELECT with ``SELECT *`` before it; None for another text.

    >>> selecting_all("FROM t LIMIT 3").sql
    'SELECT * FROM t LIMIT 3'
    """
    if first_word(sql) != "FROM":
        return None
    tree = TokenTree(sql)
    has_select = any(
        word == "SELECT" and not tree.depth(0, at) for at, word in enumerate(tree.words)
    )
    start = tree.tokens[0].start
    return None if has_select else edit(sql, [(start, start, "SELECT * ")])


def _explain(tree: TokenTree) -> Explain | None:
    at = tree.statement
    words = tree.words[1:at]
    if {"EXPLAIN", "FALSE", "OFF"} & set(words):
        return None
    creates = tree.word(at) == "CREATE"
    if creates:
        behind = tree.first(at, len(tree.tokens), TokenType.ALIAS)
        at = len(tree.tokens) if behind is None else behind + 1
    if at >= len(tree.tokens) or not (creates or tree.word(at) in _PLANNED or tree.opens(at)):
        return None
    form = tree.tokens[words.index("FORMAT") + 2].text.lower() if "FORMAT" in words else ""
    start = tree.tokens[at].start
    blank = re.sub(r"[^\n]", " ", tree.text[:start])
    query = Sql(blank + tree.text[start:], lambda: tree.tokens[at:])
    return Explain(query, "ANALYZE" in words, "VERBOSE" in words, form, creates)


def _setting(tree: TokenTree) -> Setting | None:
    words = [t for t in tree.tokens if t.token_type != TokenType.SEMICOLON]
    own = len(words) >= 4 and words[1].text.lower() == "blendfusion"
    if not own or words[2].token_type != TokenType.DOT:
        return None
    if len(words) < 6 or words[4].text.lower() not in ("=", "to"):
        raise QueryError(
            f"{tree.text.strip()!r} is incomplete", hint="SET blendfusion.option = value"
        )
    value = tree.text[words[5].start : words[-1].end + 1].strip()
    return Setting(words[3].text.lower(), value.strip("'"))
