"""``ATTACH 'url' AS name (TYPE kind, READ_WRITE)`` and ``DETACH name``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.token_tree import TokenTree

if TYPE_CHECKING:
    from blendfusion.frame import Frame

_FORM = "ATTACH 'shop.db' AS shop, ATTACH 'postgresql://…' AS shop (TYPE postgres, READ_WRITE)."


def attach_database(session: Any, sql: str) -> Frame:
    """Carry out an ATTACH: a frame with the name of the database. Raises QueryError."""
    url, name, options = _parse(sql)
    kind = next((value for key, value in options if key == "TYPE"), None)
    flags = {key for key, value in options if key != "TYPE"}
    if flags - {"READ_ONLY", "READ_WRITE"}:
        raise _refusal(sql)
    named = session.attach(url, name, kind=kind, read_only="READ_WRITE" not in flags)
    frame: Frame = session.new_table(pa.table({"name": [named]}))
    return frame


def detach_database(session: Any, sql: str) -> Frame:
    """Carry out a DETACH: an empty frame. Raises QueryError."""
    tree = _tree(sql)
    rest = [at for at in range(1, len(tree.tokens)) if tree.word(at) != "DATABASE"]
    if len(rest) != 1:
        raise QueryError("DETACH takes the name of a database", hint="DETACH shop.")
    session.detach(tree.tokens[rest[0]].text)
    frame: Frame = session.new_table(pa.table({}))
    return frame


def _parse(sql: str) -> tuple[str, str | None, list[tuple[str, str]]]:
    tree = _tree(sql)
    at = 2 if tree.word(1) == "DATABASE" else 1
    if at >= len(tree.tokens) or tree.kind(at) != TokenType.STRING:
        raise _refusal(sql)
    url, name = tree.tokens[at].text, None
    at += 1
    if at < len(tree.tokens) and tree.word(at) == "AS" and at + 1 < len(tree.tokens):
        name, at = tree.tokens[at + 1].text, at + 2
    if at == len(tree.tokens):
        return url, name, []
    if not tree.opens(at) or tree.close[at] != len(tree.tokens) - 1:
        raise _refusal(sql)
    return url, name, _options(tree, at)


def _tree(sql: str) -> TokenTree:
    return TokenTree(sql.rstrip().rstrip(";"))


def _options(tree: TokenTree, opened: int) -> list[tuple[str, str]]:
    """The names, in capital letters, and values of ``(TYPE sqlite, READ_ONLY)``."""
    found: list[tuple[str, str]] = []
    part: list[str] = []
    for at in range(opened + 1, tree.close[opened] + 1):
        if tree.kind(at) in (TokenType.COMMA, TokenType.R_PAREN):
            if part:
                found.append((part[0].upper(), " ".join(part[1:])))
            part = []
        else:
            part.append(tree.tokens[at].text)
    return found


def _refusal(sql: str) -> QueryError:
    return QueryError("this ATTACH is not of a form that is known", hint=f"For example {_FORM}")
