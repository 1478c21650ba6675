"""The values of a range that have no answer yet, in memory up to a size, the rest in files."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import ENTRY_BYTES, PAGE_ROWS, AnswerSpill
from blendfusion.models.stores.key import VALUES_BYTES
from blendfusion.models.stores.key_runs import NONE, KeyRuns, keys_of
from blendfusion.services.cluster.messages import decode_message, encode_message
from blendfusion.services.cluster.range_messages import TakeReply


def beginning(values: Values) -> Values:
    """The part that prompts about several values may share, besides the question: the first one."""
    return values[:1] if len(values) > 1 else ()


class PendingValues:
    """The values that wait to be given out, by their beginning, and those that somebody asks
    about. Values in files wait until those in memory are given out. Used under the lock of
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
        self._pages: deque[tuple[int, int, int]] = deque()
        """The place and size of each page in the file, and the number of its values."""
        self._read = 0
        """The number of pages that were read back."""
        self.runs = KeyRuns(spill.new_file)
        """The keys of values that are or were in a file, with the number of the page."""
        spill.hold(self)

    def __len__(self) -> int:
        """The number of values that wait."""
        return self._waiting + sum(count for *_, count in self._pages)

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
        while len(keys) < most and (self._groups or self._pages):
            if not self._groups:
                self._read_page()
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

    def waiting(self, keys: Sequence[bytes]) -> np.ndarray:
        """Whether each of these has no answer yet."""
        in_memory = np.array([key in self.values for key in keys], bool)
        if not self._pages:
            return in_memory
        numbers = self._numbers(keys)
        in_files: np.ndarray = (numbers != NONE) & (numbers >= np.uint64(self._read))
        without: np.ndarray = in_memory | in_files
        return without

    def spill(self) -> None:
        """Move the values that wait to files."""
        keys = [key for group in self._groups.values() for key in group]
        values = [self.values[key] for key in keys]
        pages = []
        for start in range(0, len(keys), PAGE_ROWS):
            some = values[start : start + PAGE_ROWS]
            data = b"".join(keys[start : start + PAGE_ROWS]) + encode_message(TakeReply(some))
            pages.append((self._spill.append(memoryview(data)), len(data), len(some)))
        first = self._read + len(self._pages)
        numbers = first + np.arange(len(keys), dtype=np.uint64) // np.uint64(PAGE_ROWS)
        with self._spill.trouble():
            self.runs.add(keys_of(b"".join(keys)), numbers)
        self._pages += pages
        for key in keys:
            del self.values[key]
        self._groups, self._waiting, self.bytes = {}, 0, 0

    def _read_page(self) -> None:
        place, size, count = self._pages.popleft()
        self._read += 1
        data = self._spill.read(place, size)
        size = count * VALUES_BYTES
        keys = (data[at : at + VALUES_BYTES] for at in range(0, size, VALUES_BYTES))
        for key, values in zip(keys, decode_message(data[size:]).values, strict=True):
            self.add(key, values)

    def _numbers(self, keys: Sequence[bytes]) -> np.ndarray:
        return self.runs.find(keys_of(b"".join(keys)))


def _size(values: Values) -> int:
    return ENTRY_BYTES + sum(len(value) for value in values if value)
