"""Literals of a query against the values of the columns that they are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlglot import exp

from blendfusion.services.ask.column_origins import Origins
from blendfusion.services.ask.doubt_case import Case, Doubt
from blendfusion.services.ask.links import words_of
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import parse
from blendfusion.udfs.declare.arguments import sql_string

_EXCLUDES = re.compile(
    r"\b(?:not|no|non|nor|neither|never|without|except|excluding|other|but)\b|n't\b", re.I
)
_LEAST = 3
"""The least length of a value that a question may be taken to mean."""


def stored_in_another_case(case: Case) -> Doubt | None:
    """A literal that is stored in another letter case: the comparison holds for no row."""
    for literal, stored, place in _other_spellings(case.tree, case.origins):
        return (
            f"{sql_string(literal.name)} is no value of {place}",
            f"It has {sql_string(stored)}.",
        )
    return None


def not_stored(case: Case) -> Doubt | None:
    """A literal that neither its column, whose values are all known, nor the question has."""
    return _not_stored(case, stated=False)


def stated_and_not_stored(case: Case) -> Doubt | None:
    """A literal of the question that its column does not have: the answer may be nothing."""
    return _not_stored(case, stated=True)


def _not_stored(case: Case, *, stated: bool) -> Doubt | None:
    question = f" {' '.join(case.words)} "
    for literal, values, place in _compared_texts(case.tree, case.origins):
        within = f" {' '.join(words_of(literal.name))} " in question
        if literal.name not in values and within == stated:
            return f"{sql_string(literal.name)} is no value of {place}", ""
    return None


def other_value(case: Case) -> Doubt | None:
    """A stored value that the question does not say, where it says another one of the column, which
    the query compares with nothing."""
    if _EXCLUDES.search(case.question):
        return None
    found = list(_compared_texts(case.tree, case.origins))
    for literal, values, place in found:
        compared = {other.name for other, _, at in found if at == place}
        stated = [value for value in values if _is_stated(case, value)]
        if stated and not compared & {*stated} and literal.name in values:
            return (
                f"the question says {sql_string(stated[0])}, and the query compares {place} with "
                f"{sql_string(literal.name)}",
                f"Compare it with {sql_string(stated[0])}.",
            )
    return None


def _is_stated(case: Case, value: str) -> bool:
    """Whether the question has all words of a value in their order."""
    words = words_of(value)
    return len(value) >= _LEAST and f" {' '.join(words)} " in f" {' '.join(case.words)} "


def as_stored(sql: str, catalog: Catalog) -> str | None:
    """The query with its literals in their stored letter case; None if nothing changes."""
    tree = parse(sql)
    if tree is None:
        return None
    found = list(_other_spellings(tree, Origins(catalog)))
    for literal, stored, _ in found:
        if isinstance(literal.parent, exp.Like):
            like = literal.parent
            like.replace(exp.ILike(this=like.this.copy(), expression=literal.copy()))
        else:
            literal.set("this", stored)
    return tree.sql("postgres") if found else None


def _other_spellings(tree: exp.Expr, origins: Origins) -> Iterator[tuple[exp.Literal, str, str]]:
    """The literals that no value equals, the one value that does but for letter case and blanks
    around it, and the column. Of LIKE, a pattern that holds for values in another case alone."""
    for literal, values, place in _compared_texts(tree, origins):
        folded = literal.name.strip().casefold()
        same = [value for value in values if value.strip().casefold() == folded]
        if literal.name not in values and len(same) == 1:
            yield literal, same[0], place
    for like in tree.find_all(exp.Like):
        column, pattern = like.this, like.expression
        origin = origins.of(column) if isinstance(column, exp.Column) else None
        text = pattern.name.strip("%")
        if origin is None or not isinstance(pattern, exp.Literal) or not text or "%" in text:
            continue
        values = origin[1].values if origin[1].complete else ()
        holding = [value for value in values if text.casefold() in value.casefold()]
        if holding and not any(text in value for value in values):
            yield pattern, holding[0], f"{origin[0].name}.{origin[1].name}"


def _compared_texts(
    tree: exp.Expr, origins: Origins
) -> Iterator[tuple[exp.Literal, tuple[str, ...], str]]:
    """The texts that a query compares by =, <> or IN with a column all of whose values are known,
    these values, and the column."""
    for term in list(tree.find_all(exp.EQ, exp.NEQ, exp.In)):
        others = term.expressions if isinstance(term, exp.In) else [term.args["expression"]]
        sides = [term.this, *others]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        origin = origins.of(columns[0]) if len(columns) == 1 else None
        if origin is None or not origin[1].complete:
            continue
        for side in sides:
            if isinstance(side, exp.Literal) and side.is_string:
                yield side, origin[1].values, f"{origin[0].name}.{origin[1].name}"
