"""Translates a query of MySQL by sqlglot, with what MySQL does otherwise than DataFusion.

NULL is the lowest value in its order, LIKE does not regard letter case, and AVG takes texts of
numbers. ``=`` stays as it is: MySQL compares texts without regard to case, here they must be equal.
"""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from blendfusion.dialects.shared.catalog import Known
from blendfusion.errors import QueryError
from blendfusion.sql.query_tree import Reader
from blendfusion.sql.source_map import Piece, Translation, edited
from blendfusion.sql.statements import first_word
from blendfusion.sql.tokenizer import sql_of

_MARK = "BF_TRY_DOUBLE"


def translated(text: str, known: Known) -> Translation:
    """The query in our SQL, as one piece. Raises QueryError if it is no query of MySQL."""
    if first_word(text) not in ("SELECT", "WITH"):
        raise _refused(text, "It begins with SELECT or WITH.")
    try:
        tree = parse_one(text, read="mysql")
    except (SqlglotError, ValueError, TypeError, AttributeError, LookupError) as problem:
        raise _refused(text, "Is its syntax MySQL's?") from problem
    if not isinstance(tree, exp.Query):
        raise _refused(text, "It begins with SELECT or WITH.")
    ours = _cast(tree.transform(_ours).sql("postgres", identify=True))
    return Translation(sql_of(text), (Piece(ours, 0, len(text)),))


def _refused(text: str, hint: str) -> QueryError:
    error = QueryError("this is no query of MySQL", hint=hint)
    error.span = (0, len(text))
    return error


def _cast(sql: str) -> str:
    """The query with its marks as TRY_CAST, which sqlglot does not write in this form."""
    if _MARK not in sql:
        return sql
    reader = Reader(sql)
    edits: list[tuple[int, int, str]] = []
    for at in range(len(reader.tokens)):
        if reader.word(at) == _MARK and reader.opens(at + 1):
            edits.append((*reader.span(at, at + 1), "TRY_CAST"))
            edits.append((*reader.span(end := reader.close[at + 1], end + 1), " AS DOUBLE)"))
    return edited(sql, edits).sql


def _ours(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Like):
        return exp.ILike(this=node.this, expression=node.expression)
    if isinstance(node, exp.Avg) and not isinstance(node.this, exp.Distinct | exp.Anonymous):
        return exp.Avg(this=exp.Anonymous(this=_MARK, expressions=[node.this]))
    return node
