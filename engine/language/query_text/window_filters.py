"""Writes windows that Substrait has no place for as others.

FILTER becomes CASE: ``sum(a) FILTER (WHERE b) OVER w`` is ``sum(CASE WHEN b THEN a END) OVER w``,
for aggregates that leave out NULL. Frames of GROUPS become frames of ROWS, which mean something
else: only their plan has the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree

_LEAVE_OUT_NULL = {
    *("SUM", "AVG", "MEAN", "COUNT", "MIN", "MAX", "MEDIAN", "BOOL_AND", "BOOL_OR", "BIT_AND"),
    *("BIT_OR", "BIT_XOR", "VAR", "VAR_POP", "VAR_SAMP", "VARIANCE", "STDDEV", "STDDEV_POP"),
    *("STDDEV_SAMP", "CORR", "COVAR", "COVAR_POP", "COVAR_SAMP"),
}

_BOUNDS = ("BETWEEN", "UNBOUNDED", "CURRENT")


def filters_as_cases(sql: str) -> str:
    """``sql`` with these filters as CASE; ``sql`` itself if it has none.

    >>> print(filters_as_cases("SELECT count(*) FILTER (WHERE a > 1) OVER (ORDER BY b) FROM t"))
    SELECT count(CASE WHEN a > 1 THEN 1 END) OVER (ORDER BY b) FROM t
    """
    if "filter" not in sql.lower():
        return sql
    tree = TokenTree(sql)
    edits = [edit for at in range(len(tree.tokens)) for edit in _edits(tree, at)]
    return tree.edit(edits) if edits else sql


def groups_as_rows(sql: str) -> str:
    """``sql`` with ROWS in place of GROUPS in the frames of windows; ``sql`` itself without any.

    >>> print(groups_as_rows("SELECT sum(a) OVER (ORDER BY b GROUPS 1 PRECEDING) FROM t"))
    SELECT sum(a) OVER (ORDER BY b ROWS 1 PRECEDING) FROM t
    """
    if "groups" not in sql.lower():
        return sql
    tree = TokenTree(sql)
    places = (at for at in range(1, len(tree.tokens) - 1) if _is_of_groups(tree, at))
    edits = [(at, at + 1, "ROWS") for at in places]
    return tree.edit(edits) if edits else sql


def _is_of_groups(tree: TokenTree, at: int) -> bool:
    if tree.word(at) != "GROUPS" or tree.kind(at - 1) == TokenType.COMMA:
        return False
    after = tree.word(at + 1) in _BOUNDS or tree.kind(at + 1) == TokenType.NUMBER
    return after and tree.word(at - 1) != "BY"


def _edits(tree: TokenTree, at: int) -> Iterator[tuple[int, int, str]]:
    """The edits of the FILTER at ``at``; none if something else stands there."""
    if tree.word(at) != "FILTER" or not tree.opens(at + 1) or tree.word(at + 2) != "WHERE":
        return
    close = tree.close[at + 1]
    start = tree.open.get(at - 1)
    if start is None or tree.word(close + 1) != "OVER":
        return
    first = start + 1
    distinct = tree.word(first) == "DISTINCT"
    first += distinct
    if tree.word(start - 1) not in _LEAVE_OUT_NULL or "ORDER" in tree.words[first : at - 1]:
        return
    end = tree.first(first, at - 1, TokenType.COMMA)
    end = at - 1 if end is None else end
    given = tree.source_text(first, end)
    value = "1" if given.strip() in ("", "*") else given
    case = f"CASE WHEN {tree.source_text(at + 3, close)} THEN {value} END"
    rest = tree.source_text(end, at - 1)
    yield start, close + 1, f"({'DISTINCT ' * distinct}{case}{rest})"
