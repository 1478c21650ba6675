"""A stored answer as every store that outlives a process writes it: key, answer, checksum."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from blendfusion.models.stores.memory import FROM_CACHE
from blendfusion.types import Answer, FinishReason

T = TypeVar("T")

REFRESHED_AFTER_SECONDS = 86_400
"""How old the time of an entry's last use must be for a look-up to write a new one."""
_pack = struct.Struct("<d").pack
_crc32 = zlib.crc32

Row: TypeAlias = "tuple[bytes, str | None, FinishReason, float | None, int, int]"
"""Key, text, finish, logprob, time of use, checksum."""


class DamagedStore(Exception):
    """A store does not hold the data that was written."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer under its key, which tells nothing of the question or the values."""

    key: bytes
    answer: Answer
    used: int
    """When it was last used, about: seconds since 1970, UTC."""


def row_of(entry: Entry) -> Row | None:
    """An entry as it is stored; None for text that no database holds (half a surrogate pair)."""
    text, finish = entry.answer.text, entry.answer.finish
    logprob = None if entry.answer.logprob is None else float(entry.answer.logprob)
    if logprob is not None and math.isnan(logprob):  # which SQLite would read back as NULL
        logprob = None
    try:
        known = _sum(text, finish)
    except UnicodeEncodeError:
        return None
    return entry.key, text, finish, logprob, entry.used, _mark(entry.key, logprob, known)


def check_rows(rows: Iterable[Row]) -> Iterator[tuple[bytes, Answer, int]]:
    """(key, answer, time of use) of stored rows. Raises Damaged for one that is not as it was
    written: a database itself does not see a flipped bit in a text."""
    equal: dict[tuple[str | None, str], tuple[int, Answer]] = {}
    for key, text, finish, logprob, used, mark in rows:
        known_sum = equal.get((text, finish))  # this runs for every value
        if known_sum is None:
            answer = Answer(text, finish, None, FROM_CACHE)
            known_sum = equal[text, finish] = (_sum(text, finish), answer)
        known, answer = known_sum
        try:  # databases hold values of any type, where somebody else writes
            whole = _mark(key, logprob, known) == mark and type(used) is int
        except (TypeError, struct.error):
            whole = False
        if not whole:
            raise DamagedStore("an answer is not as it was written")
        if logprob is not None:
            answer = Answer(text, finish, logprob, FROM_CACHE)
        yield key, answer, used


def _mark(key: bytes, logprob: float | None, known: int) -> int:
    return _crc32(key if logprob is None else key + _pack(logprob), known)


def _sum(text: str | None, finish: str) -> int:
    return _crc32(f"{finish} {'' if text is None else 'text '}{text}".encode())


def after(prefix: bytes) -> bytes:
    """The first key behind all that begin with ``prefix``; longer than any of them at the end.

    >>> after(b"ab"), after(bytes([1, 255]))
    (b'ac', b'\\x02')
    """
    shorter = prefix.rstrip(b"\xff")
    return shorter[:-1] + bytes([shorter[-1] + 1]) if shorter else prefix + b"\xff" * 32


def pieces(items: Sequence[T], length: int) -> Iterator[Sequence[T]]:
    """The items in order, in pieces of ``length``."""
    return (items[start : start + length] for start in range(0, len(items), length))
