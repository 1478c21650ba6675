"""Digests in temporary files, each with a number: sorted runs, of which equal ones are merged, so
that there are few however many digests there are."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TypeAlias

import numpy as np

Keys: TypeAlias = np.ndarray
"""Digests of 16 bytes as two columns of 64 bits, most significant first."""
NONE = np.uint64(2**64 - 1)
"""The number of a digest that is not there."""
_MERGED = 8
"""So many runs of one level become one of the next."""
_PIECE = 65_536
"""Digests that are read at a time, except where more begin with the same 64 bits."""
_WORD = 8


def keys_of(data: bytes) -> Keys:
    """Digests one behind the other as columns."""
    return np.frombuffer(data, ">u8").astype(np.uint64).reshape(-1, 2)


def bytes_of(keys: Keys) -> list[bytes]:
    """Columns as digests."""
    data = keys.astype(">u8").tobytes()
    return [data[start : start + 16] for start in range(0, len(data), 16)]


@dataclass(frozen=True, slots=True)
class Start:
    """The digests that begin in certain ways."""

    counts: np.ndarray
    """The number of digests that begin so; more than one may be the same twice."""
    keys: Keys
    """One of them."""


class KeyRuns:
    """``new_file`` makes a temporary file, which is deleted when it is closed; it may raise. Not
    safe to use from threads."""

    def __init__(self, new_file: Callable[[], IO[bytes]]) -> None:
        self._new_file = new_file
        self._runs: list[_Run] = []
        """The newest last."""

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(run.bytes for run in self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, keys: Keys, numbers: np.ndarray) -> None:
        """Keep numbers below ``NONE``; of two for one digest, the later one counts."""
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        new = _Run(self._new_file(), 0)
        new.write(np.column_stack((keys, numbers.astype(np.uint64)))[order])
        runs = [*self._runs, new.finish()]
        while len(runs) >= _MERGED and len({run.level for run in runs[-_MERGED:]}) == 1:
            runs[-_MERGED:] = [self._merge(runs[-_MERGED:])]
        self._runs = runs

    def find(self, keys: Keys) -> np.ndarray:
        """The number of each digest; ``NONE`` of one that is not there."""
        found = np.full(len(keys), NONE)
        left = np.argsort(keys[:, 0], kind="stable")
        for run in reversed(self._runs):
            numbers = run.find(keys[left])
            hit = numbers != NONE
            found[left[hit]] = numbers[hit]
            left = left[~hit]
        return found

    def starting(self, heads: np.ndarray, bits: int) -> Start:
        """The digests whose first ``bits`` bits, at most 64, are each of ``heads``: different ones,
        ascending."""
        shift = np.uint64(64 - bits)
        first = heads.astype(np.uint64) << shift
        last = first | (np.uint64(1) << shift) - np.uint64(1)
        start = Start(np.zeros(len(heads), np.int64), np.zeros((len(heads), 2), np.uint64))
        for run in self._runs:
            run.starting(first, last, start)
        return start

    def _merge(self, runs: Sequence[_Run]) -> _Run:
        merged = _Run(self._new_file(), runs[0].level + 1)
        for rows in _in_order(runs):
            merged.write(rows)
        return merged.finish()


class _Run:
    """Digests in ascending order with their numbers: rows of three words. A piece ends where the
    next row begins with other 64 bits."""

    def __init__(self, file: IO[bytes], level: int) -> None:
        self._file, self.level = file, level
        weakref.finalize(self, file.close)
        self._places: list[int] = []
        """The first row of each piece."""
        self._firsts: list[int] = []
        """The first word of each piece."""
        self._rest = np.zeros((0, 3), np.uint64)
        self._rows = 0
        self._fence = np.zeros(0, np.uint64)

    @property
    def bytes(self) -> int:
        return self._rows * 3 * _WORD

    @property
    def fence(self) -> np.ndarray:
        """The first word of each piece."""
        return self._fence

    def write(self, rows: np.ndarray) -> None:
        """Append rows, which follow those before."""
        self._rest = np.concatenate((self._rest, rows)) if len(self._rest) else rows
        while len(self._rest) > _PIECE:
            heads = self._rest[:, 0]
            end = int(np.searchsorted(heads, heads[_PIECE]))
            if not end:  # so many begin alike
                end = int(np.searchsorted(heads, heads[0], side="right"))
            if end == len(self._rest):
                return
            self._write(end)

    def finish(self) -> _Run:
        """The run after its last row."""
        if len(self._rest):
            self._write(len(self._rest))
        self._rest = self._rest[:0].copy()  # an empty slice would keep the rows
        self._places.append(self._rows)
        self._fence = np.array(self._firsts, np.uint64)
        return self

    def _write(self, count: int) -> None:
        self._places.append(self._rows)
        self._firsts.append(int(self._rest[0, 0]))
        # Columns: a look-up reads the first one, and the others where that is equal.
        data = memoryview(self._rest[:count].T.tobytes())
        while data:
            data = data[self._file.write(data) :]
        self._rest = self._rest[count:]
        self._rows += count

    def piece(self, number: int) -> np.ndarray:
        """The rows of a piece."""
        return np.column_stack([self._column(number, place) for place in range(3)])

    def _column(self, piece: int, place: int) -> np.ndarray:
        start, end = self._places[piece], self._places[piece + 1]
        self._file.seek((3 * start + place * (end - start)) * _WORD)
        return np.frombuffer(self._file.read((end - start) * _WORD), np.uint64)

    def find(self, keys: Keys) -> np.ndarray:
        """As ``KeyRuns.find``, for digests whose first words ascend."""
        found = np.full(len(keys), NONE)
        edges = np.append(np.searchsorted(keys[:, 0], self._fence), len(keys))
        for piece in np.flatnonzero(edges[1:] > edges[:-1]).tolist():
            some = slice(edges[piece], edges[piece + 1])
            found[some] = self._find_in(piece, keys[some])
        return found

    def _find_in(self, piece: int, keys: Keys) -> np.ndarray:
        heads = self._column(piece, 0)
        places = np.searchsorted(heads, keys[:, 0])
        numbers = np.full(len(keys), NONE)
        left = np.flatnonzero(places < len(heads))
        left = left[heads[places[left]] == keys[left, 0]]
        if len(left):
            tails, values = self._column(piece, 1), self._column(piece, 2)
            while len(left):  # more than once only where first words are equal
                equal = tails[places[left]] == keys[left, 1]
                numbers[left[equal]] = values[places[left[equal]]]
                left = left[~equal]
                places[left] += 1
                left = left[places[left] < len(heads)]
                left = left[heads[places[left]] == keys[left, 0]]
        return numbers

    def starting(self, first: np.ndarray, last: np.ndarray, start: Start) -> None:
        """Count the digests whose first words are from ``first`` to ``last``, ranges that
        ascend."""
        begins = np.searchsorted(last, self._fence)
        ends = np.append(np.searchsorted(first, self._fence[1:]), len(first))
        for piece in np.flatnonzero(ends > begins).tolist():
            some = slice(begins[piece], ends[piece])
            heads = self._column(piece, 0)
            low = np.searchsorted(heads, first[some])
            counts = np.searchsorted(heads, last[some], side="right") - low
            there = np.flatnonzero(counts)
            if not len(there):
                continue
            places = low[there]
            keys = np.column_stack((heads[places], self._column(piece, 1)[places]))
            there, counts = there + begins[piece], counts[there]
            same = (start.counts[there] == 1) & (start.keys[there] == keys).all(axis=1)
            start.counts[there] += np.where(same & (counts == 1), 0, counts)
            start.keys[there] = keys


def _in_order(runs: Sequence[_Run]) -> Iterator[np.ndarray]:
    """The rows of all runs, the newest one last, in order; of equal digests the newest."""
    waiting = [np.zeros((0, 3), np.uint64) for _ in runs]
    following = [0] * len(runs)
    while True:
        ends = [
            int(run.fence[at]) if at < len(run.fence) else None
            for run, at in zip(runs, following, strict=True)
        ]
        known = [end for end in ends if end is not None]
        # Rows before ``until`` are complete: the next pieces begin there or later.
        until = min(known, default=None)
        ready = []
        for number, rows in enumerate(waiting):
            count = len(rows) if until is None else int(np.searchsorted(rows[:, 0], until))
            ready.append(rows[:count])
            waiting[number] = rows[count:]
        rows = np.concatenate(ready)
        if len(rows):
            ages = np.repeat(np.arange(len(ready)), [len(some) for some in ready])
            rows = rows[np.lexsort((ages, rows[:, 1], rows[:, 0]))]
            newest = np.append((rows[1:, :2] != rows[:-1, :2]).any(axis=1), True)
            yield rows[newest]
        if until is None:
            return
        for number, end in enumerate(ends):
            if end == until:
                waiting[number] = np.concatenate(
                    (waiting[number], runs[number].piece(following[number]))
                )
                following[number] += 1
