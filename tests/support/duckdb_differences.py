"""Why DuckDB gives other rows than DataFusion for a random query, where both are asked the same.

A query whose rows are those of DataFusion with plain functions, and not those of DuckDB, is one of
``CLASSES``, or has found something: BlendFusion's own text pass is in neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

Rows = Sequence[tuple[object, ...]]

CLASSES = {
    "precedence": "INTERSECT binds no closer than UNION and EXCEPT in DataFusion's plans",
    "decimals": "the mean of whole numbers of two types is a DECIMAL of four digits in DataFusion",
    "by name": (
        "DataFusion matches the branches of a UNION by name where UNION BY NAME follows, or where it "
        "casts them below another UNION"
    ),
    "types": (
        "a number or date above or below a text is made text by DuckDB, and not by DataFusion, or "
        "by way of another number: '0.0' for a count beside a DOUBLE"
    ),
    "rows as keys": "GROUP BY v, HAVING v, QUALIFY v are of the rows of a relation v in DuckDB",
    "lists": (
        "NULL in a list stands where NULLS says in DataFusion, above all values in DuckDB: the rows "
        "are equal without ORDER BY and LIMIT"
    ),
    "predicates without columns": (
        "DataFusion moves a predicate that reads no column, such as one of a constant or of a "
        "scalar subquery, below an aggregate without GROUP BY, which has a row of nothing, too"
    ),
    "lateral": (
        "QUALIFY n, HAVING n and GROUP BY n of a query in FROM are of a column n of a relation before "
        "it in DuckDB, which joins laterally without the word"
    ),
    "sides": (
        "DataFusion pushes a filter below a hash join by the names of columns alone; where it joins by "
        "sorting, it has DuckDB's rows"
    ),
    "sort keys": (
        "DataFusion does not sort by what it takes for constant or for determined by other keys, "
        "although a grouping set, an outer or a cross join lies between: its own rows, sorted in a "
        "table, come in DuckDB's order"
    ),
}
"""The differences that are known, each with its cause; all of them without BlendFusion."""

_SET = re.compile(r"\b(UNION|EXCEPT|INTERSECT)\b")
_ALIAS = re.compile(r"(?:\bFROM|\bJOIN|,|\)|\w) (?:AS )?(n|x|v|k|b|w|id)\b")
_GROUPED = re.compile(r"\b(?:GROUP BY|HAVING|QUALIFY) (.*?)(?= ORDER BY| LIMIT|$)")
_BARE = re.compile(r"(?<![.\w])(n|x|v|k|b|w|id)\b(?![.(\w])")


def class_of(
    sql: str, duckdb: Rows, found: Rows, evidence: Mapping[str, Callable[[], bool]]
) -> str | None:
    """The class of a difference; None for one that is not known. ``evidence``: what shows, by
    running the query in another way, that a difference is of a class."""
    if "INTERSECT" in sql and re.search(r"\b(UNION|EXCEPT)\b", sql):
        return "precedence"
    if _decimal(found) and _rounded(duckdb) == _rounded(found):
        return "decimals"
    permuted = _permuted(duckdb) == _permuted(found) and _numbers(duckdb) != _numbers(found)
    if re.search(rf"\bUNION\b.*\bUNION\b{'' if permuted else ' (?:ALL )?BY NAME'}", sql):
        return "by name"
    if _SET.search(sql) and (
        _numbers(duckdb) == _numbers(found) or _types(duckdb) != _types(found)
    ):
        return "types"
    shown = next((name for name, agrees in evidence.items() if agrees()), None)
    if shown is not None:
        return shown
    if any(_BARE.search(part) for query in _behind_others(sql) for part in _GROUPED.findall(query)):
        return "lateral"
    grouped = {name for part in _GROUPED.findall(sql) for name in _BARE.findall(part)}
    return "rows as keys" if grouped & set(_ALIAS.findall(sql)) else None


def _behind_others(sql: str) -> Iterator[str]:
    """The queries in FROM that stand behind another relation."""
    for begin in re.finditer(r"(?:, |JOIN )\((?=SELECT|WITH)", sql):
        depth, end = 1, begin.end()
        while depth and end < len(sql):
            depth += (sql[end] == "(") - (sql[end] == ")")
            end += 1
        yield sql[begin.end() : end - 1]


def _texts(rows: Rows) -> list[tuple[str, ...]]:
    return sorted(tuple(str(_value(value)) for value in row) for row in rows)


def _numbers(rows: Rows) -> list[tuple[str, ...]]:
    """The rows as texts, in which equal numbers are equal."""
    return sorted(tuple(map(_number, row)) for row in _texts(rows))


def _permuted(rows: Rows) -> list[tuple[str, ...]]:
    """The rows with their columns in any order."""
    return sorted(tuple(sorted(row)) for row in _numbers(rows))


def _number(text: str) -> str:
    try:
        return str(float(text))
    except ValueError:
        return text


def _decimal(rows: Rows) -> bool:
    return any(isinstance(value, Decimal) for row in rows for value in row)


def _rounded(rows: Rows) -> list[tuple[object, ...]]:
    return [
        tuple(round(float(v), 4) if isinstance(v, Decimal | float) else v for v in row)
        for row in rows
    ]


def _value(value: object) -> object:
    return [*value] if isinstance(value, tuple) else value


def _types(rows: Rows) -> list[set[bool]]:
    """Whether there are texts in each column."""
    columns = zip(*rows, strict=True)
    return [{isinstance(value, str) for value in column if value is not None} for column in columns]
