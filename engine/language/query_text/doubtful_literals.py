"""Finds names of columns in single quotes: such a query plans, and is probably a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.call_sites import Site
from blendfusion.language.query_text.query_tree import Reader

if TYPE_CHECKING:
    from blendfusion.language.query_text.resolve_columns import Columns

_BEFORE_TERM = ("WHERE", "AND", "OR", "HAVING", "ON")
_PLACE = re.compile(
    r"\b(?:WHERE|AND|OR|HAVING|ON|SELECT|DISTINCT|BY|GROUP|ORDER|PARTITION)\s*'|--|/\*",
    re.IGNORECASE,
)
"""A text behind one of these words; or a comment, behind which there may be one."""
_OPERATORS = {
    *("=", "<>", "!=", "<", "<=", ">", ">=", "~", "LIKE", "ILIKE", "IN", "BETWEEN", "IS", "NOT"),
}
_CONSTANTS = (TokenType.STRING, TokenType.NUMBER, TokenType.NULL, TokenType.NOT)
_TYPED = ("DATE", "TIMESTAMP")
_BEFORE_ITEM = ("GROUP", "ORDER", "PARTITION")
_BEHIND_ITEM = ("", ",", ")", ";", "ASC", "DESC", "NULLS", "LIMIT", "HAVING", "ORDER")


def quoted_names(text: str, columns: Columns) -> Iterator[str]:
    """A sentence for each text of a query that is compared, selected or sorted by, and is the name
    of a column: it is the same in every row."""
    if not _PLACE.search(text):
        return
    tree = Reader(text)
    for at, token in enumerate(tree.tokens):
        if token.token_type == TokenType.STRING and _is_in_place_of_a_name(tree, at):
            plain = named_column(tree, at, token.text, columns)
            if plain is not None:
                yield (
                    f"'{token.text}' is a text, the same in every row; the column is {plain}, "
                    "without single quotes."
                )


def _is_in_place_of_a_name(tree: Reader, at: int) -> bool:
    before, after = tree.word(at - 1) if at else "", tree.word(at + 1)
    if before in _BEFORE_TERM:
        return after in _OPERATORS and _is_constant(tree, at + 3 if after == "NOT" else at + 2)
    if before in ("SELECT", "DISTINCT"):
        return after in (",", "FROM")  # SELECT 'label' has no table of its own
    return before in _BEFORE_ITEM and after in _BEHIND_ITEM


def _is_constant(tree: Reader, at: int) -> bool:
    """Whether constants stand behind an operator. Beside a column or a call, a text may be a label:
    WHERE 'price' = llm_classify(…)."""
    at += tree.opens(at)
    return tree.kind(at) in _CONSTANTS or tree.word(at) in _TYPED


def name_for_value(tree: Reader, site: Site, columns: Columns) -> str | None:
    """The warning for a call whose value is a literal text that is also the name of a column."""
    plain = named_column(tree, site.start, site.literal_value, columns)
    if plain is None:
        return None
    return (
        f"{site.text} asks about the text '{site.literal_value}'; the column is {plain} without "
        "single quotes."
    )


def named_column(tree: Reader, at: int, name: str, columns: Columns) -> str | None:
    """The column ``name`` of a relation around a token, as SQL writes it; None if there is none."""
    for select, _ in tree.around(at):
        for source in tree.sources(select):
            table = tree.source_text(source.start, source.end) if source.kind == "table" else ""
            if table and name in (columns(table) or ()):
                return name if name == name.lower() and name.isidentifier() else f'"{name}"'
    return None
