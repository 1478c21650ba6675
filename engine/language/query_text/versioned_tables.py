"""Tables of a text that are read as they were: ``FROM orders VERSION AS OF 3``."""

from __future__ import annotations

from collections.abc import Iterable

from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import quoted_name

_NO_ALIAS = frozenset(
    "WHERE GROUP ORDER LIMIT HAVING JOIN INNER LEFT RIGHT FULL CROSS NATURAL ON USING UNION EXCEPT "
    "INTERSECT WINDOW QUALIFY OFFSET FETCH ANTI SEMI LATERAL".split()
)


def with_parameters(tree: TokenTree, clauses: Iterable[tuple[str, int, int, int]]) -> str:
    """The text with parameters in place of tables, padded to its length. ``clauses``: the name of
    each parameter, the first token of its table, the last one of the table's name, and the token
    behind the clause."""
    edits = []
    for parameter, start, last, end in clauses:
        text = f"${parameter}"
        if not _has_alias(tree, end):
            text += f" AS {quoted_name(tree.name(last))}"
        first, behind = tree.span(start, end)
        lines = "\n" * tree.text[first:behind].count("\n")
        edits.append((start, end, text.ljust(behind - first - len(lines)) + lines))
    return str(tree.edit(edits))


def _has_alias(tree: TokenTree, at: int) -> bool:
    if tree.word(at) == "AS":
        return True
    return at < len(tree.tokens) and tree.is_name(at) and tree.word(at) not in _NO_ALIAS
