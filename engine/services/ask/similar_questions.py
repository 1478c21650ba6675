"""Accepted questions that resemble a new one, with their queries: examples for the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blendfusion.services.ask.links import STOP_WORDS, stem, words_of
from blendfusion.services.ask.where import parse, tables

_MOST = 3
"""Examples of a prompt."""


def similar(
    question: str, accepted: Mapping[str, str], allowed: Collection[str]
) -> list[tuple[str, str]]:
    """The accepted pairs of question and query that share most words with ``question``, the most
    similar last. Queries over other tables than the ``allowed`` ones are left out: the model must
    not see their names."""
    own, known = _words(question), {table.casefold() for table in allowed}
    scored = [
        (_overlap(own, _words(other)), place, other)
        for place, (other, sql) in enumerate(accepted.items())
        if _tables(sql) <= known
    ]
    best = sorted(one for one in scored if one[0])[-_MOST:]
    return [(other, accepted[other]) for _, _, other in best]


def _words(text: str) -> frozenset[str]:
    return frozenset(map(stem, words_of(text))) - STOP_WORDS


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of common words (Jaccard 1901)."""
    return len(one & other) / max(1, len(one | other))


def _tables(sql: str) -> set[str]:
    """The tables of a query, and a name that no table has if it cannot be read."""
    tree = parse(sql)
    if tree is None:
        return {""}
    return {name.casefold() for name in tables(tree)}
