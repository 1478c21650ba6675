"""Plans a query in which DataFusion takes a cast for the column that it casts once more, with names
for its casts: see ``query_text.named_casts``."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from datafusion import DataFrame, SessionContext

from blendfusion.language.query_text.column_coercions import optimize
from blendfusion.language.query_text.statements import creates
from blendfusion.language.query_text.text_rules import CASTS, REPEATED_NAME

_GROUPS = re.compile(r"\bgroup\s+by\b", re.IGNORECASE)
_REPEATS = (REPEATED_NAME, "duplicate unqualified field name", "duplicate qualified field name")
"""Parts of DataFusion's messages for two expressions of one name."""


def with_named_casts(
    context: SessionContext, text: str, carry_out: Callable[[str], DataFrame]
) -> tuple[str, DataFrame]:
    """``text``, or the text with names for its casts, and what ``carry_out`` makes of it. A CREATE
    is carried out once: its casts get names before that."""
    # Only DataFusion's optimizer refuses such keys of groups.
    groups_by_casts = CASTS.applies(text) and _GROUPS.search(text) is not None
    if not (creates(text) and groups_by_casts):
        try:
            planned = carry_out(text)
        except Exception as problem:  # DataFusion raises plain Exceptions
            if not _repeats_a_name(str(problem)):
                raise
        else:
            if not groups_by_casts or not _repeats_a_name(optimize(planned).problem):
                return text, planned
    named = CASTS.load()(text, partial(_arrow_type, context)) if CASTS.applies(text) else None
    text = text if named is None else named.sql
    return text, carry_out(text)


def _repeats_a_name(problem: str) -> bool:
    return any(part in problem for part in _REPEATS)


def _arrow_type(context: SessionContext, sql_type: str) -> str | None:
    """The name that ``arrow_cast`` has for a type of SQL; None for a type that is none."""
    try:
        found = SessionContext.sql(context, f"SELECT arrow_typeof(CAST(NULL AS {sql_type}))")
        return str(found.collect()[0].column(0)[0].as_py())
    except Exception:  # what is wrong with it shows in the query
        return None
