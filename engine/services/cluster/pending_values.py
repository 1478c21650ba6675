"""The values of a range that have no answer yet, in memory up to a size, the rest in a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import ENTRY_BYTES, AnswerSpill

_PAGE_ROWS = 16_384
"""Values that are read back at a time."""


def beginning(values: Values) -> Values:
    """The part that prompts about several values may share, besides the question: the first one."""
    return values[:1] if len(values) > 1 else ()


class PendingValues:
    """The values that wait to be given out, by their beginning, and those that somebody asks
    about. Values in the file wait until those in memory are given out. Used under the lock of
    ``spill``."""

    def __init__(self, spill: AnswerSpill) -> None:
        self._spill = spill
        self.values: dict[bytes, Values] = {}
        """The values in memory, by key."""
        self._groups: dict[Values, deque[bytes]] = {}
        self._at: dict[str, Values] = {}
        """The beginning that each worker has computed last."""
        self._waiting = 0
        """The number of values in ``_groups``."""
        self.bytes = 0
        """The memory of those."""
        self.rows = spill.hold(self)
        """The others that wait."""

    def __len__(self) -> int:
        """The number of values that wait."""
        return self._waiting + self.rows.count

    def add(self, key: bytes, values: Values) -> None:
        """Let a new value wait, or one that was given out."""
        self.values[key] = values
        self._groups.setdefault(beginning(values), deque()).append(key)
        self._waiting += 1
        self.bytes += _size(values)

    def forget(self, key: bytes) -> None:
        """Forget a value that was given out."""
        del self.values[key]

    def take(self, most: int, worker: str) -> list[bytes]:
        """At most ``most`` keys for a worker: first keys with the beginning of its last ones, then
        keys of groups that no other worker has, then keys of the longest group."""
        keys: list[bytes] = []
        while len(keys) < most and (self._groups or self.rows.count):
            if not self._groups:
                self._read_back()
            start = self._at.get(worker)
            if start is None or start not in self._groups:
                others = {*self._at.values()}
                start = next((start for start in self._groups if start not in others), None)
                if start is None:
                    start = max(self._groups, key=lambda start: len(self._groups[start]))
                self._at[worker] = start
            group = self._groups[start]
            while group and len(keys) < most:
                keys.append(group.popleft())
                self.bytes -= _size(self.values[keys[-1]])
            if not group:
                del self._groups[start]
        self._waiting -= len(keys)
        return keys

    def without_answer(self, keys: Sequence[bytes]) -> list[bool]:
        """Whether each of these has no answer yet."""
        in_file = self.rows.find(keys)
        return [key in self.values or key in in_file for key in keys]

    def spill(self) -> None:
        """Move the values that wait to the file."""
        keys = [key for group in self._groups.values() for key in group]
        waiting = iter(keys)
        for moved in self.rows.move((key, self.values[key]) for key in keys):
            for key in islice(waiting, moved):
                values = self.values.pop(key)
                group = self._groups[beginning(values)]
                group.popleft()
                if not group:
                    del self._groups[beginning(values)]
                self._waiting -= 1
                self.bytes -= _size(values)

    def _read_back(self) -> None:
        for key, values in self.rows.pop(_PAGE_ROWS):
            self.add(key, values)


def _size(values: Values) -> int:
    return ENTRY_BYTES + sum(len(value) for value in values if value)
