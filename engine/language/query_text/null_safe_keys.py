"""Writes IS NOT DISTINCT FROM in ON as an equality of lists.

DataFusion 55 compares NULLs in all keys of a join or in none. ``JOIN b ON a.k IS NOT DISTINCT FROM
b.k WHERE a.n = b.n`` has both for its keys, and joins rows whose ``n`` is NULL. Two lists of a NULL
are equal.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree

_CASTS = ("CAST", "TRY_CAST")
_ENDS = {
    *("AND", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH"),
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL"),
}
_OTHERS = ("OR", "NOT", "CASE", "WHEN", "THEN", "ELSE", "WHERE", "HAVING", "SELECT", "BETWEEN")


def null_safe_keys(sql: str) -> str:
    """``sql`` with ``[a] = [b]`` for ``a IS NOT DISTINCT FROM b`` among the conjuncts of ON, if it
    has an equality, too. Operands with a call stay as they are."""
    tree = TokenTree(sql)
    edits = []
    for at in range(1, len(tree.tokens)):
        after = at + 1 if tree.kind(at) == TokenType.NULLSAFE_EQ else at + 4
        if after == at + 4 and tree.words[at:after] != ["IS", "NOT", "DISTINCT", "FROM"]:
            continue
        start, end = tree.operand_before(at), tree.operand_after(after)
        if _is_term(tree, start, end) and not _has_call(tree, start, end):
            left, right = tree.source_text(start, at), tree.source_text(after, end)
            edits.append((*tree.span(start, end), f"[{left}] = [{right}]"))
    return str(edit(sql, edits).sql) if edits else sql


def _has_call(tree: TokenTree, start: int, end: int) -> bool:
    return any(
        tree.opens(at) and tree.is_called(at) and tree.word(at - 1) not in _CASTS
        for at in range(start, end)
    )


def _is_term(tree: TokenTree, start: int, end: int) -> bool:
    """Whether the tokens are a conjunct of ON."""
    ended = end >= len(tree.tokens) or end in tree.open or tree.word(end) in _ENDS
    at = start - 1
    if not ended or not (tree.word(at) in ("ON", "AND") or tree.opens(at)):
        return False
    while at > 0 and tree.word(at) != "ON":
        called = tree.opens(at) and tree.is_called(at) and tree.word(at - 1) != "ON"
        if called or tree.word(at) in _OTHERS:
            return False
        at = tree.open.get(at, at) - 1
    return at > 0
