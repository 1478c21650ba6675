"""``CREATE MATERIALIZED VIEW v AS …``, ``REFRESH v``, ``EXPLAIN REFRESH v`` and ``DROP MATERIALIZED
VIEW v``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.tokenizer import QUOTED
from blendfusion.services.views.growth import FORM, growing_tables
from blendfusion.services.views.views import Refresh

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.views.session import ViewKeeping

_CREATE = "CREATE MATERIALIZED VIEW v AS SELECT …."


def create_view(session: ViewKeeping, sql: str) -> Frame:
    """Carry out a CREATE: a frame of what was asked. Raises QueryError."""
    tree = TokenTree(_statement(sql))
    name, query, unless, options = _parts(tree)
    if unless and session.kept_views.has(name):
        return session.new_table(pa.table({}))
    is_path = "." in name and not _is_one_word(tree, name)
    made = session.kept_views.create(
        name,
        query,
        replaces=tree.word(1) == "OR",
        grows=growing_tables(options["GROWS"]) if "GROWS" in options else {},
        in_database=is_path,
        kept_as=options.get("FORMAT", "parquet").lower(),
    )
    return _report(session, made)


def explain_create(session: ViewKeeping, sql: str) -> Frame:
    """The frame of EXPLAIN CREATE: what the query would ask beyond the answers that a view of that
    name keeps. Raises QueryError."""
    name, query, *_ = _parts(TokenTree(_statement(sql)))
    return session.new_table(pa.table({"plan": session.kept_views.explain_query(name, query)}))


def refresh_view(session: ViewKeeping, sql: str) -> Frame:
    """Carry out a REFRESH: a frame of what was asked. Raises QueryError."""
    tree = TokenTree(_statement(sql))
    return _report(session, session.refresh_view(_only_name(tree, 1, "REFRESH v.")))


def explain_refresh(session: ViewKeeping, sql: str) -> Frame:
    """The frame of EXPLAIN REFRESH: why, and what would be asked. Raises QueryError."""
    tree = TokenTree(_statement(sql))
    lines = session.kept_views.explain(_only_name(tree, 2, "EXPLAIN REFRESH v."))
    return session.new_table(pa.table({"plan": lines}))


def drop_view(session: ViewKeeping, sql: str) -> Frame:
    """Carry out a DROP: an empty frame. Raises QueryError."""
    tree = TokenTree(_statement(sql))
    unless = tree.words[3:5] == ["IF", "EXISTS"]
    name, behind = _name(tree, 3 + 2 * unless, "DROP MATERIALIZED VIEW v.")
    if behind != len(tree.tokens):
        raise tree.refusal(behind, "this DROP goes on", "DROP MATERIALIZED VIEW v.")
    if not unless or session.kept_views.has(name):
        session.kept_views.drop(name)
    return session.new_table(pa.table({}))


def _statement(sql: str) -> str:
    return sql.rstrip().rstrip(";")


def _is_one_word(tree: TokenTree, name: str) -> bool:
    return any(tree.is_name(at) and tree.name(at) == name for at in range(len(tree.tokens)))


def _parts(tree: TokenTree) -> tuple[str, str, bool, dict[str, str]]:
    """The name and the query of CREATE …, whether it says IF NOT EXISTS, and its options by name.
    Blanks replace the text before the query, so that places in it stay."""
    at = tree.words.index("VIEW") + 1
    unless = tree.words[at : at + 3] == ["IF", "NOT", "EXISTS"]
    name, behind = _name(tree, at + 3 * unless, _CREATE)
    options: dict[str, str] = {}
    if tree.word(behind) == "WITH" and tree.opens(behind + 1):
        begin, behind = behind, tree.close[behind + 1] + 1
        for at in range(begin + 2, behind, 4):
            key, ends = tree.word(at), tree.word(at + 3) == "," or at + 4 == behind
            is_text = tree.word(at + 1) == "=" and tree.kind(at + 2) == TokenType.STRING
            text = tree.tokens[at + 2].text if is_text else ""
            known = key == "GROWS" or (key == "FORMAT" and text.lower() in ("parquet", "lance"))
            if not (known and is_text and ends) or key in options:
                raise tree.refusal(begin, "this is no option of a view", FORM)
            options[key] = text
    if tree.word(behind) != "AS" or behind + 1 >= len(tree.tokens):
        raise tree.refusal(min(behind, len(tree.tokens) - 1), "this CREATE has no query", _CREATE)
    start = tree.tokens[behind + 1].start
    return name, re.sub(r"[^\n]", " ", tree.text[:start]) + tree.text[start:], unless, options


def _only_name(tree: TokenTree, at: int, form: str) -> str:
    at += 2 * (tree.words[at : at + 2] == ["MATERIALIZED", "VIEW"])
    name, behind = _name(tree, at, form)
    if behind != len(tree.tokens):
        raise tree.refusal(behind, "a REFRESH has the name of one view", form)
    return name


def _name(tree: TokenTree, at: int, form: str) -> tuple[str, int]:
    """The name of a view, as DataFusion reads one, and the token behind it. That of one in a
    database has several words."""
    if not tree.is_name(at):
        raise QueryError("the name of a materialised view is missing", hint=form)
    token = tree.tokens[at]
    text = str(tree.source_text(at, at + 1))
    name = token.text if token.token_type in QUOTED or text[0] == '"' else text.lower()
    if tree.kind(at + 1) != TokenType.DOT:
        return name, at + 1
    rest, behind = _name(tree, at + 2, form)
    return f"{name}.{rest}", behind


def _report(session: ViewKeeping, done: Refresh) -> Frame:
    """One row of what a refresh did; its trace is that of the query."""
    view = done.view
    row = {
        "view": view.name,
        "rows": view.rows,
        "version": view.version,
        "asked": 0 if done.trace is None else done.trace.usage.values,
        "rewritten": done.is_rewritten,
        "why": done.why,
    }
    frame = session.new_table(pa.Table.from_pylist([row]))
    frame.latest.trace = done.trace
    return frame
