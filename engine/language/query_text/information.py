"""SHOW and ``information_schema`` in a session: where a statement finds BlendFusion's functions and
options beside DataFusion's."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.udfs.declare.arguments import sql_string

INFORMATION = "information"
"""The schema of the tables that hold both."""
_USAGE = re.compile(r"blendfusion\s*\.\s*usage", re.IGNORECASE)
_SHOW = re.compile(r"\s*show\s", re.IGNORECASE)
_LIST_TABLES = (
    "SELECT table_catalog, table_schema, table_name, table_type FROM information_schema.tables "
    f"WHERE table_catalog <> '{CATALOG}'"
)
"""SHOW TABLES, without the rows between the stages of queries."""


def as_query(sql: str) -> str:
    """SHOW TABLES, ALL, FUNCTIONS and SHOW of an option, as a query; any other text as it is."""
    if _SHOW.match(sql) is None:
        return sql
    words = [t.text for t in TokenTree(sql).tokens if t.token_type != TokenType.SEMICOLON][1:]
    upper = [word.upper() for word in words]
    verbose = upper[-1:] == ["VERBOSE"]
    if verbose:
        upper.pop()
    settings = (
        f"SELECT name, value{', description' if verbose else ''} FROM {_place('df_settings')}"
    )
    match upper:
        case ["TABLES"]:
            return _LIST_TABLES
        case ["ALL"]:
            return settings
        case ["FUNCTIONS"]:
            return f"SELECT * FROM {_place('functions')}"
        case ["FUNCTIONS", "LIKE", _]:
            return f"SELECT * FROM {_place('functions')} WHERE function_name LIKE {sql_string(words[2])}"
        case ["BLENDFUSION", ".", name]:
            return f"{settings} WHERE name = {sql_string(f'blendfusion.{name.lower()}')}"
    return sql


def option_shown(sql: str) -> str | None:
    """The name of the option in ``SHOW blendfusion.name``; None for another text."""
    found = re.match(r"\s*show\s+blendfusion\s*\.\s*(\w+)", sql, re.IGNORECASE)
    return None if found is None else found[1].lower()


def from_information(sql: str, tables: Container[str]) -> tuple[Translation, frozenset[str]]:
    """``sql`` with the tables of ``information_schema`` in which BlendFusion has rows of its own,
    ``tables``, and their names."""
    edits = (
        list(_table_names(sql, tables))
        if "information_schema" in sql.lower() or CATALOG in sql or _USAGE.search(sql)
        else []
    )
    return edit(sql, (edit[:3] for edit in edits)), frozenset(edit[3] for edit in edits)


def _table_names(sql: str, tables: Container[str]) -> Iterator[tuple[int, int, str, str]]:
    tree = TokenTree(sql)
    for at in range(len(tree.tokens) - 2):
        first, dot, last = tree.tokens[at : at + 3]
        name = last.text.lower()
        schema = first.text.lower()
        if dot.token_type != TokenType.DOT or name not in tables:
            continue
        if first.token_type == TokenType.STRING or last.token_type == TokenType.STRING:
            continue
        is_own = schema == "blendfusion" and name == "usage"
        if is_own or (schema == "information_schema" and name not in ("functions", "usage")):
            before = tree.kind(at - 1) == TokenType.DOT
            start = tree.tokens[at - 2].start if before else first.start
            yield start, last.end + 1, _place(name), name
        elif schema == INFORMATION and tree.tokens[at - 2].text == CATALOG:
            yield last.end + 1, last.end + 1, "", name


def _place(name: str) -> str:
    return f"{CATALOG}.{INFORMATION}.{name}"
