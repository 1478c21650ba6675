"""Statements that would change an attached database in a way that is left to its own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.statements import first_word
from blendfusion.language.query_text.token_tree import TokenTree

if TYPE_CHECKING:
    from blendfusion.services.sources.session import Attaching

_KINDS = ("TABLE", "VIEW", "SCHEMA")
_PROPERTIES = ("TEMP", "EXTERNAL", "MATERIALIZED")
_BEFORE_NAMES = (
    *(*_KINDS, *_PROPERTIES, "TEMPORARY", "UNBOUNDED"),
    *("OR", "REPLACE", "FROM", "IF", "NOT", "EXISTS"),
)
_REMEDIES = {
    "VIEW": "A view of the session has a name of its own: CREATE VIEW v AS SELECT …",
    "UPDATE": "frame.write_table('shop.t', mode='upsert', key='id') changes rows that exist.",
    "DELETE": "frame.write_table('shop.t', mode='replace') leaves the rows of a query.",
    "TEMP": "CREATE TABLE t AS SELECT … keeps a table in the memory of the session.",
}


def check_statement(session: Attaching, text: str) -> None:
    """Raise QueryError if ``text`` creates, drops or changes something in an attached database by
    other means than INSERT and CREATE TABLE … AS, for which DataFusion would do nothing."""
    verb = first_word(text)
    if verb not in ("CREATE", "DROP", "UPDATE", "DELETE"):
        return
    tree = TokenTree(text)
    at = 1
    while tree.word(at) in _BEFORE_NAMES and tree.kind(at + 1) != TokenType.DOT:
        at += 1
    if not tree.is_name(at) or tree.kind(at + 1) != TokenType.DOT:
        return
    name = next((own for own in session.attached if own.lower() == tree.name(at).lower()), None)
    before = ["TEMP" if word == "TEMPORARY" else word for word in tree.words[1:at]]
    parts = [word for word in before if word in (*_PROPERTIES, *_KINDS)]
    if name is None or (verb == "CREATE" and parts == ["TABLE"]):
        return
    words = [verb, *parts]
    found = [remedy for word, remedy in _REMEDIES.items() if word in words and verb != "DROP"]
    problem = f"{' '.join(words)} is left to the tools of the database '{name}'"
    raise tree.refusal(at, problem, found[0] if found else None)
