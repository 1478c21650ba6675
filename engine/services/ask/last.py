"""The last result of a conversation as the table ``last`` of the next query."""

from __future__ import annotations

from sqlglot import exp

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.services.ask.where import parse

LAST = "last"


def reads_last(sql: str) -> bool:
    """Whether a query reads the table ``last``, and does not define it itself."""
    tree = parse(sql)
    if tree is None or any(cte.alias_or_name.lower() == LAST for cte in tree.find_all(exp.CTE)):
        return False
    return any(table.name.lower() == LAST and not table.db for table in tree.find_all(exp.Table))


def standing_alone(sql: str, last: str) -> str:
    """``sql`` with the query ``last`` in the place of the table: a query that needs no history.

    >>> standing_alone("SELECT count(*) FROM last", "SELECT a FROM t")
    'WITH last AS (SELECT a FROM t) SELECT count(*) FROM last'
    """
    if not reads_last(sql):
        return sql
    reader = Reader(sql)
    defined = f"{LAST} AS ({last})"
    if reader.word(0) != "WITH":
        return f"WITH {defined} {sql}"
    first = reader.span(0, 2 if reader.word(1) == "RECURSIVE" else 1)[1]
    return f"{sql[:first]} {defined},{sql[first:]}"
