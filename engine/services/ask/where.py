"""The tables, predicates and compared texts of a drafted query, by its syntax tree."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from blendfusion.errors import QueryError
from blendfusion.language.query_text.nesting_limits import check_bounds
from blendfusion.language.query_text.sqlglot_tree import without_logging


def parse(sql: str) -> exp.Expr | None:
    """The tree of a query; None if it cannot be parsed, or is nested too deep to be a query."""
    try:
        check_bounds(sql)
        with without_logging():
            return Postgres().parse(sql)[0]
    except (SqlglotError, QueryError, RecursionError, IndexError):
        return None


def tables(tree: exp.Expr) -> list[str]:
    """The names of the tables that a query reads, each once, without its common table
    expressions."""
    common = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    names = (table.name for table in tree.find_all(exp.Table))
    return list(dict.fromkeys(name for name in names if name.lower() not in common))


def predicates(tree: exp.Expr) -> list[exp.Expr]:
    """The terms between the outermost ANDs of WHERE; none without a WHERE."""
    where = tree.args.get("where")
    if not isinstance(where, exp.Where):
        return []
    return list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]


def compared_texts(tree: exp.Expr) -> Iterator[tuple[str, str]]:
    """The names of columns that a query compares with texts, by ``=`` or IN, and the texts."""
    for term in tree.find_all(exp.EQ, exp.In):
        sides = [term.this, term.expression] if isinstance(term, exp.EQ) else [term.this]
        texts = [*sides, *(term.expressions if isinstance(term, exp.In) else ())]
        for column in sides:
            if isinstance(column, exp.Column):
                yield from (
                    (column.name, text.name)
                    for text in texts
                    if isinstance(text, exp.Literal) and text.is_string
                )
