"""The messages to the owner of a range of digests, from fragments, models and the session."""

from __future__ import annotations

import copyreg
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from blendfusion.cluster.packing import (
    Packed,
    packed_answers,
    packed_values,
    unpacked_answers,
    unpacked_values,
)
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task

NO_BATCH = -1


@dataclass(frozen=True)
class Lookup:
    """Where the answers to a question are stored, and under which keys."""

    store: bytes
    """The store, encoded."""
    fingerprint: str
    whole: Task
    """The task whose answers are valid for every query."""
    posed: Task
    """The task as the model sees it."""


@dataclass(frozen=True)
class OpenRange:
    """Take values of a question from now on."""

    key: bytes
    lookup: Lookup


@dataclass(frozen=True)
class Offer:
    """A fragment needs answers to the values with these digests, which it sends if need be."""

    key: bytes
    digests: bytes

    def __reduce__(self) -> _Form:
        return Offer, (self.key, self.digests)


@dataclass(frozen=True)
class Missing:
    """The values of an offer that are to be sent."""

    ticket: int
    places: list[int]

    def __reduce__(self) -> _Form:
        return _missing, (self.ticket, array("I", self.places).tobytes())


@dataclass(frozen=True)
class Deposit:
    """Values that a fragment needs answers to: all of them, or those that an offer lacks."""

    key: bytes
    values: list[Values]
    ticket: int | None = None
    """The ticket of the offer."""

    def __reduce__(self) -> _Form:
        return _deposit, (self.key, packed_values(self.values), self.ticket)


@dataclass(frozen=True)
class Deposited:
    """So many values are new; ``hits`` were stored by an earlier run."""

    ticket: int
    new: int
    hits: dict[Values, Answer] = field(default_factory=dict)

    def __reduce__(self) -> _Form:
        return Deposited, (self.ticket, self.new, self.hits)


@dataclass(frozen=True)
class Collect:
    """Wait for the answers to the values of a ticket."""

    key: bytes
    ticket: int

    def __reduce__(self) -> _Form:
        return Collect, (self.key, self.ticket)


@dataclass(frozen=True)
class Collected:
    """The answers in the order of the values; None: the run has ended."""

    answers: list[Answer] | None

    def __reduce__(self) -> _Form:
        answers = self.answers
        return _collected, (None if answers is None else packed_answers(answers, costs=False),)


@dataclass(frozen=True)
class Take:
    """Give out the values of a batch, at most so many."""

    key: bytes
    batch: int
    most: int


@dataclass(frozen=True)
class Taken:
    """The values of a batch."""

    values: list[Values]

    def __reduce__(self) -> _Form:
        return _taken, (packed_values(self.values),)


@dataclass(frozen=True)
class Give:
    """The answers to the values of a batch, by place; the others wait again. ``NO_BATCH``: only
    count."""

    key: bytes
    batch: int
    answers: dict[int, Answer] = field(default_factory=dict)

    def __reduce__(self) -> _Form:
        places = array("I", self.answers).tobytes()
        return _give, (
            self.key,
            self.batch,
            places,
            packed_answers([*self.answers.values()], costs=False),
        )


@dataclass(frozen=True)
class Pending:
    """So many values wait to be asked about."""

    number: int


@dataclass(frozen=True)
class EndRange:
    """Nobody wants more answers."""

    key: bytes


RangeMessage: TypeAlias = OpenRange | Offer | Deposit | Collect | Take | Give | EndRange
RangeReply: TypeAlias = "Missing | Deposited | Collected | Taken | Pending"
_Form: TypeAlias = "tuple[Callable[..., object], tuple[object, ...]]"


def _missing(ticket: int, places: bytes) -> Missing:
    found = array("I")
    found.frombytes(places)
    return Missing(ticket, found.tolist())


def _deposit(key: bytes, packed: Packed, ticket: int | None) -> Deposit:
    return Deposit(key, unpacked_values(packed), ticket)


def _collected(packed: Packed | None) -> Collected:
    return Collected(None if packed is None else unpacked_answers(packed))


def _taken(packed: Packed) -> Taken:
    return Taken(unpacked_values(packed))


def _give(key: bytes, batch: int, places: bytes, packed: Packed) -> Give:
    found = array("I")
    found.frombytes(places)
    return Give(key, batch, dict(zip(found, unpacked_answers(packed), strict=True)))


_NAMES = "_missing _deposit Deposited _collected _taken _give Offer Collect"
for _code, _name in enumerate(_NAMES.split(), 241):
    # Pickle writes these numbers, which are for private use, in the place of names.
    copyreg.add_extension(__name__, _name, _code)
