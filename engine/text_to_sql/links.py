"""Links words of a question to values of columns, so that a literal is written as it is stored."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from blendfusion.text_to_sql.schema.catalog import Catalog

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 6
"""Words of the longest span of a question that is looked up."""
_CLOSE = 0.82
"""Similarity (of difflib) of a word to a stored word with another spelling."""
_STOP = frozenset(
    "a an and are as at be by did do does for from had has have how in is it its many me more most "
    "name names of on or show that the their there these those to was were what when where which "
    "who whose with all any each every list find give number count".split()
)
"""Words that are too frequent in questions to name a value alone."""


@dataclass(frozen=True, slots=True)
class Link:
    """A value of a column that the question mentions, and how much of the value it mentions."""

    column: str
    """``table.column``."""
    value: str
    score: float


class ValueIndex:
    """The values of a catalogue by their words and initials."""

    def __init__(self, catalog: Catalog) -> None:
        self._places: list[tuple[str, str, tuple[str, ...]]] = []
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for table in catalog.tables:
            for column in table.columns:
                for value in column.values:
                    self._add(f"{table.name}.{column.name}", value)
        self._near: dict[str, list[str]] = defaultdict(list)
        for word in self._by_word:
            self._near[word[0]].append(word)

    def _add(self, column: str, value: str) -> None:
        words = words_of(value)
        if not words:
            return
        place = len(self._places)
        self._places.append((column, value, words))
        self._by_text[" ".join(words)].append(place)
        if len(words) > 1:
            self._by_text["".join(word[0] for word in words)].append(place)
        for word in dict.fromkeys(words):
            self._by_word[word].append(place)

    def columns_with(self, value: str) -> list[str]:
        """The columns (``table.column``) that hold ``value``, in any letter case."""
        places = self._by_text.get(" ".join(words_of(value)), ())
        same = (self._places[p][0] for p in places if self._places[p][1].lower() == value.lower())
        return list(dict.fromkeys(same))

    def links(self, question: str, most: int = 8) -> list[Link]:
        """The values that ``question`` mentions, best first, at most ``most`` and three a column.

        A value scores 2 if a span of the question is the whole value or its initials, else the
        share of its words that occur in the question, at least one half."""
        mentioned_words = words_of(question)
        scores: dict[int, float] = {}
        for span in _spans(mentioned_words):
            if span not in _STOP:
                scores.update(dict.fromkeys(self._by_text.get(span, ()), 2.0))
        present = {w for word in mentioned_words for w in self._spellings(word)}
        for word in sorted(present - _STOP):
            for place in self._by_word.get(word, ()):
                if place not in scores:
                    words = self._places[place][2]
                    scores[place] = sum(w in present for w in words) / len(words)
        best = sorted((-score, place) for place, score in scores.items() if score >= 0.5)
        return list(self._first(best, most))

    def _first(self, best: list[tuple[float, int]], most: int) -> Iterator[Link]:
        per_column: dict[str, int] = defaultdict(int)
        for score, place in best:
            column, value, _ = self._places[place]
            per_column[column] += 1
            if per_column[column] <= 3 and most > 0:
                most -= 1
                yield Link(column, value, -score)

    def _spellings(self, word: str) -> list[str]:
        """The stored words that ``word`` may stand for: itself, or another spelling."""
        if word in self._by_word or len(word) < 4:
            return [word]
        near = get_close_matches(word, self._near.get(word[0], ()), n=3, cutoff=_CLOSE)
        return [word, *near]


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case.

    >>> words_of("São Paulo's 2-star hotels")
    ('são', 'paulo', 's', '2', 'star', 'hotels')
    """
    return tuple(_WORD.findall(text.casefold()))


def _spans(words: tuple[str, ...]) -> Iterator[str]:
    for size in range(min(_LONGEST, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])
