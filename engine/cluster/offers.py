"""The long values of a stage travel to the session once: workers offer their digests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import VALUES_BYTES

OFFERED_LENGTH = 3 * VALUES_BYTES
"""The mean length of values that are worth a digest."""
_REMEMBERED = 1_000_000
_WAIT_SECONDS = 0.1


class Offers:
    """The values that the workers of a stage have sent, by digest. Safe to use from threads."""

    def __init__(self) -> None:
        self.values: dict[bytes, Values] = {}
        self.awaited: set[bytes] = set()
        """The digests of values that some worker is about to send."""
        self.changed = threading.Condition()

    @contextmanager
    def of_one_worker(self) -> Iterator[Offer]:
        """The offers of one worker, one after the other."""
        offer = Offer(self)
        try:
            yield offer
        finally:
            offer.end()


class Offer:
    """The values that a worker offers at present: none at first."""

    def __init__(self, offers: Offers) -> None:
        self._offers = offers
        self._keys: list[bytes] = []
        self._known: list[Values | None] = []

    def begin(self, digests: bytes) -> list[int]:
        """Begin an offer of values with these digests. The worker is to send those at the places
        that come back: they are not known, and no other worker is about to send them."""
        offers = self._offers
        keys = [digests[i : i + VALUES_BYTES] for i in range(0, len(digests), VALUES_BYTES)]
        with offers.changed:
            while not offers.awaited.isdisjoint(keys):
                offers.changed.wait(_WAIT_SECONDS)
            self._keys, self._known = keys, [offers.values.get(key) for key in keys]
            missing = [place for place, value in enumerate(self._known) if value is None]
            offers.awaited.update(keys[place] for place in missing)
        return missing

    def completed(self, sent: Sequence[Values]) -> list[Values]:
        """All values of the offer, of which the missing ones were sent."""
        rest, offers = iter(sent), self._offers
        values = [next(rest) if value is None else value for value in self._known]
        with offers.changed:
            if len(offers.values) + len(sent) > _REMEMBERED:
                offers.values.clear()
            offers.values.update(zip(self._keys, values, strict=True))
        self.end()
        return values

    def end(self) -> None:
        """Nobody waits for this worker's values any more."""
        with self._offers.changed:
            own = zip(self._keys, self._known, strict=True)
            self._offers.awaited.difference_update(key for key, value in own if value is None)
            self._offers.changed.notify_all()
        self._keys, self._known = [], []
