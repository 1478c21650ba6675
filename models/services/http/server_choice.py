"""The choice of a server for a value, among several of one model."""

from __future__ import annotations

import statistics
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager

from blendfusion.errors import ModelError
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.http.server import Server
from blendfusion.types import Task

_WARM = 0.25
"""A server that has computed the prefix of a prompt is preferred until its load exceeds the least
one by this share of its concurrency."""
_BEGINNINGS = 4096
"""So many beginnings of prompts are remembered, the latest used."""
_ASIDE_SECONDS, _ASIDE_MOST = 1.0, 60.0
"""The first pause of a server that fails, which doubles, and its limit."""
_OUTPACED = 3
"""The number of consecutive values that other servers answered first, after which a server
pauses."""
_LATE, _LATE_SECONDS = 4.0, 1.0
"""A request is late after four times the usual time, but at the earliest after one second."""


class Place:
    """The state of one server at present."""

    def __init__(self, server: Server, number: int) -> None:
        self.server, self.number = server, number
        self.outstanding = 0
        self.back_at = float("-inf")
        """When it may be asked again, after a failure; in seconds of the clock."""
        self.problem: ModelError | None = None
        self.failures = 0
        self.outpaced = 0

    def room(self, task: Task) -> int:
        """The number of further requests that it takes now."""
        limit = self.server.endpoint.in_flight.limit if self.server.knows_features(task) else 1
        return limit - self.outstanding


class Balance:
    """Least outstanding requests, in proportion to what each server takes at once, with a
    preference for one that has computed the beginning of the prompt. Safe to use from several
    threads.

    A server that fails pauses for a second, then two, at most a minute; then it gets one request
    before it gets many. A server also pauses after three consecutive requests that others answered
    first.

    ``servers``: each by its URL. ``clock``: seconds that never go back.
    """

    def __init__(
        self,
        servers: Sequence[tuple[str, Server]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._known = {url: Place(server, n) for n, (url, server) in enumerate(servers)}
        self.places = [*self._known.values()]
        self._clock = clock
        self._warm: OrderedDict[Hashable, set[int]] = OrderedDict()
        self._seconds: deque[float] = deque(maxlen=128)
        self._lock = threading.Lock()

    def keep(self, urls: Sequence[str], server_at: Callable[[str], Server]) -> None:
        """Use these servers from now on. The others finish their requests; one that comes back
        keeps what is known of it."""
        with self._lock:
            for url in urls:
                if url not in self._known:
                    self._known[url] = Place(server_at(url), len(self._known))
            self.places = [self._known[url] for url in urls]

    def begin(self) -> None:
        """Begin a run: no server is aside."""
        with self._lock:
            for place in self.places:
                place.back_at, place.problem = float("-inf"), None
                place.failures = place.outpaced = 0

    def take(self, task: Task, row: Values, *, without: Sequence[Place] = ()) -> Place | None:
        """Reserve a request of a server for a value; None if no server has room."""
        with self._lock:
            now = self._clock()
            able = [
                place
                for place in self.places
                if place not in without
                and place.back_at <= now
                and place.room(task) > 0
                and not (place.failures and place.outstanding)
            ]
            if not able:
                return None
            beginnings = list(_beginnings(task, row))
            chosen = min(
                able, key=lambda place: (self._load(place, task, beginnings), place.number)
            )
            for beginning in beginnings:
                self._warm.setdefault(beginning, set()).add(chosen.number)
                self._warm.move_to_end(beginning)
            while len(self._warm) > _BEGINNINGS:
                self._warm.popitem(last=False)
            chosen.outstanding += 1
            return chosen

    def _load(self, place: Place, task: Task, beginnings: Sequence[Hashable]) -> float:
        warm = sum(place.number in self._warm.get(beginning, ()) for beginning in beginnings)
        return place.outstanding / (place.outstanding + place.room(task)) - _WARM * warm

    @contextmanager
    def occupy(self, place: Place, freed: Callable[[], None]) -> Iterator[None]:
        """Give a place back that was taken, when the block ends, and call ``freed``."""
        try:
            yield
        finally:
            with self._lock:
                place.outstanding -= 1
            freed()

    def note_answer(self, place: Place, seconds: float) -> None:
        """Record that a server answered a value after ``seconds``."""
        with self._lock:
            place.failures = place.outpaced = 0
            place.problem = None
            self._seconds.append(seconds)

    def note_failure(self, place: Place, problem: ModelError) -> bool:
        """A server failed. True if that is news: it was in use."""
        with self._lock:
            new = place.back_at <= self._clock()
            if new:
                pause = min(_ASIDE_MOST, _ASIDE_SECONDS * 2.0 ** min(place.failures, 10))
                place.back_at = self._clock() + pause
                place.failures += 1
            place.problem = problem
            return new

    def note_slow(self, place: Place, problem: ModelError) -> bool:
        """Note that another server answered first. Returns whether the server pauses for it."""
        with self._lock:
            place.outpaced += 1
            if place.outpaced < _OUTPACED:
                return False
        return self.note_failure(place, problem)

    def late_after(self) -> float | None:
        """Seconds after which a request is late; None while nothing is known."""
        with self._lock:
            if len(self._seconds) < 2:
                return None
            return max(_LATE_SECONDS, _LATE * statistics.median(self._seconds))

    def all_aside(self) -> float | None:
        """Seconds until a server may be asked again, if all of them are aside; else None."""
        with self._lock:
            left = min(place.back_at for place in self.places) - self._clock()
            return left if left > 0 else None


def _beginnings(task: Task, row: Values) -> Iterator[Hashable]:
    """The beginnings that prompts may share: the question, and the first of several values."""
    yield hash(task)
    if len(row) > 1 and not task.aggregate:
        yield hash((task, row[0]))
