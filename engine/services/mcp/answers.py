"""The answers of the tools: rows as JSON, with the questions and the spending behind them."""

from __future__ import annotations

import base64
import datetime
import math
from itertools import islice
from typing import Any

import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.files.python_values import python_rows
from blendfusion.files.row_writers import text_of
from blendfusion.frame import Frame
from blendfusion.session import Session
from blendfusion.types import Usage

MOST_ROWS = 1000
_CHARACTERS = 2000
"""The longest text of a cell."""


def rows_of(frame: Frame, most: int) -> dict[str, Any]:
    """At most ``most`` rows of a frame, whether there are more, and what was asked for them. Rows
    behind them are not asked about."""
    most = max(0, min(most, MOST_ROWS))
    names = frame.schema().names
    found: list[list[Any]] = []
    stream = frame.limit(most + 1).execute_stream() if most else iter(())
    for batch in stream:
        found += [[*map(cell, row)] for row in python_rows(batch.to_pyarrow(), " ")]
        if len(found) > most:
            break
    return {"columns": names, "rows": list(islice(found, most)), "more": len(found) > most}


def cell(value: Any) -> Any:
    """A value as JSON has it: a number that is none is NULL, bytes are base64, others are text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.timedelta | pa.MonthDayNano):
        return text_of(value)
    if isinstance(value, str):
        return value if len(value) <= _CHARACTERS else value[:_CHARACTERS] + "…"
    if isinstance(value, bytes):
        return base64.b64encode(value[:_CHARACTERS]).decode()
    if isinstance(value, dict):
        return {str(key): cell(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [cell(inner) for inner in value]
    return str(value)


def spending_since(session: Session, before: Usage, usage: Usage | None = None) -> dict[str, Any]:
    """The questions and the spending since the session's usage was ``before``, and what the budget
    leaves."""
    now = session.ledger.usage
    questions = {
        "values": now.values - before.values,
        "prompt_tokens": now.prompt_tokens - before.prompt_tokens,
        "completion_tokens": now.completion_tokens - before.completion_tokens,
    }
    if usage is not None:
        questions["cached"] = usage.cached
    return {"asked": questions, "left": rest_of_budget(session.budget, now)}


def rest_of_budget(budget: Budget, used: Usage) -> dict[str, float]:
    """The rest that a budget leaves of each of its limits, but for cost."""
    return {
        name: max(0, limit - getattr(used, name))
        for name, limit in budget.limits()
        if limit is not None and hasattr(used, name)
    }
