"""Finds a stored value that a question names and a draft leaves out, and one that only the draft
names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from blendfusion.services.ask.links import Link, ValueIndex, stem, stems_of_names, words_of
from blendfusion.services.ask.literals import strings
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.services.ask.where import compared_texts, parse

_TRUTH = frozenset("t f true false y n yes no 0 1".split())
_NUMBER = re.compile(r"\b\d+\b")


def omitted_value(question: str, sql: str, links: Sequence[Link], catalog: Catalog) -> Link | None:
    """A value of ``links`` that stands in the question word by word, and in no literal of ``sql``;
    None if there is none. A value in the question of a model function is used: it may be what texts
    are about. A value inside a longer one that the question names does not count, nor does a word
    of the names of tables and columns."""
    named = {words_of(link.value): link for link in links if _within(link.value, question)}
    known = stems_of_names(catalog)
    literals = [*strings(sql), *_NUMBER.findall(sql)]
    for words, link in named.items():
        longer = any(other != words and _within(link.value, o.value) for other, o in named.items())
        used = any(_within(link.value, literal) for literal in literals)
        if not longer and not used and not known.issuperset(map(stem, words)):
            return link
    return None


def unnamed_value(
    question: str, sql: str, index: ValueIndex, catalog: Catalog
) -> tuple[str, str] | None:
    """A column of ``sql``, and a stored value that it is compared with although the question
    neither names it nor has a word of it; None if there is none.

    A model may have it from the samples, or mean a word of the question by it (``AT`` for
    Austria). A value in the note of a column is explained by it. To mention a column names none of
    its values, but for the two of a flag (*official* for ``IsOfficial = 'T'``).
    """
    tree = parse(sql)
    if tree is None:
        return None
    linked = {
        link.value.casefold()
        for link in index.links(question, most=len(question))
        if not link.by_column or link.value.casefold() in _TRUTH
    }
    words = set(map(stem, words_of(question)))
    notes = [column.note for table in catalog.tables for column in table.columns]
    for column, text in compared_texts(tree):
        named = text.casefold() in linked or words.intersection(map(stem, words_of(text)))
        if not named and index.columns_with(text) and not any(_within(text, n) for n in notes):
            return column, text
    return None


def _within(part: str, whole: str) -> bool:
    """Whether the words of ``part`` stand side by side in ``whole``.

    >>> _within("New York", "flights to new york?"), _within("york new", "to New York")
    (True, False)
    """
    return f" {' '.join(words_of(part))} " in f" {' '.join(words_of(whole))} "
