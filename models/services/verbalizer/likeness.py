"""How alike two names are written, and whether their numbers differ.

Names of the same thing are spelled alike; names of its siblings (*part one* and *part two*, *18 V*
and *12 V*) are, too, but for a number.
"""

from __future__ import annotations

import re
from collections import Counter
from math import sqrt

from blendfusion.models.vectors.tfidf import normalize, terms

OTHER_NUMBERS = 0.45
"""The part of the likeness that different numbers take away, fitted to pairs of names of our own
(``models.tuning``)."""
_DIGITS = re.compile(r"\d+")
_WORDS = "zero one two three four five six seven eight nine ten"
_NTH = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth"
_ROMAN = " - - ii iii iv v vi vii viii ix x"
_VALUES = {
    word: str(value)
    for words in (_WORDS, _NTH, _ROMAN)
    for value, word in enumerate(words.split())
    if word != "-"
}
_DECIMALS = 6
"""Digits that count: later ones of float sums differ between machines."""


def likeness(one: str, other: str) -> float:
    """The cosine of the words of two names and of their three-letter pieces, from 0 to 1, less
    ``OTHER_NUMBERS`` if each has a number that the other lacks.

    >>> likeness("Café am Markt", "cafe am markt"), likeness("iPhone 12", "iPhone 13")
    (1.0, 0.25)
    """
    first, second = terms(one), terms(other)
    both = sum(first[term] * second[term] for term in first)
    alike = both / (_length(first) * _length(second)) if both else 0.0
    ours, theirs = _numbers(one), _numbers(other)
    differ = bool(ours - theirs and theirs - ours)
    return round(alike - OTHER_NUMBERS * differ, _DECIMALS)


def _length(counts: Counter[str]) -> float:
    return sqrt(sum(count * count for count in counts.values()))


def _numbers(name: str) -> set[str]:
    words = (_VALUES.get(word, word) for word in normalize(name).split())
    return {digits.lstrip("0") for word in words for digits in _DIGITS.findall(word)}
