"""Parses a query with sqlglot, without its logging, which would contain the query's text."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser


class _Silent(Parser):
    def _warn_unsupported(self) -> None:
        """sqlglot would log the statements that it takes as text."""


def tree_of(sql: str) -> exp.Expr | None:
    """The syntax tree of one statement; None if sqlglot cannot read it."""
    try:
        tokens = Dialect().tokenize(sql)
        return _Silent().parse(tokens, sql)[0]
    except (SqlglotError, RecursionError, IndexError):
        return None
