"""Ends IS DISTINCT FROM before AND and OR.

``a IS DISTINCT FROM b AND c`` compares with ``b AND c`` in DataFusion 55, as if AND bound closer.
Its operator ``<=>`` is IS NOT DISTINCT FROM, and binds as other comparisons."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree

_JOINS = ("AND", "OR", "XOR")
_ENDS = {
    *("THEN", "ELSE", "WHEN", "END", "FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW"),
    *("ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "AS", "JOIN", "LEFT"),
    *("RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "ASC", "DESC", "NULLS", "SELECT"),
}


def distinct_from(sql: str) -> str:
    """``sql`` in which these comparisons have the precedence of SQL."""
    tree = TokenTree(sql)
    edits = [edit for at in range(len(tree.tokens)) for edit in _edits(tree, at)]
    return edit(sql, edits).sql if edits else sql


def _edits(tree: TokenTree, at: int) -> Iterator[tuple[int, int, str]]:
    """The edits for a comparison whose FROM is the token ``at``, if AND or OR stands behind it."""
    if tree.word(at) != "FROM" or tree.word(at - 1) != "DISTINCT":
        return
    negated = tree.word(at - 2) == "NOT"
    start, end = at - 2 - negated, at + 1
    if tree.word(start) != "IS":
        return
    while end < len(tree.tokens) and tree.word(end) not in _JOINS:
        if tree.word(end) in _ENDS or end in tree.open or tree.kind(end) == TokenType.COMMA:
            return
        end = tree.close.get(end, end) + 1
    if end < len(tree.tokens):
        yield *tree.span(start, at + 1), "<=>"
        if not negated:
            behind = tree.span(at + 1, end)[1]
            yield behind, behind, " IS FALSE"
