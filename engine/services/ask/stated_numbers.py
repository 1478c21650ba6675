"""Numbers that a question states, in the digits and words of English."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

_WORDS = {
    **{word: n for n, word in enumerate("one two three four five six seven eight nine".split(), 1)},
    **{w: n for n, w in enumerate("ten eleven twelve thirteen fourteen fifteen".split(), 10)},
    **{w: n for n, w in enumerate("sixteen seventeen eighteen nineteen twenty".split(), 16)},
    **{
        w: 10 * n for n, w in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)
    },
}
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_BLANK = " \u00a0\u202f"
_NUMBER = re.compile(
    r"(?<![\w.,])(?<![^\W\d][-−–/])(?P<sign>(?<!\S)[-−](?=\d))?"
    rf"(?:(?P<digits>\d{{1,3}}(?:[{_BLANK}]\d{{3}})+(?:[.,]\d+)*|\d+(?:[.,'’]\d+)*)"
    rf"|(?P<word>{'|'.join(_WORDS)}))(?![^\W_]|[-–]?[^\W\d_])"
    rf"(?:[{_BLANK}](?P<scale>{'|'.join(_SCALES)})\b)?",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"\d+|0\.\d+|\d+\.(?:\d{1,2}|\d{4,})|\d{4,}\.\d+")
"""Digits of one meaning: a point before three digits may divide thousands."""
_GROUPED = re.compile(rf"\d{{1,3}}(?:([,'’{_BLANK}])\d{{3}})(?:\1\d{{3}})*(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a text. ``value``: None where its digits have several meanings (``3.000``,
    ``2,5``)."""

    value: Decimal | None
    start: int
    stop: int
    is_word: bool = False

    @property
    def literal(self) -> str | None:
        """The number as SQL writes it; None for several meanings."""
        return None if self.value is None else f"{self.value:f}"


def numbers(text: str) -> Iterator[Number]:
    """The numbers of a text from left to right; neither those within words (``3rd``, ``B2``) nor
    behind a slash or a hyphen of a word (``top-5``).

    >>> [one.literal for one in numbers("3,000 or 1 200, -300, 3.5, two, 3.000 and 2 million")]
    ['3000', '1200', '-300', '3.5', '2', None, '2000000']
    """
    for found in _NUMBER.finditer(text):
        digits, word, scale = found["digits"], found["word"], found["scale"]
        value = _value(digits) if digits else Decimal(_WORDS[word.lower()])
        if value is not None:
            value *= _SCALES[scale.lower()] if scale else 1
            value *= -1 if found["sign"] else 1
        yield Number(value, *found.span(), is_word=word is not None)


def _value(digits: str) -> Decimal | None:
    if _PLAIN.fullmatch(digits):
        return Decimal(digits)
    if _GROUPED.fullmatch(digits):
        return Decimal(re.sub(rf"[,'’{_BLANK}]", "", digits))
    return None
