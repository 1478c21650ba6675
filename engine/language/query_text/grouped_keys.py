"""Writes ROLLUP and CUBE of keys in parentheses as grouping sets: DataFusion 55 refuses
``ROLLUP ((a, b), c)``."""

from __future__ import annotations

from itertools import combinations

from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree

_MOST_SETS = 4096


def grouped_keys(sql: str) -> str:
    """``sql`` in which those have single keys."""
    tree = TokenTree(sql)
    edits = []
    for at in range(len(tree.tokens)):
        if tree.word(at) in ("ROLLUP", "CUBE") and tree.opens(at + 1) and at + 1 in tree.close:
            end = tree.close[at + 1]
            parts = [*tree.parts(at + 2, end)]
            if any(_is_several(tree, *part) for part in parts) and 2 ** len(parts) <= _MOST_SETS:
                sets = _sets([_keys(tree, *part) for part in parts], tree.word(at))
                edits.append((*tree.span(at, end + 1), f"GROUPING SETS ({', '.join(sets)})"))
    return edit(sql, edits).sql if edits else sql


def _is_several(tree: TokenTree, start: int, end: int) -> bool:
    """Whether a part is a list of keys in parentheses."""
    if not tree.opens(start) or tree.close.get(start) != end - 1:
        return False
    return len([*tree.parts(start + 1, end - 1)]) > 1


def _keys(tree: TokenTree, start: int, end: int) -> str:
    inside = (start + 1, end - 1) if _is_several(tree, start, end) else (start, end)
    return str(tree.source_text(*inside))


def _sets(keys: list[str], word: str) -> list[str]:
    if word == "ROLLUP":
        chosen = [keys[:size] for size in range(len(keys), -1, -1)]
    else:
        sizes = range(len(keys), -1, -1)
        chosen = [[*some] for size in sizes for some in combinations(keys, size)]
    return [f"({', '.join(some)})" for some in chosen]
