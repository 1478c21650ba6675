"""Writes IS NOT DISTINCT FROM in ON as an equality of lists.

DataFusion 55 compares NULLs in all keys of a join or in none. ``JOIN b ON a.k IS NOT DISTINCT FROM
b.k WHERE a.n = b.n`` has both for its keys, and joins rows whose ``n`` is NULL. Two lists of a NULL
are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader, Source
from blendfusion.language.query_text.source_map import edit

_CASTS = ("CAST", "TRY_CAST")
_WORDS = ("IS", "NOT", "DISTINCT", "FROM", "NULL", "TRUE", "FALSE")
_ENDS = {
    *("AND", "WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH"),
    *("UNION", "EXCEPT", "INTERSECT", "JOIN", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL"),
}
_OTHERS = ("OR", "NOT", "CASE", "WHEN", "THEN", "ELSE", "WHERE", "HAVING", "SELECT", "BETWEEN")


def null_safe_keys(sql: str) -> str:
    """``sql`` with ``[a] = [b]`` for ``a IS NOT DISTINCT FROM b`` among the conjuncts of ON. What
    has or reads a call stays as it is: the comparison gives its type."""
    tree = Reader(sql)
    edits = []
    for at in range(1, len(tree.tokens)):
        after = at + 1 if tree.kind(at) == TokenType.NULLSAFE_EQ else at + 4
        if after == at + 4 and tree.words[at:after] != ["IS", "NOT", "DISTINCT", "FROM"]:
            continue
        start, end = tree.operand_before(at), tree.operand_after(after)
        if _is_term(tree, start, end) and not _reads_call(tree, start, end):
            left, right = tree.source_text(start, at), tree.source_text(after, end)
            edits.append((*tree.span(start, end), f"[{left}] = [{right}]"))
    return str(edit(sql, edits).sql) if edits else sql


def _reads_call(tree: Reader, start: int, end: int) -> bool:
    """Whether tokens have a call, or a column of a relation that has one or is not known."""
    if _has_call(tree, start, end):
        return True
    for at in range(start, end):
        dots = TokenType.DOT in (tree.kind(at - 1), tree.kind(at + 1))
        if tree.is_name(at) and not dots and tree.word(at) not in _WORDS:
            return True
        if tree.kind(at + 1) == TokenType.DOT and tree.kind(at - 1) != TokenType.DOT:
            source = tree.relation(tree.name(at), at)
            if source is None or any(_has_call(tree, *span) for span in _spans(tree, source)):
                return True
    return False


def _spans(tree: Reader, source: Source) -> Iterator[tuple[int, int]]:
    """Where a relation is written: there, or in WITH."""
    yield source.start + (source.kind == "query"), source.end
    for query, _ in tree.scopes():
        for common in query.common:
            if source.kind == "table" and tree.name(common.name) == tree.name(source.start):
                yield common.query.start, common.query.end


def _has_call(tree: Reader, start: int, end: int) -> bool:
    return any(
        tree.opens(at) and tree.is_called(at) and tree.word(at - 1) not in _CASTS
        for at in range(start, end)
    )


def _is_term(tree: Reader, start: int, end: int) -> bool:
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
