"""Files that a query names in the place of a table: ``FROM 'sales.csv'``."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.token_tree import TokenTree

_PATH = re.compile(r"[/\\*]|\.\w+$|\.xlsx#", re.IGNORECASE)
_PERHAPS = re.compile(
    r"\b(?:from|join|desc(?:ribe)?)(?:\s|--[^\n]*\n|/\*.*?\*/)*[^\w\s(]", re.IGNORECASE | re.DOTALL
)
"""Something else than a word behind one of these words."""
_DESCRIBES = (["DESCRIBE"], ["DESC"])
_FUNCTIONS = ("TRIM", "EXTRACT", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION")
"""Functions with a FROM between their arguments."""


def quoted_files(query: str) -> list[str]:
    """The texts in quotes behind FROM, JOIN and DESCRIBE that look like paths or URLs, each once.

    >>> quoted_files("SELECT trim('a' FROM 'b.c') FROM 'sales.csv' s JOIN 'logs/*.parquet' l ON true")
    ['sales.csv', 'logs/*.parquet']
    """
    if not _PERHAPS.search(query):
        return []
    tree = TokenTree(query)
    openers: list[int] = []
    found: dict[str, None] = {}
    for at, token in enumerate(tree.tokens):
        if at in tree.close:
            openers.append(at)
        elif at in tree.open:
            openers.pop()
        elif (
            token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
            and at
            and _PATH.search(token.text)
            and (tree.words[at - 1] in ("FROM", "JOIN") or tree.words[:at] in _DESCRIBES)
            and not (at > 1 and tree.words[at - 2] == "DISTINCT")
            and not (openers and openers[-1] and tree.words[openers[-1] - 1] in _FUNCTIONS)
        ):
            found[token.text] = None
    return list(found)
