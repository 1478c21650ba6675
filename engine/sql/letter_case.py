"""Names in another letter case than a table has them: the names that were meant.

DataFusion folds names without quotes to lower case, so that ``SELECT Name`` finds no column
``Name``. Most other systems compare names without regard to case. A query that DataFusion refuses
is read here once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from sqlglot.tokenizer_core import TokenType

from blendfusion.sql.query_tree import Reader
from blendfusion.sql.source_map import Translation, edited
from blendfusion.udfs.declare.arguments import quoted_name

Columns = Callable[[str], Sequence[str]]
"""The columns of a table, by its exact name."""

RESERVED = {
    *("ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS"),
    *("DELETE", "DESC", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE"),
    *("FILTER", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTO"),
    *("IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NULL", "NULLS"),
    *("OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "SET"),
    *("TABLE", "THEN", "TRUE", "UNION", "UPDATE", "USING", "VALUES", "WHEN", "WHERE", "WITH"),
}


def in_any_case(text: str, tables: Iterable[str], columns: Columns) -> Translation | None:
    """``text`` with each name that differs from a table's or a column's in letter case only in that
    spelling; None if there is no such name.

    Names of the query's own (behind AS, of common table expressions) stay. Raises QueryError, with
    the span, for a name that is equal to two columns but for case."""
    reader = Reader(text)
    names = [_name(reader, at) for at in range(len(reader.tokens))]
    known = _by_fold(tables)
    found: dict[int, str] = {}
    relations: dict[str, list[str]] = {}
    tables_at = {at for at, name in enumerate(names) if name and _is_table(reader, at)}
    for at in sorted(tables_at):
        name = names[at]
        if name.lower() in known and name not in known[name.lower()]:
            exact = _only(known[name.lower()], reader, at)
            if not _is_called(reader, at):
                found[at] = exact
        if name.lower() in known:
            table = found.get(at, name if name in known[name.lower()] else known[name.lower()][0])
            relations[name.lower()] = relations[table.lower()] = list(columns(table))
            alias = _alias(reader, names, at + 1)
            if alias:
                relations[alias.lower()] = list(columns(table))
    every = _by_fold(dict.fromkeys(c for listed in relations.values() for c in listed))
    own = set(_own(reader, names))
    for at, name in enumerate(names):
        # What stands before a dot and is no relation may be a column whose fields are taken.
        relation = name.lower() in relations or reader.kind(at + 1) != TokenType.DOT
        if not name or at in found or (at in tables_at and relation) or _is_called(reader, at):
            continue
        qualifier = names[at - 2].lower() if at > 1 and reader.kind(at - 1) == TokenType.DOT else ""
        here = _aliased(reader, qualifier, at, relations) if qualifier in relations else None
        choice = every if qualifier not in relations else _by_fold(here or relations[qualifier])
        spelled = choice.get(name.lower(), [])
        if not spelled or reader.name(at) in spelled or (not qualifier and name in own):
            continue
        found[at] = _only(spelled, reader, at)
    edits = [(*reader.span(at, at + 1), quoted_name(name)) for at, name in found.items()]
    return edited(text, edits) if edits else None


def _aliased(
    reader: Reader, qualifier: str, at: int, relations: Mapping[str, list[str]]
) -> list[str] | None:
    """The columns of the table that a qualifier means in the SELECTs around ``at``, each of which
    may give the alias to another table; None for no table."""
    for select, _ in reader.around(at):
        for source in reader.sources(select):
            name = reader.name_of(source)
            if source.kind == "table" and name is not None and name.lower() == qualifier:
                return relations.get(reader.name(source.end - 1).lower())
    return None


def _by_fold(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by their lower case."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(name.lower(), []).append(name)
    return found


def _only(spelled: Sequence[str], reader: Reader, at: int) -> str:
    if len(spelled) > 1:
        raise reader.refused(at, *either(reader.tokens[at].text, spelled))
    return spelled[0]


def either(name: str, spelled: Sequence[str]) -> tuple[str, str]:
    """The message and the hint for a name that may be any of ``spelled``."""
    listed = " or ".join(map(quoted_name, spelled))
    return f"'{name}' may be {listed}", "Write the one that is meant in double quotes."


def _name(reader: Reader, at: int) -> str:
    """The name that a token spells; '' if it is no name."""
    text = reader.tokens[at].text
    return text if reader.is_name(at) and reader.word(at) not in RESERVED else ""


def _is_called(reader: Reader, at: int) -> bool:
    """A function, a type behind AS or ``::``, or what makes a literal of the string behind it."""
    behind, quoted = reader.kind(at + 1), reader.kind(at) == TokenType.IDENTIFIER
    typed = reader.kind(at - 1) == TokenType.DCOLON or reader.word(at - 1) == "AS"
    return typed or behind == TokenType.STRING or (behind == TokenType.L_PAREN and not quoted)


_CLAUSES = {
    "FROM",
    "JOIN",
    "INTO",
    "UPDATE",
    "TABLE",
    "USING",
    "SELECT",
    "ON",
    "WHERE",
    "GROUP",
} | {
    *("HAVING", "ORDER", "LIMIT", "VALUES", "SET", "WITH", "UNION", "EXCEPT", "INTERSECT", "WINDOW")
}
_OF_TABLES = {"FROM", "JOIN", "INTO", "UPDATE", "TABLE"}


def _is_table(reader: Reader, at: int) -> bool:
    """Whether a name stands for a table: behind FROM or JOIN, or before a dot."""
    if reader.kind(at + 1) == TokenType.DOT:
        return True
    depth = 0
    for before in range(at - 1, -1, -1):
        depth += reader.kind(before) == TokenType.R_PAREN
        depth -= reader.kind(before) == TokenType.L_PAREN
        if depth < 0 and reader.word(before - 1) not in _OF_TABLES:
            return False
        if depth <= 0 and reader.word(before) in _CLAUSES:
            return reader.word(before) in _OF_TABLES
    return False


def _alias(reader: Reader, names: Sequence[str], at: int) -> str:
    """The alias of a table whose name ends before ``at``; '' if it has none."""
    at += reader.word(at) == "AS"
    return names[at] if at < len(names) else ""


def _own(reader: Reader, names: Sequence[str]) -> Iterator[str]:
    """Names that the query gives: behind AS, and before ``AS (`` of a common table expression."""
    for at, name in enumerate(names):
        names_query = reader.word(at + 1) == "AS" and reader.opens(at + 2)
        if name and (reader.word(at - 1) == "AS" or names_query):
            yield name
