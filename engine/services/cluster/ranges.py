"""The owner of a range of digests: its distinct values are looked up and given out once."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from hashlib import blake2b
from itertools import count
from weakref import WeakValueDictionary

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import ENTRY_BYTES, AnswerSpill, SpillableAnswers
from blendfusion.models.stores.key import digests
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.wrappers.cache import stored_answers
from blendfusion.options import Options
from blendfusion.services.cluster.messages import decode_message
from blendfusion.services.cluster.pending_values import PendingValues, beginning
from blendfusion.services.cluster.range_messages import (
    BLOCK,
    Collect,
    CollectReply,
    Compare,
    Deposit,
    DepositReply,
    EndRange,
    Give,
    Lookup,
    Missing,
    Offer,
    OpenRange,
    Pending,
    RangeMessage,
    RangeReply,
    Same,
    Take,
    TakeReply,
)
from blendfusion.types import Answer

_WAIT_SECONDS = 1.0
_AWAITED_SECONDS = 10.0
"""How long a value that a worker has promised to send is waited for: it may be gone."""
_AT_ONCE = 4_096
"""Keys of a ticket that are looked up at a time."""


BLOCK_BYTES = 16
LEAST_BITS = 24
"""The length of the beginnings by which an owner finds keys."""


def range_of(digest: bytes, ranges: int) -> int:
    """The number of the range that contains a digest, of ``ranges`` equal ranges."""
    return int.from_bytes(digest[:4], "big") * ranges >> 32


def owners_of(keys: Sequence[bytes], values: Sequence[Values], ranges: int) -> list[int]:
    """The range of each key; values that begin alike have one owner, so that one model computes
    their beginning once."""
    starts = [*{beginning(value) for value in values if len(value) > 1}]
    of_start = dict(zip(starts, digests(starts), strict=True))
    return [
        range_of(of_start.get(beginning(value), key), ranges)
        for key, value in zip(keys, values, strict=True)
    ]


def block_digests(keys: Sequence[bytes]) -> list[bytes]:
    """A digest of each ``BLOCK`` keys."""
    return [digest_of(keys[i : i + BLOCK]) for i in range(0, len(keys), BLOCK)]


def digest_of(keys: Sequence[bytes]) -> bytes:
    """A digest of keys in order."""
    return blake2b(b"".join(keys), digest_size=BLOCK_BYTES).digest()


class HashRange:
    """The values of one question of one run in this range: ``spill`` bounds their memory. Safe to
    use from threads."""

    def __init__(
        self,
        known: Callable[[Sequence[Values]], dict[Values, Answer]],
        spill: AnswerSpill | None = None,
    ) -> None:
        self._known = known
        self._spill = spill or AnswerSpill(Options().spill_above)
        self._answers: SpillableAnswers[bytes] = SpillableAnswers(self._spill, iter, _size)
        self._pending = PendingValues(self._spill)
        self._index: dict[int, list[bytes]] = {}
        """The keys of the values in memory, by their first ``LEAST_BITS`` bits."""
        self._indexed = (0, 0)
        """How often keys had been moved to the file when the index was made."""
        self._batches: dict[int, list[bytes]] = {}
        """Values that somebody asks about."""
        self._awaited: dict[int, float] = {}
        """Beginnings of values that a worker is about to send, until when."""
        self._sorted: list[bytes] | None = None
        """The keys in order; None if there are others since."""
        self._promised: dict[int, float] = {}
        """Tickets of workers that are about to send values, until when."""
        self._tickets: dict[int, _Ticket] = {}
        self._numbers = count(1)
        self._ended = False
        self._changed = threading.Condition(self._spill.lock)

    def compare(self, parts: Sequence[int], bits: int, digests: bytes) -> Same:
        """The parts of a worker's values that are the same here, once nobody else is about to send
        values, if some are not."""
        given = [digests[i : i + BLOCK_BYTES] for i in range(0, len(digests), BLOCK_BYTES)]
        with self._changed:
            while True:
                now = time.monotonic()
                keys = [self._part(part, bits) for part in parts]
                same = [n for n, some in enumerate(keys) if digest_of(some) == given[n]]
                coming = any(until > now for until in self._promised.values())
                if self._ended or len(same) == len(parts) or not coming:
                    break
                self._changed.wait(_WAIT_SECONDS)
            ticket = next(self._numbers)
            self._tickets[ticket] = _Ticket([key for n in same for key in keys[n]])
            if len(same) < len(parts):
                self._promised[ticket] = now + _AWAITED_SECONDS
            return Same(ticket, same)

    def offer(
        self, heads: Sequence[int], bits: int, blocks: bytes, ticket: int | None = None
    ) -> Missing:
        """The places of values that are to be sent: no worker has sent them, or is about to."""
        keys: list[bytes | None] = [None] * len(heads)
        missing = [*range(len(heads))]
        with self._changed:
            while True:
                now = time.monotonic()
                found = self._keys_that_begin([heads[place] for place in missing], bits)
                for place, key in zip(missing, found, strict=True):
                    keys[place] = key
                missing = [place for place in missing if keys[place] is None]
                starts = {heads[place] >> bits - LEAST_BITS for place in missing}
                if self._ended or not any(self._awaited.get(s, 0) > now for s in starts):
                    break
                self._changed.wait(_WAIT_SECONDS)
            self._awaited.update(dict.fromkeys(starts, now + _AWAITED_SECONDS))
            return Missing(self._ticket(keys, blocks, ticket), missing)

    def deposit(self, values: list[Values], ticket: int | None) -> DepositReply:
        """Take these values in, of which some may be known. Raises BlendFusionError if a file
        cannot be written."""
        keys = [*digests(values)]
        by_key = dict(zip(keys, values, strict=True))
        with self._changed:
            new = self._new([*by_key])
        hits = self._known([by_key[key] for key in new])
        with self._changed:
            fresh = self._new(new)
            for key in fresh:
                self._index.setdefault(_start(key), []).append(key)
                if by_key[key] not in hits:
                    self._pending.add(key, by_key[key])
            found = {by_key[key]: hits[by_key[key]] for key in fresh if by_key[key] in hits}
            self._keep({key: hits[by_key[key]] for key in fresh if by_key[key] in hits})
            for key in by_key:
                self._awaited.pop(_start(key), None)
            if fresh:
                self._sorted = None
            if ticket is not None:
                self._promised.pop(ticket, None)
            else:
                ticket = self._ticket(keys, b"")
            unsure = self._tickets[ticket].complete_keys(keys)
            self._changed.notify_all()
        return DepositReply(ticket, len(fresh) - len(found), found, unsure)

    def collect(self, ticket: int) -> CollectReply:
        """The answers to the values of a ticket, once all are there, or the run has ended."""
        with self._changed:
            keys, at = self._tickets.pop(ticket).complete, 0
            while not self._ended:
                while at < len(keys):
                    some = keys[at : at + _AT_ONCE]
                    waiting = self._pending.without_answer(some)
                    at += waiting.index(True) if any(waiting) else len(some)
                    if any(waiting):
                        break
                if at == len(keys):
                    answers = self._answers.among(keys)
                    return CollectReply([answers[key] for key in keys])
                self._changed.wait(_WAIT_SECONDS)
            return CollectReply(None)

    def take(self, batch: int, most: int, worker: str) -> TakeReply:
        """Values of a batch for a worker, at most ``most``."""
        with self._changed:
            keys = self._pending.take(most, worker)
            self._batches[batch] = keys
            return TakeReply([self._pending.values[key] for key in keys])

    def give(self, batch: int, answers: dict[int, Answer]) -> Pending:
        """Take the answers to a batch in; its other values wait again. Raises BlendFusionError if
        a file cannot be written."""
        with self._changed:
            keys = self._batches.pop(batch, [])
            for place, key in enumerate(keys):
                if place in answers:
                    self._pending.forget(key)
                else:
                    self._pending.add(key, self._pending.values[key])
            self._changed.notify_all()
            self._keep({keys[place]: answer for place, answer in answers.items()})
            return Pending(len(self._pending))

    def end(self) -> None:
        """Nobody wants more: those who wait get nothing."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _keep(self, answers: dict[bytes, Answer]) -> None:
        """Keep these, and move what there is no room for to files."""
        self._answers.update(answers)
        now = self._answers.rows.moves, self._pending.rows.moves
        if now != self._indexed:
            self._indexed, self._index = now, {}
            for key in (*self._answers.recent, *self._pending.values):
                self._index.setdefault(_start(key), []).append(key)

    def _new(self, keys: Sequence[bytes]) -> list[bytes]:
        """The keys that nobody has sent."""
        values, recent = self._pending.values, self._answers.recent
        new = [key for key in keys if key not in values and key not in recent]
        for rows in (self._answers.rows, self._pending.rows):
            there = rows.find(new)
            new = [key for key in new if key not in there]
        return new

    def _keys_that_begin(self, heads: Sequence[int], bits: int) -> list[bytes | None]:
        """The keys that begin so; None if there is none, or not one alone."""
        shift, named = 64 - bits, list[bytes | None]()
        for head in heads:
            keys = self._index.get(head >> bits - LEAST_BITS, ())
            own = {key for key in keys if int.from_bytes(key[:8], "big") >> shift == head}
            first, last = head << shift, (head + 1 << shift) - 1
            ends = first.to_bytes(8, "big"), last.to_bytes(8, "big") + b"\xff" * 8
            for rows in (self._answers.rows, self._pending.rows):
                own.update(rows.between(*ends))
            named.append(own.pop() if len(own) == 1 else None)
        return named

    def _part(self, part: int, bits: int) -> list[bytes]:
        """The keys that begin so, in order; none once keys are in the file."""
        if self._answers.rows.moves or self._pending.rows.moves:
            return []
        if self._sorted is None:
            self._sorted = sorted((*self._answers.recent, *self._pending.values))
        first, last = (n << 64 - bits for n in (part, part + 1))
        start = bisect_left(self._sorted, first.to_bytes(8, "big"))
        end = len(self._sorted)
        if last < 2**64:
            end = bisect_left(self._sorted, last.to_bytes(8, "big"), start)
        return self._sorted[start:end]

    def _ticket(
        self, keys: Sequence[bytes | None], blocks: bytes, ticket: int | None = None
    ) -> int:
        number = next(self._numbers) if ticket is None else ticket
        before = [] if ticket is None else self._tickets[ticket].complete
        self._tickets[number] = _Ticket(before, keys, blocks)
        return number


