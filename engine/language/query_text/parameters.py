"""Replaces parameters (``$1``, ``$name``) inside calls by literals, which are needed before
planning.

Elsewhere in a query DataFusion puts them in.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Integral
from typing import Any

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import sql_string

_FOUND = 4
_EXACT = (type(None), bool, int, float, str, datetime.date)


def spelled_parameters(
    values: Mapping[str, object] | None, texts: Mapping[str, object]
) -> dict[str, str]:
    """SQL for each parameter, by its name: literals of ``values``, ``texts`` as they are.

    A value without a literal (bytes, a frame) is left out.
    """
    spelled = {name: literal(value) for name, value in (values or {}).items()}
    known = {name: text for name, text in spelled.items() if text is not None}
    return known | {n: str(t) for n, t in texts.items() if not isinstance(t, DataFrame)}


def bound_value(value: object) -> object:
    """A value of a parameter, with a type that holds it: pyarrow takes every int for 64 bits."""
    if type(value) is not int or -(2**63) <= value < 2**63:
        return value
    return pa.scalar(value, pa.uint64()) if 0 <= value < 2**64 else Decimal(value)


def exact_literal(value: object) -> str | None:
    """A value as a SQL literal that is read as this value; None for a value that has none, such as
    a decimal number, whose literal is a floating-point number.

    >>> exact_literal([1, None]), exact_literal(Decimal("0.10"))
    ('[1, NULL]', None)
    """
    if isinstance(value, list | tuple):
        is_exact = all(exact_literal(item) is not None for item in value)
    else:
        is_exact = type(value) in _EXACT and bound_value(value) is value
    return literal(value) if is_exact else None


def divide_keywords(given: Mapping[str, object]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the keywords that replace parameters in the text, the values that are bound). A text and a
    frame replace theirs, as in DataFusion, and so does a value with an exact literal."""
    spelled = {
        name: value if isinstance(value, str | DataFrame) else exact_literal(value)
        for name, value in given.items()
    }
    replacing = {name: text for name, text in spelled.items() if text is not None}
    return replacing, {name: value for name, value in given.items() if name not in replacing}


def texts_of(*given: Mapping[str, object] | None) -> set[str]:
    """The texts among the values of parameters that are long enough to be found in another text."""
    values = (value for some in given for value in (some or {}).values())
    texts = (value.strip("'") for value in values if isinstance(value, str))
    return {text for text in texts if len(text) >= _FOUND}


def literal(value: object) -> str | None:
    """A value as a SQL literal; None for a value that has none.

    >>> literal(["it's", 2.5, True, None])
    "['it''s', 2.5, TRUE, NULL]"
    """
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return sql_string(value)
    if isinstance(value, Integral | float | Decimal):  # numpy's, too
        return str(value) if math.isfinite(value) else None
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, list | tuple):
        items = [literal(item) for item in value]
        return None if None in items else f"[{', '.join(i for i in items if i is not None)}]"
    return None


def declared_types(tree: TokenTree) -> dict[str, str]:
    """SQL of the types of the parameters of ``PREPARE name(INT, …) AS``, by their numbers."""
    if tree.word(0) != "PREPARE" or not tree.opens(2):
        return {}
    kinds = tree.parts(3, tree.close[2])
    return {str(i): f"CAST(NULL AS {tree.source_text(*kind)})" for i, kind in enumerate(kinds, 1)}


def fill_parameters(
    tree: TokenTree, parameters: Mapping[str, str], spans: Iterable[tuple[int, int]]
) -> Translation:
    """The text with the parameters between the tokens of ``spans`` written out."""
    edits = {}
    for span in spans:
        for token in tree.tokens[slice(*span)]:
            spelled = parameters.get(token.text[1:]) if token.text[:1] == "$" else None
            if spelled is not None and tree.text[token.start] == "$":
                edits[token.start] = (token.start, token.end + 1, spelled)
    return edit(tree.text, edits.values())
