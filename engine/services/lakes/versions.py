"""``FROM orders VERSION AS OF 3``: earlier versions of tables of lakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.language.query_text.versioned_tables import with_parameters

if TYPE_CHECKING:
    from blendfusion.services.lakes.session import LakeReading

_KINDS: Mapping[str, str] = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "at",
    "SYSTEM_TIME": "at",
}
_FORM = "FROM orders VERSION AS OF 3, or FROM orders TIMESTAMP AS OF '2024-01-31T10:00:00Z'."


def with_versions(session: LakeReading, sql: str) -> tuple[str, dict[str, Any]]:
    """The text with parameters for the tables that it reads AS OF a version or a time, padded to
    its length, and the frames of these. Raises QueryError for a table that has no versions."""
    tree = TokenTree(sql)
    frames: dict[str, Any] = {}
    clauses = []
    for at in range(2, len(tree.tokens) - 2):
        if [tree.word(at + i) for i in range(1, 3)] != ["AS", "OF"] or tree.word(at) not in _KINDS:
            continue
        end = at - 1 if tree.word(at - 1) == "FOR" else at
        start = end - 1
        while tree.kind(start - 1) == TokenType.DOT:
            start -= 2
        name = f"v{len(frames)}"
        frames[name] = _frame(session, tree, (start, end), at)
        clauses.append((name, start, end - 1, at + 4))
    return with_parameters(tree, clauses), frames


def _frame(session: LakeReading, tree: TokenTree, path: tuple[int, int], at: int) -> Any:
    start, end = path
    table = tree.name(start)
    source = session.lakes.get(table) if end == start + 1 else None
    if source is None:
        known = ", ".join(session.lakes) or "none is registered"
        raise tree.refusal(
            start,
            f"{tree.source_text(start, end)} has no versions",
            f"Tables of Delta Lake and Iceberg have: {known}. session.register_lake(…).",
        )
    kind, literal = _KINDS[tree.word(at)], tree.tokens[at + 3]
    is_number = literal.token_type == TokenType.NUMBER and literal.text.isdigit()
    if is_number != (kind == "version") or (
        kind == "at" and literal.token_type != TokenType.STRING
    ):
        raise tree.refusal(at + 3, "a version is a whole number, and a time is a text", _FORM)
    value: Any = int(literal.text) if is_number else literal.text
    return session.lake_version(table, **{kind: value})
