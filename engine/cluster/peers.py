"""Speaks with the owners of ranges, in the same process or in others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

import numpy as np

from blendfusion.cluster.messages import Done, LostOwner, NewValues, Route, decoded, encoded
from blendfusion.cluster.protocol import Place, PlaceGone
from blendfusion.cluster.range_messages import (
    Collect,
    Collected,
    Deposit,
    Deposited,
    Missing,
    Offer,
    RangeMessage,
    RangeReply,
    Taken,
)
from blendfusion.cluster.ranges import LEAST_BITS, LOCAL_RANGES, block_digests, owners_of
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests
from blendfusion.types import Answer

_OFFERED_BYTES = 4
"""The mean size of values, compressed, that are worth an offer."""
_SAMPLE = 256
_SPARE_BITS = 15
"""A beginning of a digest has so many bits more than the number of values, which grows by that of
the workers: of 128 blocks, one has a value that begins like another one."""
_MOST_BITS = 56


class RunEnded(Exception):
    """Nobody wants more answers."""


class Peers:
    """The owners of ranges by address. For one thread."""

    def __init__(self, connect: Callable[[str], Place], own: str) -> None:
        self._connect, self.own = connect, own
        self._places: dict[str, Place] = {}
        self.moved = 0
        """Bytes to and from other processes so far."""

    def call(self, address: str, message: RangeMessage) -> RangeReply:
        """The reply of an owner. Raises PlaceGone, and RunEnded."""
        reply = LOCAL_RANGES.reply(message) if address == self.own else self._sent(address, message)
        if isinstance(reply, Collected) and reply.answers is None:
            raise RunEnded
        return reply

    def _sent(self, address: str, message: RangeMessage) -> RangeReply:
        data = encoded(message)
        try:
            place = self._places.get(address)
            if place is None:
                place = self._places[address] = self._connect(address)
            reply = place.call(data)
        except PlaceGone:
            self._places.pop(address, None)
            raise
        self.moved += len(data) + len(reply)
        found = decoded(reply)
        if isinstance(found, Done):
            assert found.error is not None
            raise found.error
        answer: RangeReply = found
        return answer


class RangeAnswers:
    """Answers to the values of a fragment, from the owners of their ranges. ``tell`` reports to the
    session, and returns the route from there on."""

    def __init__(self, peers: Peers, tell: Callable[[NewValues | LostOwner], Route]) -> None:
        self._peers, self._tell = peers, tell

    def answers(self, route: Route, values: list[Values]) -> tuple[Route, dict[Values, Answer]]:
        """The answers to distinct values, and the route to the owners as it is by now."""
        owners = len(route.addresses)
        left: dict[int, dict[bytes, Values]] = {}
        by_key = dict(sorted(zip(digests(values), values, strict=True), key=_first))
        numbers = owners_of([*by_key], [*by_key.values()], owners)
        for number, (key, value) in zip(numbers, by_key.items(), strict=True):
            left.setdefault(number, {})[key] = value
        found: dict[Values, Answer] = {}
        while left:
            addresses, tickets = route.addresses, dict[int, int]()
            new, hits = dict[int, int](), dict[Values, Answer]()
            for number, some in left.items():
                with suppress(PlaceGone):
                    deposited = self._deposited(route, number, some)
                    tickets[number], new[number] = deposited.ticket, deposited.new
                    hits.update(deposited.hits)
            if hits or any(new.values()):
                listed = dict(islice(hits.items(), 0, None, route.every)) if route.every else {}
                route = self._tell(
                    NewValues(route.key, new, len(hits), listed, route.every, values[0])
                )
            for number, ticket in tickets.items():
                with suppress(PlaceGone):
                    message = Collect(route.key, ticket)
                    collected = self._peers.call(addresses[number], message)
                    assert isinstance(collected, Collected)
                    assert collected.answers is not None
                    some = left.pop(number)
                    found.update(zip(some.values(), collected.answers, strict=True))
            for number in left:
                route = self._tell(LostOwner(route.key, number, addresses[number]))
        return route, found

    def _deposited(self, route: Route, number: int, by_key: dict[bytes, Values]) -> Deposited:
        """Let an owner know values, which are in the order of their keys."""
        address, values = route.addresses[number], [*by_key.values()]
        if address == self._peers.own or not _worth_an_offer(values):
            return self._sent(address, Deposit(route.key, values))
        keys = [*by_key]
        bits = (len(keys) * len(route.addresses)).bit_length() + _SPARE_BITS
        bits = min(_MOST_BITS, max(LEAST_BITS, bits))
        heads = np.frombuffer(b"".join(keys), ">u8")[::2] >> np.uint64(64 - bits)
        offer = Offer(
            route.key, heads.astype(np.int64).tolist(), bits, b"".join(block_digests(keys))
        )
        missing = self._peers.call(address, offer)
        assert isinstance(missing, Missing)
        ticket, new, hits = missing.ticket, 0, dict[Values, Answer]()
        places: list[int] | None = missing.places
        while places is not None:
            some = Deposit(route.key, [values[place] for place in places], ticket)
            deposited = self._sent(address, some)
            new += deposited.new
            hits.update(deposited.hits)
            places = deposited.unsure or None
        return Deposited(ticket, new, hits)

    def _sent(self, address: str, message: Deposit) -> Deposited:
        deposited = self._peers.call(address, message)
        assert isinstance(deposited, Deposited)
        return deposited


def _worth_an_offer(values: list[Values]) -> bool:
    """Whether values are long enough. These are random ones: digests order them."""
    some = values[:_SAMPLE]
    return len(encoded(Taken(some))) > _OFFERED_BYTES * len(some)


def _first(pair: tuple[bytes, Values]) -> bytes:
    return pair[0]
