"""States in one sentence what a query searches and asks, from its plan and its run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from blendfusion.observe.progress import counted
from blendfusion.udfs.register.user_functions import known_ingredients

if TYPE_CHECKING:
    from blendfusion.frame import Frame


def searched(frame: Frame, sql: str) -> str:
    """The sentence: the tables and the predicates without calls, the rows that reach the model, and
    the values asked (after a run) or expected."""
    where = _predicates(sql)
    head = f"Searches {_tables(sql) or 'no table'}{f' where {where}' if where else ''}"
    calls = frame.prepared.calls
    if not calls:
        return f"{head}; no model is asked."
    texts = ", ".join(dict.fromkeys(call.text for call in calls))
    estimate, usage = frame.estimate(), frame.trace.usage
    rows = [op.rows for op in estimate.operators if op.rows is not None]
    reach = f": {counted(max(rows), 'row')}" if rows else ""
    if usage.values or usage.cached:
        cached = f" ({usage.cached:,} more from the cache)" if usage.cached else ""
        return f"{head}{reach}; {counted(usage.values, 'value')} asked{cached} of {texts}."
    about = "" if estimate.exact else "about "
    values = f"{about}{counted(estimate.total.values, 'value')}" if estimate.complete else "values"
    return f"{head}{reach}; a run asks {values} of {texts}."


def _tables(sql: str) -> str:
    tree = _parsed(sql)
    if tree is None:
        return ""
    common = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    names = (table.name for table in tree.find_all(exp.Table))
    return ", ".join(dict.fromkeys(name for name in names if name.lower() not in common))


def _predicates(sql: str) -> str:
    """The predicates of WHERE without calls, of a query with one SELECT."""
    tree = _parsed(sql)
    if tree is None or len(list(tree.find_all(exp.Select))) != 1:
        return ""
    where = tree.args.get("where")
    if not isinstance(where, exp.Where):
        return ""
    terms = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    return " AND ".join(term.sql("postgres") for term in terms if not _has_call(term))


def _has_call(term: exp.Expr) -> bool:
    names = known_ingredients()
    return any(found.name.lower() in names for found in term.find_all(exp.Anonymous))


def _parsed(sql: str) -> exp.Expr | None:
    try:
        return parse_one(sql, dialect="postgres")
    except SqlglotError:
        return None
