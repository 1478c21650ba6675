"""Names in another letter case than a table has them: the names that were meant.

DataFusion folds names without quotes to lower case, so that ``SELECT Name`` finds no column
``Name``. Most other systems compare names without regard to case. A query that DataFusion refuses
is read here once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.sql.lateral import quoted_name
from blendfusion.sql.source_map import Translation, edited, refused
from blendfusion.sql.tokenizer import tokenize

Columns = Callable[[str], Sequence[str]]
"""The columns of a table, by its exact name."""

_RESERVED = {
    *("ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS"),
    *("DELETE", "DESC", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE"),
    *("FILTER", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTO"),
    *("IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NULL", "NULLS"),
    *("OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "SET"),
    *("TABLE", "THEN", "TRUE", "UNION", "UPDATE", "USING", "VALUES", "WHEN", "WHERE", "WITH"),
}
_NO_NAMES = (TokenType.STRING, TokenType.NUMBER, TokenType.PARAMETER)


def in_any_case(text: str, tables: Iterable[str], columns: Columns) -> Translation | None:
    """``text`` with each name that differs from a table's or a column's in letter case only in that
    spelling; None if there is no such name.

    Names of the query's own (behind AS, of common table expressions) stay. Raises QueryError, with
    the span, for a name that is equal to two columns but for case."""
    tokens = tokenize(text)
    names = [_name(token) for token in tokens]
    known = _by_fold(tables)
    found: dict[int, str] = {}
    relations: dict[str, list[str]] = {}
    for at, name in enumerate(names):
        if name and name.lower() in known and names[at] not in known[name.lower()]:
            exact = _only(known[name.lower()], tokens[at])
            if not _is_called(tokens, at):
                found[at] = exact
        if name and name.lower() in known:
            table = found.get(at, name if name in known[name.lower()] else known[name.lower()][0])
            relations[name.lower()] = relations[table.lower()] = list(columns(table))
            alias = _alias(tokens, names, at + 1)
            if alias:
                relations[alias.lower()] = list(columns(table))
    every = _by_fold(dict.fromkeys(c for listed in relations.values() for c in listed))
    own = set(_own(tokens, names))
    for at, name in enumerate(names):
        if not name or at in found or _is_called(tokens, at):
            continue
        qualifier = names[at - 2].lower() if at > 1 and _is(tokens, at - 1, TokenType.DOT) else ""
        choice = _by_fold(relations[qualifier]) if qualifier in relations else every
        spelled = choice.get(name.lower(), [])
        meant = tokens[at].text if tokens[at].token_type == TokenType.IDENTIFIER else name.lower()
        if not spelled or meant in spelled or (not qualifier and name in own):
            continue
        found[at] = _only(spelled, tokens[at])
    edits = [(tokens[at].start, tokens[at].end + 1, quoted_name(n)) for at, n in found.items()]
    return edited(text, edits) if edits else None


def _by_fold(names: Iterable[str]) -> dict[str, list[str]]:
    """Names by their lower case."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(name.lower(), []).append(name)
    return found


def _only(spelled: Sequence[str], token: Token) -> str:
    if len(spelled) > 1:
        listed = " or ".join(quoted_name(name) for name in spelled)
        raise refused(
            (token.start, token.end + 1),
            f"'{token.text}' may be {listed}",
            "Write the one that is meant in double quotes.",
        )
    return spelled[0]


def _name(token: Token) -> str:
    """The name that a token may be; '' for what is none."""
    if token.token_type == TokenType.IDENTIFIER:
        return str(token.text)
    text = str(token.text)
    plain = token.token_type not in _NO_NAMES and text.replace("$", "_").isidentifier()
    return text if plain and text.upper() not in _RESERVED else ""


def _is(tokens: Sequence[Token], at: int, kind: TokenType) -> bool:
    return 0 <= at < len(tokens) and tokens[at].token_type == kind


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    """A function, a type behind AS or ``::``, or what makes a literal of the string behind it."""
    behind = tokens[at + 1].token_type if at + 1 < len(tokens) else None
    if behind == TokenType.STRING or (
        behind == TokenType.L_PAREN and tokens[at].token_type != TokenType.IDENTIFIER
    ):
        return True
    return at > 0 and (
        _is(tokens, at - 1, TokenType.DCOLON) or str(tokens[at - 1].text).upper() == "AS"
    )


def _alias(tokens: Sequence[Token], names: Sequence[str], at: int) -> str:
    """The alias of a table whose name ends before ``at``; '' if it has none."""
    if at < len(tokens) and str(tokens[at].text).upper() == "AS":
        at += 1
    return names[at] if at < len(names) else ""


def _own(tokens: Sequence[Token], names: Sequence[str]) -> Iterator[str]:
    """Names that the query gives: behind AS, and before ``AS (`` of a common table expression."""
    for at, name in enumerate(names):
        behind_as = at > 0 and str(tokens[at - 1].text).upper() == "AS"
        names_query = (
            at + 2 < len(tokens)
            and str(tokens[at + 1].text).upper() == "AS"
            and _is(tokens, at + 2, TokenType.L_PAREN)
        )
        if name and (behind_as or names_query):
            yield name
