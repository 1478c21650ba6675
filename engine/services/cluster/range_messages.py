"""The messages to the owner of a range of digests, from fragments, models and the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from blendfusion.models.protocol.model import Values
from blendfusion.services.cluster.compact import (
    ANSWERS,
    ANSWERS_BY_PLACE,
    PLACES,
    ROWS,
    VALUES,
    Compact,
)
from blendfusion.types import Answer, Task

NO_BATCH = -1
BLOCK = 256
"""The number of values that an offer has one digest of."""


@dataclass(frozen=True)
class Lookup(Compact):
    """Where the answers to a question are stored, and under which keys."""

    store: bytes
    """The store, encoded."""
    fingerprint: str
    whole: Task
    """The task whose answers are valid for every query."""
    posed: Task
    """The task as the model sees it."""


@dataclass(frozen=True)
class OpenRange(Compact):
    """Take values of a question from now on."""

    key: bytes
    lookup: Lookup
    spill_above: int
    """As the options of the session: the memory of all ranges of a worker."""
    spill_folder: str | None


@dataclass(frozen=True)
class Compare(Compact):
    """A fragment asks for answers. A part of its values are those whose digests begin with the
    same bits, and each part has one digest of its digests. If the owner has exactly these values
    in a part, their own digests need not be sent."""

    key: bytes
    parts: list[int] = field(metadata=PLACES)
    """The first ``bits`` bits of the digests of each part, ascending."""
    bits: int
    digests: bytes


@dataclass(frozen=True)
class Same(Compact):
    """The places of the parts that are the same at the owner; the values of the others are to be
    offered."""

    ticket: int
    places: list[int] = field(metadata=PLACES)


@dataclass(frozen=True)
class Offer(Compact):
    """A fragment needs answers to values, which it sends if need be.

    The owner finds the values that it has by the first bits of their digests. Others may begin
    alike: so there is a digest of all digests of each ``BLOCK`` values, which tells."""

    key: bytes
    heads: list[int] = field(metadata=PLACES)
    """The first ``bits`` bits of the digests, ascending."""
    bits: int
    blocks: bytes
    ticket: int | None = None
    """The ticket of a comparison, whose values stand before these."""


@dataclass(frozen=True)
class Missing(Compact):
    """The places of an offer's values that are to be sent."""

    ticket: int
    places: list[int] = field(metadata=PLACES)


@dataclass(frozen=True)
class Deposit(Compact):
    """Values that a fragment needs answers to: all of them, or those that an offer lacks."""

    key: bytes
    values: list[Values] = field(metadata=VALUES)
    ticket: int | None = None
    """The ticket of the offer."""


@dataclass(frozen=True)
class DepositReply(Compact):
    """So many values are new; ``hits`` were stored by an earlier run. Of values at ``unsure``
    places, the owner has some that begin alike: they are to be sent."""

    ticket: int
    new: int
    hits: dict[Values, Answer] = field(default_factory=dict, metadata=ROWS)
    unsure: list[int] = field(default_factory=list, metadata=PLACES)


@dataclass(frozen=True)
class Collect(Compact):
    """Wait for the answers to the values of a ticket."""

    key: bytes
    ticket: int


@dataclass(frozen=True)
class CollectReply(Compact):
    """The answers in the order of the values; None: the run has ended."""

    answers: list[Answer] | None = field(metadata=ANSWERS)


@dataclass(frozen=True)
class Take(Compact):
    """Give a worker values of a batch, at most ``most``."""

    key: bytes
    batch: int
    most: int
    worker: str
    """Its address."""


@dataclass(frozen=True)
class TakeReply(Compact):
    """The values of a batch."""

    values: list[Values] = field(metadata=VALUES)


@dataclass(frozen=True)
class Give(Compact):
    """The answers to the values of a batch, by place; the others wait again. ``NO_BATCH``: only
    count."""

    key: bytes
    batch: int
    answers: dict[int, Answer] = field(default_factory=dict, metadata=ANSWERS_BY_PLACE)


@dataclass(frozen=True)
class Pending(Compact):
    """So many values wait to be asked about."""

    number: int


@dataclass(frozen=True)
class EndRange(Compact):
    """Ends a range: no more of its answers are needed."""

    key: bytes


RangeMessage: TypeAlias = OpenRange | Compare | Offer | Deposit | Collect | Take | Give | EndRange
RangeReply: TypeAlias = "Same | Missing | DepositReply | CollectReply | TakeReply | Pending"
