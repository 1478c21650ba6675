"""A question as tokens that keep what its words mean: signs, operators and numbers stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from blendfusion.services.ask.stated_numbers import Number, numbers

_TOKEN = re.compile(r"[^\W_]+|[<>!]=|[^\w\s.,;:?!\"'“”‘’„`()\[\]]|_")
"""A word, an operator, or another sign than those of punctuation."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a sign or a number. ``key``: equal for tokens that mean the same, without blanks."""

    key: str
    start: int
    stop: int
    number: Number | None = None


def tokens(text: str) -> list[Token]:
    """The tokens of a text, in order.

    >>> [token.key for token in tokens("Orders above $3,000 (not cancelled)?")]
    ['orders', 'above', '$', '#3000', 'not', 'cancelled']
    """
    found: list[Token] = []
    at = 0
    for number in numbers(text):
        found += _between(text, at, number.start)
        own = text[number.start : number.stop]
        key = f"#{number.literal}" if number.literal else f"?{''.join(own.split())}"
        found.append(Token(key, number.start, number.stop, number))
        at = number.stop
    return [*found, *_between(text, at, len(text))]


def _between(text: str, start: int, stop: int) -> Iterator[Token]:
    for found in _TOKEN.finditer(text, start, stop):
        yield Token(found[0].casefold(), *found.span())
