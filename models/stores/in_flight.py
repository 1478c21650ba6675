"""The requests that a process has under way: equal ones go out once, and the others wait.

They are equal if the model's fingerprint, the task and the values are: then so are their answers,
wherever they are stored. Who asked first hands its answers over to those who wait. A thread waits
only while it has no request of its own under way, so that no two wait for each other. One that
fails or is interrupted hands over what was answered, and ends its requests; a waiting thread makes
them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Condition, get_ident
from time import perf_counter

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer

_SECONDS = 0.1
"""How long a thread waits before it looks again; Ctrl-C takes effect in between."""


class InFlight:
    """The requests under way in one process."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._owners: dict[Hashable, dict[Values, int]] = {}
        self._waiting: dict[Hashable, dict[Values, list[dict[Values, Answer]]]] = {}
        """Where those who wait for a value want its answer."""
        self.ended = 0
        """How often requests have ended so far: until it changes, a look at the store is fresh."""

    def settle(
        self,
        question: Hashable,
        values: list[Values],
        look: Callable[[list[Values], dict[Values, Answer]], list[Values]],
        ask: Callable[[list[Values], dict[Values, Answer]], None],
        since: int,
        waited: Callable[[int, float], None] = lambda number, seconds: None,
    ) -> None:
        """Have values answered, each by one thread.

        ``look`` looks values up, also among the answers of threads that were waited for, and
        returns the others. ``ask`` asks about values; the answers that it notes go to the threads
        that wait for them. ``since``: what ``ended`` was before the last look. ``waited`` receives
        two numbers: values that needed no request, and the seconds of the wait."""
        wanted: dict[Values, Answer] = {}
        while values:
            mine: list[Values] = []
            given: dict[Values, Answer] = {}
            try:
                self.begin(question, values, mine, wanted)
                # If some have ended, another thread may have stored answers meanwhile.
                new = mine if self.ended == since else look(mine, {})
                if new:
                    ask(new, given)
            finally:
                self.end(question, mine, given)
            begun = set(mine)
            values = [v for v in values if v not in begun]
            if values:
                start = perf_counter()
                since = self.ended if mine else self.wait(since)
                left = look(values, wanted)
                waited(len(values) - len(left), perf_counter() - start)
                values = left

    def begin(
        self,
        question: Hashable,
        values: Sequence[Values],
        begun: list[Values],
        wanted: dict[Values, Answer],
    ) -> None:
        """Begin to ask about the values of which no other thread does; they come into ``begun``
        first, so that an interruption loses none. The answers to the others come into ``wanted``
        when those threads end; what it has already is not asked again."""
        me = get_ident()
        with self._changed:
            owners = self._owners.setdefault(question, {})
            # A model's own function may ask the same again: it must not wait for itself.
            begun += [v for v in values if owners.get(v, me) == me and v not in wanted]
            if len(begun) < len(values):
                waiting = self._waiting.setdefault(question, {})
                for value in values:
                    if owners.get(value, me) != me:
                        places = waiting.setdefault(value, [])
                        if not any(place is wanted for place in places):
                            places.append(wanted)
            owners.update(dict.fromkeys(begun, me))

    def end(
        self, question: Hashable, values: Sequence[Values], answers: Mapping[Values, Answer]
    ) -> None:
        """End the flights of these values, with the answers so far."""
        with self._changed:
            owners, waiting = self._owners.get(question, {}), self._waiting.get(question, {})
            for value in values:
                owners.pop(value, None)
                for wanted in waiting.pop(value, ()):
                    if value in answers:
                        wanted[value] = answers[value]
            if not owners:
                self._owners.pop(question, None)
                self._waiting.pop(question, None)
            self.ended += 1
            self._changed.notify_all()

    def wait(self, since: int) -> int:
        """Wait until some request has ended after ``ended`` was ``since``, or a while; ``ended``
        now."""
        with self._changed:
            if self.ended == since:
                self._changed.wait(_SECONDS)
            return self.ended


UNDER_WAY = InFlight()
"""The requests of this process. It holds no answer longer than somebody waits for it."""