class _Ticket:
    """The keys of the values that somebody wants: first those that a comparison named, then those
    of an offer; None: to be sent."""

    def __init__(
        self, named: list[bytes], keys: Sequence[bytes | None] = (), blocks: bytes = b""
    ) -> None:
        self._named, self._keys, self._blocks = named, [*keys], blocks

    @property
    def complete(self) -> list[bytes]:
        """The keys, none of which is to be sent any more."""
        return self._named + self._offered_keys

    @property
    def _offered_keys(self) -> list[bytes]:
        return [key for key in self._keys if key is not None]

    def complete_keys(self, keys: list[bytes]) -> list[int]:
        """Add the keys that were sent, in the order of their places. Returns the places whose
        values are to be sent in addition: another value begins like one of them."""
        sent = iter(keys)
        self._keys = [key or next(sent) for key in self._keys]
        given = [
            self._blocks[i : i + BLOCK_BYTES] for i in range(0, len(self._blocks), BLOCK_BYTES)
        ]
        self._blocks = b""
        if not given:
            return []
        pairs = zip(block_digests(self._offered_keys), given, strict=True)
        wrong = [number for number, (own, other) in enumerate(pairs) if own != other]
        blocks = [range(n * BLOCK, min(len(self._keys), (n + 1) * BLOCK)) for n in wrong]
        unsure = [place for block in blocks for place in block]
        for place in unsure:
            self._keys[place] = None
        return unsure


