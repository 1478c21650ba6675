"""The tables that a query reads, without its common table expressions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader, Select

_OF_TABLES = {"DESCRIBE", "DESC", "COPY", "FROM"}
"""The words that a table may follow in a statement without SELECT."""


@dataclass(frozen=True, slots=True)
class TableName:
    """A name of one part, without catalogue and schema, where a query reads a table."""

    at: int
    """The position of its token."""
    name: str
    """Its meaning: in lower case where it stands without quotes."""
    takes_alias: bool
    """An alias may follow, and none does."""


def table_names(reader: Reader) -> Iterator[TableName]:
    """The tables that a query reads by names of one part; none where the text is not
    understood.

    >>> text = "WITH a AS (SELECT * FROM B) SELECT * FROM a JOIN c.d ON true"
    >>> [found.name for found in table_names(Reader(text))]
    ['b']
    """
    queries = list(reader.scopes())
    recursive = [common for query, _ in queries if query.recursive for common in query.common]
    for query, scope in queries:
        around = [common for common in recursive if common.name < query.start < common.end]
        hidden = {reader.name(common.name) for common in (*scope.common, *query.common, *around)}
        for branch in query.branches:
            for source in reader.sources(branch) if isinstance(branch, Select) else ():
                at = source.start
                is_name = source.kind == "table" and source.end == at + 1 and reader.is_name(at)
                if is_name and reader.name(at) not in hidden:
                    yield TableName(at, reader.name(at), source.alias is None)
    if reader.word(0) in _OF_TABLES and reader.is_name(1) and reader.kind(2) != TokenType.DOT:
        ends = reader.word(2) in ("", "SELECT") or reader.kind(2) == TokenType.SEMICOLON
        yield TableName(1, reader.name(1), reader.word(0) == "FROM" and ends)
