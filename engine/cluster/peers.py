"""Speaks with the owners of ranges, in the same process or in others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

from blendfusion.cluster.messages import LostOwner, NewValues, Route, decoded, encoded
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
)
from blendfusion.cluster.ranges import LOCAL_RANGES, range_of
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import VALUES_BYTES, digests
from blendfusion.types import Answer

OFFERED_LENGTH = 3 * VALUES_BYTES
"""The mean length of values that are worth a digest."""


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
        if isinstance(found, BaseException):
            raise found
        answer: RangeReply = found
        return answer


class RangeAnswers:
    """Answers to the values of a fragment, from the owners of their ranges. ``tell`` reports to the
    session, and returns the route from there on."""

    def __init__(self, peers: Peers, tell: Callable[[NewValues | LostOwner], Route]) -> None:
        self._peers, self._tell = peers, tell

    def answers(self, route: Route, values: list[Values]) -> tuple[Route, dict[Values, Answer]]:
        """The answers to distinct values, and the route to the owners as it is by now."""
        left: dict[int, list[Values]] = {}
        for value, key in zip(values, digests(values), strict=True):
            left.setdefault(range_of(key, len(route.addresses)), []).append(value)
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
                    found.update(zip(left.pop(number), collected.answers, strict=True))
            for number in left:
                route = self._tell(LostOwner(route.key, number, addresses[number]))
        return route, found

    def _deposited(self, route: Route, number: int, values: list[Values]) -> Deposited:
        address, ticket = route.addresses[number], None
        length = sum(len(v) for row in values for v in row if v)
        if length >= OFFERED_LENGTH * len(values) and address != self._peers.own:
            offer = Offer(route.key, b"".join(digests(values)))
            missing = self._peers.call(address, offer)
            assert isinstance(missing, Missing)
            ticket, values = missing.ticket, [values[place] for place in missing.places]
        deposited = self._peers.call(address, Deposit(route.key, values, ticket))
        assert isinstance(deposited, Deposited)
        return deposited
