"""``blendfusion.usage``: the book of usage as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from blendfusion.session import Session
    from blendfusion.udfs.declare.ingredient import Ingredient

_SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("model", pa.string()),
        ("question", pa.string()),
        ("user", pa.string()),
        ("values", pa.int64()),
        ("cached", pa.int64()),
        ("failed", pa.int64()),
        ("requests", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("seconds", pa.float64()),
        ("cost", pa.float64()),
        ("saved", pa.float64()),
    ]
)


def usage_of(session: Session, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    """A row for each day, model, question and user. ``saved`` is what the ``cached`` values would
    have cost, at the mean cost of those that were asked the same question; NULL without one. A
    read-only session sees its own user's rows."""
    rows: list[Any] = session.usage_book.rows(session.user if session.options.read_only else None)
    costs, numbers = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for _, model, question, _, values, *_, cost in rows:
        if cost is not None:
            costs[model, question] += cost
            numbers[model, question] += values
    found = []
    for day, model, question, user, *amounts in rows:
        each = numbers[model, question]
        saved = amounts[1] * costs[model, question] / each if each else None
        found.append((date.fromisoformat(day), model, question, user, *amounts, saved))
    columns = list(zip(*found, strict=True)) or [()] * len(_SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)
