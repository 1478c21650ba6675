"""Gives SIMILAR TO its meaning in SQL: a pattern of all of a text, with % and _.

DataFusion 55 takes the pattern for a regular expression of any part of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import sql_string

_WILDCARDS = {"%": "(?s:.*)", "_": "(?s:.)", ".": r"\.", "^": r"\^", "$": r"\$"}
CHARACTER_SET = r"\[\^?\]?[^\]]*\]"


def similar_to(sql: str) -> str:
    """``sql`` with each pattern of SIMILAR TO written as a regular expression for the whole text.
    Raises QueryError for a pattern that is no literal, and for ESCAPE."""
    tree = TokenTree(sql)
    return edit(sql, list(_edits(tree))).sql


def _edits(tree: TokenTree) -> Iterator[tuple[int, int, str]]:
    for at in range(len(tree.tokens)):
        if tree.kind(at) != TokenType.SIMILAR_TO:
            continue
        pattern = at + 1
        if tree.kind(pattern) != TokenType.STRING or tree.word(pattern + 1) == "ESCAPE":
            raise tree.refusal(
                at,
                "SIMILAR TO takes a pattern in quotes, without ESCAPE",
                "regexp_like(x, pattern) takes a regular expression of any kind.",
            )
        ours = regular_expression(tree.tokens[pattern].text)
        yield *tree.span(pattern, pattern + 1), sql_string(ours)


def regular_expression(pattern: str) -> str:
    r"""Converts a pattern of SIMILAR TO to a regular expression, which matches whole texts.

    >>> print(regular_expression(r"a.(b|c)_\%%"))
    ^(?:a\.(b|c)(?s:.)\%(?s:.*))$
    """
    parts = re.findall(rf"{CHARACTER_SET}|\\.|.", pattern, re.DOTALL)
    return of_whole_text(_WILDCARDS.get(part, part) for part in parts)


def of_whole_text(parts: Iterable[str]) -> str:
    """A regular expression of texts that consist of ``parts``, one after the other."""
    return f"^(?:{''.join(parts)})$"
