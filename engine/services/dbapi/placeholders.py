"""Placeholders of DB-API, ``?``, as those of DataFusion, ``$1``."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.statements import first_word
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.services.dbapi.errors import ProgrammingError
from blendfusion.udfs.declare.arguments import sql_string


def number_placeholders(sql: str, values: Sequence[Any]) -> tuple[str, list[Any]]:
    """``sql`` with ``$1``, ``$2``, … in the place of each ``?`` outside of texts and names, and
    their values. NULL, and a value of an INSERT or UPDATE, is written as it is: a placeholder would
    not have the type of its place. Raises ProgrammingError if there are more or fewer than
    ``values``, unless there is none.

    >>> number_placeholders("SELECT '?', x FROM t WHERE a = ? AND b = ? AND c = ?", [1, None, 2])
    ("SELECT '?', x FROM t WHERE a = $1 AND b = NULL AND c = $2", [1, 2])
    """
    tokens = TokenTree(sql).tokens
    marks = [t for t in tokens if t.token_type == TokenType.PLACEHOLDER and t.text == "?"]
    if not marks:
        return sql, list(values)
    if len(marks) != len(values):
        raise ProgrammingError(f"the query has {len(marks)} placeholders, and {len(values)} values")
    writes = first_word(sql) in ("INSERT", "UPDATE")
    text, end, kept = "", 0, []
    for mark, value in zip(marks, values, strict=True):
        written = "NULL" if value is None else _literal(value) if writes else None
        if written is None:
            kept.append(value)
            written = f"${len(kept)}"
        text += sql[end : mark.start] + written
        end = mark.end + 1
    return text + sql[end:], kept


def _literal(value: object) -> str | None:
    """A value that is written as a literal, which DataFusion 55 casts to the type of its column: it
    stores a parameter with the parameter's own. None for what has no literal."""
    if isinstance(value, str):
        return sql_string(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    if isinstance(value, bool | int | Decimal):
        return str(value)
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat()}'"
    return f"DATE '{value.isoformat()}'" if isinstance(value, datetime.date) else None
