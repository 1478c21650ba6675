"""The requests that a process has under way: equal ones go out once, and the others wait.

A thread waits only while it has no request of its own under way, so that no two wait for each
other. One that fails or is interrupted ends its requests, and a waiting thread makes them instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from threading import Condition, Lock, get_ident
from weakref import WeakKeyDictionary

from blendfusion.models.protocol.model import Values

_SECONDS = 0.1
"""How long a thread waits before it looks again; Ctrl-C takes effect in between."""


class InFlight:
    """The requests under way, for one place where answers are stored."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._owners: dict[Hashable, dict[Values, int]] = {}
        self.ended = 0
        """How often requests have ended so far: until it changes, a look at the store is fresh."""

    def begin(self, question: Hashable, values: Sequence[Values], begun: list[Values]) -> None:
        """Begin to ask about the values of which no other thread does; they come into ``begun``
        first, so that an interruption loses none."""
        me = get_ident()
        with self._changed:
            owners = self._owners.setdefault(question, {})
            # A model's own function may ask the same again: it must not wait for itself.
            begun += [v for v in values if owners.get(v, me) == me]
            owners.update(dict.fromkeys(begun, me))

    def end(self, question: Hashable, values: Sequence[Values]) -> None:
        """End what was begun; the answers, if any, are stored by now."""
        with self._changed:
            owners = self._owners.get(question, {})
            for value in values:
                owners.pop(value, None)
            if not owners:
                self._owners.pop(question, None)
            self.ended += 1
            self._changed.notify_all()

    def wait(self, since: int) -> int:
        """Wait until some request has ended after ``ended`` was ``since``, or a while; ``ended``
        now."""
        with self._changed:
            if self.ended == since:
                self._changed.wait(_SECONDS)
            return self.ended


_lock = Lock()
_by_store: WeakKeyDictionary[object, InFlight] = WeakKeyDictionary()
_by_file: dict[str, InFlight] = {}


def in_flight(store: object) -> InFlight:
    """The requests under way whose answers go to ``store``; stores of one file share them."""
    path = getattr(store, "path", None)
    with _lock:
        if path is not None:
            return _by_file.setdefault(str(path), InFlight())
        try:
            return _by_store.setdefault(store, InFlight())
        except TypeError:  # a store of a user that cannot be held weakly shares nothing
            return InFlight()
