"""Converts strings and quoted names to the quotes of BlendFusion's SQL."""

from __future__ import annotations

import re

from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import Translation, edit, identity
from blendfusion.udfs.declare.arguments import quoted_name, sql_string

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING)

_FOREIGN = re.compile(r"""["`\\$]|'{3}|(?<!['\w])[rRbB]{1,2}'""")
"""A text without any of these has strings and names as in BlendFusion's SQL."""


def requote(text: str, dialect: str) -> Translation:
    """``text`` with each string in single quotes and each quoted name in double quotes.

    ``dialect`` is sqlglot's name of the SQL that ``text`` is written in. A text that cannot be read
    stays as it is.
    """
    if _FOREIGN.search(text) is None:
        return identity(text)
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(text)
    except TokenError:
        return identity(text)
    edits = []
    for token in tokens:
        start, end = token.start, token.end + 1
        if token.token_type in _STRINGS:
            written = sql_string(token.text)
        elif token.token_type == TokenType.IDENTIFIER and text[start : start + 1] == "`":
            parts = token.text.split(".") if dialect == "bigquery" else [token.text]
            written = ".".join(map(_name, parts))
        else:
            continue
        if written != text[start:end]:
            edits.append((start, end, written))
    return edit(text, edits)


def _name(name: str) -> str:
    plain = name.isidentifier() and name.islower() and name.isascii()
    return name if plain else quoted_name(name)
