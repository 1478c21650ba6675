"""States in one sentence what a query searches and asks, from its plan and its run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import exp

from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.estimate import Estimate
from blendfusion.services.ask.where import parse, predicates, tables
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.frame import Frame


def summarize_search(
    frame: Frame, sql: str, estimate: Estimate, shown: Callable[[str], str]
) -> str:
    """The sentence: the tables and the predicates without calls, the rows that reach the model, and
    the values asked (after a run) or, by ``estimate``, expected. Parts of the query are in it as
    ``shown``."""
    where = shown(_predicates(sql))
    head = f"Searches {shown(_tables(sql)) or 'no table'}{f' where {where}' if where else ''}"
    calls = frame.prepared.calls
    if not calls:
        return f"{head}; no model is asked."
    texts = ", ".join(dict.fromkeys(shown(call.text) for call in calls))
    usage = frame.trace.usage
    rows = [op.rows for op in estimate.operators if op.rows is not None]
    reach = f": {count_noun(max(rows), 'row')}" if rows else ""
    if usage.values or usage.cached:
        cached = f" ({usage.cached:,} more from the cache)" if usage.cached else ""
        return f"{head}{reach}; {count_noun(usage.values, 'value')} asked{cached} of {texts}."
    about = "" if estimate.exact else "about "
    values = (
        f"{about}{count_noun(estimate.total.values, 'value')}" if estimate.complete else "values"
    )
    return f"{head}{reach}; a run asks {values} of {texts}."


def _tables(sql: str) -> str:
    tree = parse(sql)
    return "" if tree is None else ", ".join(tables(tree))


def _predicates(sql: str) -> str:
    """The predicates of WHERE without calls, of a query with one SELECT."""
    tree = parse(sql)
    if tree is None or len(list(tree.find_all(exp.Select))) != 1:
        return ""
    return " AND ".join(t.sql("postgres") for t in predicates(tree) if not _has_call(t))


def _has_call(term: exp.Expr) -> bool:
    names = known_ingredients()
    return any(found.name.lower() in names for found in term.find_all(exp.Anonymous))
