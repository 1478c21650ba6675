"""Links words of a question to values of columns, so that a literal is written as it is stored."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import log

from blendfusion.services.ask.schema.catalog import Catalog

_WORD = re.compile(r"[^\W_]+")
_LONGEST = 6
"""Words of the longest span of a question that is looked up."""
_JOINED = 6
"""The fewest characters of a span that is looked up without its blanks, as ``NorthCarolina``."""
_CLOSE = 0.82
"""Similarity (of difflib) of a word to a stored word with another spelling."""
_CLOSE_WEIGHT = 0.9
"""Weight of a word of a value that the question has in another spelling."""
_LEAST = 0.45
"""The lowest score of a link."""
_FEW = 3
"""Values of a column that are linked if the question mentions the column."""
_FEW_SCORE = 0.5
_SHORTEST = 4
"""The fewest letters of a word, asked or stored, that may have another spelling."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SIBILANTS = ("sses", "xes", "zes", "ches", "shes")
STOP_WORDS = frozenset(
    "a about after against all also among an and any are as at be because been before being between "
    "both but by can could did do does during each either every for from had has have he her his how "
    "if in into is it its many me might more most must my name names neither nor of on or our per "
    "shall she should show since so some such than that the their them then there these they this "
    "those through to until upon was we were what when where whether which while who whose why with "
    "within without would you your list find give number count".split()
)
"""Words that are too frequent in questions to name a value alone."""


@dataclass(frozen=True, slots=True)
class Link:
    """A value of a column that the question mentions, and how much of the value it mentions; or one
    of the few values of a column that it mentions."""

    column: str
    """``table.column``."""
    value: str
    score: float
    by_column: bool = False
    """Whether the question mentions the column only."""


