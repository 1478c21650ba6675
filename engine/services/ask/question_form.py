"""Compares the form of a query with that of its question: a number that is asked for is computed,
groups that are asked for are made, and no column is given twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sqlglot import exp

from blendfusion.services.ask.links import name_stems, stem, stems_of_names, words_of
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import parse

_HOW_MANY = re.compile(
    r"\bhow many\b|^\W*(?:(?:count|give|find|what(?: is|'s)) )?the number of\b", re.I
)
_MEAN = re.compile(r"\b(?:average|mean|on average)\b", re.I)
_EACH = re.compile(r"\b(?:for|in|of|by|at|from|to) (?:each|every)\b", re.I)
_PER = re.compile(r"\bper (\w+)", re.I)
_NUMBER_NAMES = frozenset("number num count total amount quantity average avg mean sum".split())
_MEAN_NAMES = frozenset("average avg mean median".split())
_MEANS = exp.Avg | exp.Median | exp.Quantile | exp.PercentileCont | exp.ApproxQuantile
_KEYS = frozenset("id code key no nr number uuid".split())
_NUMERIC = ("INT", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC", "BIGINT", "SMALLINT")

Doubt = tuple[str, str]
"""A problem, and a hint on how to mend it."""


def doubtful_form(question: str, sql: str, catalog: Catalog) -> Doubt | None:
    """The difference of the form of ``sql`` from that of ``question``; None if there is none, or
    the query cannot be parsed. The words are English ones."""
    tree = parse(sql)
    if tree is None:
        return None
    checks = (
        _repeated_column(tree),
        _counts_nothing(question, tree, catalog),
        _has_no_mean(question, tree),
        _has_no_groups(question, tree, catalog),
    )
    return next((doubt for doubt in checks if doubt is not None), None)


def _repeated_column(tree: exp.Expr) -> Doubt | None:
    """A column that the outermost SELECT gives more than once."""
    given = Counter(column.unalias().sql("postgres").lower() for column in _select_items(tree))
    column, times = max(given.items(), key=lambda item: item[1], default=("", 1))
    if times < 2 or column == "*":
        return None
    return f"the query gives {column} {times} times", "Select each column once."


def _counts_nothing(question: str, tree: exp.Expr, catalog: Catalog) -> Doubt | None:
    """A question for a number, and a query that neither computes one nor gives a stored one."""
    if not _HOW_MANY.search(question) or _computes(tree):
        return None
    words = {stem(word) for word in words_of(question)} | _NUMBER_NAMES
    for column in _columns(tree):
        stems = name_stems(column)
        counted = "of" in stems or not stems & _KEYS  # a number of replies, but no phone number
        if stems & words and counted and _is_numeric(column, catalog):
            return None
    return "the question asks how many, and the query counts nothing", "Use count(*) or sum(…)."


def _has_no_mean(question: str, tree: exp.Expr) -> Doubt | None:
    if not _MEAN.search(question) or any(tree.find_all(*_MEANS.__args__, exp.Div)):
        return None
    names = (name_stems(column) for column in (*_columns(tree), *_column_names(tree)))
    if any(stems & _MEAN_NAMES for stems in names):
        return None
    return "the question asks for an average, and the query computes none", "Use avg(…)."


def _has_no_groups(question: str, tree: exp.Expr, catalog: Catalog) -> Doubt | None:
    """A question about groups, and a query with neither groups nor partitions."""
    grouped = tree.find_all(exp.Group, exp.Window, exp.Distinct)
    correlated = tree.find_all(exp.Subquery, exp.Lateral)
    if any(grouped) or any(correlated):
        return None
    names, found = stems_of_names(catalog), _PER.search(question)
    if found is not None and (stem(found[1].casefold()) not in names or "per" in names):
        found = None  # miles per gallon
    if found is None and (_HOW_MANY.search(question) or _MEAN.search(question)):
        found = _EACH.search(question)
    if found is None:
        return None
    return f"the question says {found[0]!r}, and the query makes no groups", "Use GROUP BY."


def _select_items(tree: exp.Expr) -> list[exp.Expr]:
    return list(tree.selects) if isinstance(tree, exp.Select) else []


def _computes(tree: exp.Expr) -> bool:
    """Whether a query has an aggregate or a number that a function makes."""
    if any(tree.find_all(exp.AggFunc, exp.Window)):
        return True
    return any(
        found.find(exp.Func, exp.Binary, exp.Literal) is not None for found in _select_items(tree)
    )


def _columns(tree: exp.Expr) -> Iterator[str]:
    """The names of the columns that the query and its subqueries select."""
    for select in tree.find_all(exp.Select):
        for given in select.selects:
            yield from (column.name for column in given.find_all(exp.Column))


def _column_names(tree: exp.Expr) -> Iterator[str]:
    """The names of all columns of a query."""
    return (column.name for column in tree.find_all(exp.Column))


def _is_numeric(name: str, catalog: Catalog) -> bool:
    """Whether a column of this name has numbers, or is of no table."""
    types = [
        column.type.upper()
        for table in catalog.tables
        for column in table.columns
        if column.name.lower() == name.lower()
    ]
    return not types or any(kind.startswith(_NUMERIC) for kind in types)
