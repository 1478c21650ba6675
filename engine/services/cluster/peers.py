"""Speaks with the owners of ranges, in the same process or in others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import islice

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests
from blendfusion.services.cluster.messages import (
    FragmentEnd,
    LostOwner,
    NewValues,
    Route,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.protocol import Place, PlaceGone
from blendfusion.services.cluster.range_messages import (
    Collect,
    CollectReply,
    Compare,
    Deposit,
    DepositReply,
    Missing,
    Offer,
    RangeMessage,
    RangeReply,
    Same,
    TakeReply,
)
from blendfusion.services.cluster.ranges import (
    LEAST_BITS,
    LOCAL_RANGES,
    block_digests,
    digest_of,
    owners_of,
)
from blendfusion.types import Answer

_OFFERED_BYTES = 4
"""The mean size of values, compressed, that are worth an offer."""
_SAMPLE = 256
_PART = 128
"""The size of parts that are compared: half of it to all of it."""
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
        self.alike: dict[tuple[bytes, str], bool] = {}
        """Whether an owner had most parts of the values of the last comparison, by question and
        address."""
        self.moved = 0
        """Bytes to and from other processes so far."""

    def call(self, address: str, message: RangeMessage) -> RangeReply:
        """The reply of an owner. Raises PlaceGone, and RunEnded."""
        reply = LOCAL_RANGES.reply(message) if address == self.own else self._send(address, message)
        if isinstance(reply, CollectReply) and reply.answers is None:
            raise RunEnded
        return reply

    def _send(self, address: str, message: RangeMessage) -> RangeReply:
        data = encode_message(message)
        try:
            place = self._places.get(address)
            if place is None:
                place = self._places[address] = self._connect(address)
            reply = place.call(data)
        except PlaceGone:
            self._places.pop(address, None)
            raise
        self.moved += len(data) + len(reply)
        found = decode_message(reply)
        if isinstance(found, FragmentEnd):
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
                    left[number], deposited = self._deposit(route, number, some)
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
                    assert isinstance(collected, CollectReply)
                    assert collected.answers is not None
                    some = left.pop(number)
                    found.update(zip(some.values(), collected.answers, strict=True))
            for number in left:
                route = self._tell(LostOwner(route.key, number, addresses[number]))
        return route, found

    def _deposit(
        self, route: Route, number: int, by_key: dict[bytes, Values]
    ) -> tuple[dict[bytes, Values], DepositReply]:
        """Let an owner know values, which are in the order of their keys. Returns them in the order
        of its answers."""
        address, values = route.addresses[number], [*by_key.values()]
        if address == self._peers.own or not _worth_an_offer(values):
            return by_key, self._send(address, Deposit(route.key, values))
        parts, compared = self._compare(route, address, [*by_key])
        same = (
            [] if compared is None else [key for place in compared.places for key in parts[place]]
        )
        keys = [*(by_key.keys() - {*same})] if same else [*by_key]
        keys.sort()
        in_order = {key: by_key[key] for key in (*same, *keys)}
        if compared is not None and not keys:
            return in_order, DepositReply(compared.ticket, 0)
        values = [by_key[key] for key in keys]
        bits = (len(keys) * len(route.addresses)).bit_length() + _SPARE_BITS
        bits = min(_MOST_BITS, max(LEAST_BITS, bits))
        heads = np.frombuffer(b"".join(keys), ">u8")[::2] >> np.uint64(64 - bits)
        offer = Offer(
            route.key,
            heads.astype(np.int64).tolist(),
            bits,
            b"".join(block_digests(keys)),
            None if compared is None else compared.ticket,
        )
        missing = self._peers.call(address, offer)
        assert isinstance(missing, Missing)
        ticket, new, hits = missing.ticket, 0, dict[Values, Answer]()
        places: list[int] | None = missing.places
        while places is not None:
            some = Deposit(route.key, [values[place] for place in places], ticket)
            deposited = self._send(address, some)
            new += deposited.new
            hits.update(deposited.hits)
            places = deposited.unsure or None
        return in_order, DepositReply(ticket, new, hits)

    def _compare(
        self, route: Route, address: str, keys: list[bytes]
    ) -> tuple[list[list[bytes]], Same | None]:
        """The parts of keys in order, and those that the owner has, unless it had few the last
        time."""
        about = route.key, address
        if len(keys) < _PART or not self._peers.alike.get(about, True):
            return [], None
        bits = (len(keys) * len(route.addresses) // _PART).bit_length()
        parts: dict[int, list[bytes]] = {}
        for key in keys:
            parts.setdefault(int.from_bytes(key[:8], "big") >> 64 - bits, []).append(key)
        digests = b"".join(map(digest_of, parts.values()))
        same = self._peers.call(address, Compare(route.key, [*parts], bits, digests))
        assert isinstance(same, Same)
        self._peers.alike[about] = 2 * len(same.places) > len(parts)
        return [*parts.values()], same

    def _send(self, address: str, message: Deposit) -> DepositReply:
        deposited = self._peers.call(address, message)
        assert isinstance(deposited, DepositReply)
        return deposited


def _worth_an_offer(values: list[Values]) -> bool:
    """Whether values are long enough. These are random ones: digests order them."""
    some = values[:_SAMPLE]
    return len(encode_message(TakeReply(some))) > _OFFERED_BYTES * len(some)


def _first(pair: tuple[bytes, Values]) -> bytes:
    return pair[0]