class ValueIndex:
    """The values of a catalogue by their words and initials, and those of columns with few values
    by the words of the column's name."""

    def __init__(self, catalog: Catalog) -> None:
        self._places: list[tuple[str, str, tuple[str, ...]]] = []
        self._by_text: dict[str, list[int]] = defaultdict(list)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_column: dict[str, list[int]] = defaultdict(list)
        self._names = stems_of_names(catalog)
        for table in catalog.tables:
            for column in table.columns:
                first = len(self._places)
                for value in column.values:
                    self._add(f"{table.name}.{column.name}", value)
                if len(column.values) <= _FEW:
                    for word in name_stems(column.name) - STOP_WORDS:
                        if len(word) > 2:
                            self._by_column[word] += range(first, len(self._places))
        self._near: dict[str, list[str]] = defaultdict(list)
        for word in self._by_word:
            if _has_spellings(word):
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
            if len(joined := "".join(words)) >= _JOINED:
                self._by_text[joined].append(place)
        for word in dict.fromkeys(words):
            self._by_word[word].append(place)

    def columns_with(self, value: str) -> list[str]:
        """The columns (``table.column``) that hold ``value``, in any letter case."""
        places = self._by_text.get(" ".join(words_of(value)), ())
        same = (self._places[p][0] for p in places if self._places[p][1].lower() == value.lower())
        return list(dict.fromkeys(same))

    def links(self, question: str, most: int = 8) -> list[Link]:
        """The values that ``question`` mentions, best first, at most ``most`` and three a column.

        A value scores 2 if a span of the question is the whole value, with blanks or without, or
        its initials, else the share of its words that occur in the question, by their rarity and at
        least about one half; a word in another spelling counts a little less. Words of whole
        values, words of the names of tables and columns, and numbers neither count alone nor in
        another spelling. The values of a column with few values score a half if the question has a
        word of the column's name, as *official* for ``IsOfficial``."""
        mentioned_words = words_of(question)
        scores: dict[int, float] = {}
        whole: set[str] = set()
        for span in _spans(mentioned_words):
            joined = span.replace(" ", "")
            for text in (span, joined) if len(joined) >= _JOINED else (span,):
                if text not in STOP_WORDS and text in self._by_text:
                    scores.update(dict.fromkeys(self._by_text[text], 2.0))
                    whole.update(span.split())
        unclear = [w for w in mentioned_words if w not in whole and stem(w) not in self._names]
        weights = {w: _CLOSE_WEIGHT for word in unclear for w in self._spellings(word)}
        weights.update(dict.fromkeys(mentioned_words, 1.0))
        alone = {word for word in weights if not word.isdigit() and stem(word) not in self._names}
        for word in sorted(alone - STOP_WORDS - whole):
            for place in self._by_word.get(word, ()):
                if place not in scores:
                    scores[place] = self._share(self._places[place][2], weights)
        mentioned = {place: score for place, score in scores.items() if score >= _LEAST}
        found = dict(mentioned)
        for word in {*mentioned_words} - STOP_WORDS - whole:
            for place in self._by_column.get(stem(word), ()):
                found[place] = max(found.get(place, 0.0), _FEW_SCORE)
        best = sorted((-score, place) for place, score in found.items())
        return list(self._first(best, most, mentioned))

    def _share(self, words: Sequence[str], weights: Mapping[str, float]) -> float:
        """The weighed share of ``words``; a word of many values counts less."""
        rarities = [log(1 + len(self._places) / len(self._by_word[word])) for word in words]
        own = zip(words, rarities, strict=True)
        return sum(weights.get(word, 0.0) * rarity for word, rarity in own) / sum(rarities)

    def _first(
        self, best: list[tuple[float, int]], most: int, mentioned: Container[int]
    ) -> Iterator[Link]:
        per_column: dict[str, int] = defaultdict(int)
        for score, place in best:
            column, value, _ = self._places[place]
            per_column[column] += 1
            if per_column[column] <= 3 and most > 0:
                most -= 1
                yield Link(column, value, -score, place not in mentioned)

    def _spellings(self, word: str) -> list[str]:
        """The stored words that ``word`` may be another spelling of."""
        if not _has_spellings(word) or word in STOP_WORDS:
            return []
        return get_close_matches(word, self._near.get(word[0], ()), n=3, cutoff=_CLOSE)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in lower case.

    >>> words_of("São Paulo's 2-star hotels")
    ('são', 'paulo', 's', '2', 'star', 'hotels')
    """
    return tuple(_WORD.findall(text.casefold()))


def name_stems(name: str) -> set[str]:
    """The stems of the words of a table's or a column's name.

    >>> sorted(name_stems("IsOfficial")), sorted(name_stems("pet_types"))
    (['is', 'official'], ['pet', 'type'])
    """
    return {stem(word.casefold()) for part in _WORD.findall(name) for word in _split(part)}


def stems_of_names(catalog: Catalog) -> set[str]:
    """The stems of the words of the names of tables and columns."""
    names = {table.name for table in catalog.tables}
    names |= {column.name for table in catalog.tables for column in table.columns}
    return {word for name in names for word in name_stems(name)}


def _split(part: str) -> list[str]:
    return _PARTS.findall(part) if part.isascii() and part.isalpha() else [part]


def stem(word: str) -> str:
    """A word without the ending of a plural; short words stay. ``ie`` at the end is ``y``, in the
    singular too, so that both have one stem.

    >>> [stem(word) for word in ("teachers", "bus", "classes", "class", "countries", "movie")]
    ['teacher', 'bus', 'class', 'class', 'country', 'movy']
    """
    if word.endswith(_SIBILANTS):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        word = word[:-1]
    return f"{word[:-2]}y" if word.endswith("ie") and len(word) > 3 else word


def _has_spellings(word: str) -> bool:
    """Whether a word may be spelled in another way: it is long enough, and no number."""
    return len(word) >= _SHORTEST and not any(map(str.isdigit, word))


def _spans(words: tuple[str, ...]) -> Iterator[str]:
    for size in range(min(_LONGEST, len(words)), 0, -1):
        for start in range(len(words) - size + 1):
            yield " ".join(words[start : start + size])
