"""Replaces ``?`` by values, and turns a single expression into a query."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.parameters import literal
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Translation, edit, identity, refusal
from blendfusion.services.dialects.common.braces import is_call

_EXPRESSION = ("EXISTS", "NOT", "CASE")
_GOES_ON = ("UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH")


def fill_positional(reader: Reader, values: Sequence[object]) -> Translation:
    """Each ``?`` as the literal of its value: a list as ``('a', 'b')``, a dictionary as JSON text.

    Raises QueryError where values are missing, left over, or have no literal.
    """
    tokens = [t for t in reader.tokens if t.token_type == TokenType.PLACEHOLDER]
    edits = []
    for i, token in enumerate(tokens):
        span = token.start, token.end + 1
        if i >= len(values):
            raise refusal(span, f"{len(tokens)} parameters, {len(values)} values")
        spelled = _spell(values[i])
        if spelled is None:
            raise refusal(span, f"a value of type {type(values[i]).__name__} is no literal")
        edits.append((*span, spelled))
    if len(tokens) < len(values):
        raise refusal((0, 0), f"{len(tokens)} parameters, {len(values)} values")
    return edit(reader.text, edits)


def _spell(value: object) -> str | None:
    if isinstance(value, dict):
        return literal(json.dumps(value))
    if isinstance(value, list | tuple):
        items = [literal(item) for item in value]
        return None if None in items else f"({', '.join(i for i in items if i is not None)})"
    return literal(value)


def as_query(reader: Reader) -> Translation:
    """A text with SELECT before it, if it is an expression: a call, EXISTS (…), (…) AND (…)."""
    if not reader.tokens or not _is_expression(reader, reader.statement):
        return identity(reader.text)
    at = reader.tokens[reader.statement].start
    return edit(reader.text, [(at, at, "SELECT ")])


def _is_expression(reader: Reader, first: int) -> bool:
    if is_call(reader, first) or reader.word(first) in _EXPRESSION:
        return True
    if not reader.opens(first):
        return False
    behind = reader.close[first] + 1
    query = reader.is_query(first, behind)
    return not query or (
        behind < len(reader.tokens)
        and reader.kind(behind) != TokenType.SEMICOLON
        and reader.word(behind) not in _GOES_ON
    )
