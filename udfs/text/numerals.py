"""Numbers and months in the words and digits of several languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

_COUNTED = (
    "– eins|ein|eine|einen|einer zwei drei vier fünf sechs sieben acht neun zehn – zwölf",
    "zéro un|une deux trois quatre cinq six – huit neuf dix onze douze",
    "cero uno|un|una dos tres cuatro cinco seis siete ocho nueve diez – doce",
    "zero uno|un|una – tre quattro cinque sei sette otto nove dieci undici dodici",
    "zero uma dois|duas três quatro cinco seis sete oito nove dez onze doze",
    "nul een|één twee drie vier vijf zes zeven acht negen tien – twaalf",
)
"""Zero to twelve in German, French, Spanish, Italian, Portuguese and Dutch, but
for words that mean something else in English: due, elf, once, sept."""
OTHER_WORDS: dict[str, frozenset[int]] = {}
for _language in _COUNTED:
    for _number, _words in enumerate(_language.split()):
        for _word in _words.split("|"):
            OTHER_WORDS[_word] = OTHER_WORDS.get(_word, frozenset()) | {_number}
"""The numbers that a word may be, in lower case; English has its own."""

MONTHS = (
    "jan(?:uary|uar|vier|uari)?|jänner|janv|enero|gennaio|janeiro",
    "feb(?:ruary|ruar|ruari|braio|rero)?|févr?(?:ier)?|fevereiro",
    "mar(?:ch|s|zo|ço)?|mär(?:z)?|mrz|maart",
    "apr(?:il|ile)?|avr(?:il)?|abr(?:il)?",
    "may|mai|mayo|maggio|maio|mei",
    "june?|juni|juin|junio|giugno|junho",
    "july?|juli|juil(?:let)?|julio|luglio|julho",
    "aug(?:ust|ustus)?|août|ago(?:sto)?",
    "sept?(?:ember|embre|iembre|tiembre)?|settembre|setembro",
    "oct(?:ober|obre|ubre)?|okt(?:ober)?|ott(?:obre)?|outubro",
    "nov(?:ember|embre|iembre|embro)?",
    "dec(?:ember)?|dez(?:ember|embro)?|déc(?:embre)?|dic(?:embre|iembre)?",
)
"""Patterns of the names of months, in the same languages and English."""

_SCALES = {
    "k": 1_000,
    "thousand": 1_000,
    "m": 1_000_000,
    "mn": 1_000_000,
    "mio": 1_000_000,
    "million": 1_000_000,
    "millionen": 1_000_000,
    "millions": 1_000_000,
    "bn": 1_000_000_000,
    "mrd": 1_000_000_000,
    "billion": 1_000_000_000,
}
_VULGAR = {"½": Fraction(1, 2), "¼": Fraction(1, 4), "¾": Fraction(3, 4)}
_GROUPED = re.compile(
    r"(?<![\w.,'’])(?<![^\W\d_][-/_])"
    r"(?P<whole>\d{1,3}(?P<mark>[.'’\u00a0\u202f ])\d{3}(?:(?P=mark)\d{3})*|\d+)"
    r"(?:(?P<point>[.,])(?P<part>\d+))?(?![\d]|[.,]\d)"
)
"""Digits in groups that a point, an apostrophe or a blank divides, and decimals behind a comma."""
_SCALED = re.compile(
    rf"(?<![\w.,])(\d+(?:[.,]\d+)?)\s?({'|'.join(_SCALES)}|%)(?![^\W_])", re.IGNORECASE
)


def other_numbers(text: str) -> Iterator[tuple[Fraction, tuple[int, int]]]:
    """The numbers that a text states otherwise than in English words and digits, and where.

    >>> [str(n) for n, _ in other_numbers("1.234,50 EUR, $3.5M, drei")]
    ['2469/2', '3500000', '3']
    """
    return chain(_grouped_numbers(text), _scaled_numbers(text), _numbers_in_words(text))


def _grouped_numbers(text: str) -> Iterator[tuple[Fraction, tuple[int, int]]]:
    for found in _GROUPED.finditer(text):
        mark, point, part = found["mark"], found["point"], found["part"]
        if mark is None and (point != "," or len(part) == 3):
            continue  # 1,234 are thousands, and the other forms are those of English
        whole = re.sub(r"\D", "", found["whole"])
        yield Fraction(f"{whole}.{part or 0}"), found.span()


def _scaled_numbers(text: str) -> Iterator[tuple[Fraction, tuple[int, int]]]:
    for found in _SCALED.finditer(text):
        number = Fraction(found[1].replace(",", "."))
        unit = found[2].lower()
        yield number / 100 if unit == "%" else number * _SCALES[unit], found.span()


def _numbers_in_words(text: str) -> Iterator[tuple[Fraction, tuple[int, int]]]:
    for found in re.finditer(r"[^\W\d_]+|[½¼¾]", text):
        for number in OTHER_WORDS.get(found[0].lower(), ()):
            yield Fraction(number), found.span()
        if found[0] in _VULGAR:
            yield _VULGAR[found[0]], found.span()