def _size(key: bytes, answer: Answer) -> int:
    return ENTRY_BYTES + len(answer.text or "")


def _start(key: bytes) -> int:
    return int.from_bytes(key[:8], "big") >> 64 - LEAST_BITS


class LocalRanges:
    """The ranges that one process owns, by question. Safe to use from threads."""

    def __init__(self) -> None:
        self._ranges: dict[bytes, HashRange] = {}
        self._spills: WeakValueDictionary[tuple[int, str | None], AnswerSpill] = (
            WeakValueDictionary()
        )
        """The memory of all ranges with the same options."""
        self._stores: dict[bytes, AnswerStore] = {}

    def reply(self, message: RangeMessage) -> RangeReply:
        """The reply to a message."""
        if isinstance(message, OpenRange):
            room = message.spill_above, message.spill_folder
            spill = self._spills.setdefault(room, AnswerSpill(*room))
            self._ranges[message.key] = HashRange(self._looked_up(message.lookup), spill)
            return Pending(0)
        if isinstance(message, EndRange):
            ended = self._ranges.pop(message.key, None)
            if ended is not None:
                ended.end()
            return Pending(0)
        found = self._ranges.get(message.key)
        if found is None:  # the run has ended meanwhile
            return CollectReply(None)
        if isinstance(message, Compare):
            return found.compare(message.parts, message.bits, message.digests)
        if isinstance(message, Offer):
            return found.offer(message.heads, message.bits, message.blocks, message.ticket)
        if isinstance(message, Deposit):
            return found.deposit(message.values, message.ticket)
        if isinstance(message, Collect):
            return found.collect(message.ticket)
        if isinstance(message, Take):
            return found.take(message.batch, message.most, message.worker)
        assert isinstance(message, Give)
        return found.give(message.batch, message.answers)

    def store(self, encoded: bytes) -> AnswerStore:
        """The store of these bytes, opened once in this process."""
        found = self._stores.get(encoded)
        if found is None:
            made: AnswerStore = decode_message(encoded)
            found = self._stores.setdefault(encoded, made)
        return found

    def _looked_up(self, lookup: Lookup) -> Callable[[Sequence[Values]], dict[Values, Answer]]:
        store = self.store(lookup.store)
        return lambda values: stored_answers(
            store, lookup.fingerprint, lookup.whole, lookup.posed, values
        )


LOCAL_RANGES = LocalRanges()
"""The ranges of this process, whichever of its places is spoken to."""
