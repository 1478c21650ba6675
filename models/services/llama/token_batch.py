"""Batches of tokens for llama.cpp, and the arrays that it reads them from."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np


class Filling(NamedTuple):
    """The padding that makes matrix products sum up each token alike: a minimum number of tokens,
    and multiples of a number."""

    least: int = 1
    multiple: int = 1

    def missing(self, count: int) -> int:
        wanted = max(self.least, count)
        return wanted + -wanted % self.multiple - count


class Batch:
    """Tokens of one decode call. ``add`` returns the places of tokens in the call; ``want`` and
    ``share`` take these places."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.positions: list[int] = []
        self.sequences: list[list[int]] = []
        self.wanted: list[bool] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, tokens: Sequence[int], position: int, *sequences: int) -> range:
        """Tokens that follow one another in sequences, the first at ``position``; returns their
        places."""
        start, count = len(self.tokens), len(tokens)
        self.tokens += tokens
        self.positions += range(position, position + count)
        self.sequences += [[*sequences] for _ in tokens]
        self.wanted += [False] * count
        return range(start, start + count)

    def share(self, place: int, sequence: int) -> None:
        """The token at ``place`` also belongs to ``sequence``: computed once, seen by both."""
        self.sequences[place].append(sequence)

    def want(self, place: int) -> None:
        """Ask for the logits after the token at ``place``."""
        self.wanted[place] = True

    def fill_up(self, filling: Filling, sequence: int) -> int:
        """Add tokens of no meaning, and want logits that nobody reads, until there are enough of
        both; returns how many were added. ``outputs`` says where the others' logits are from then
        on."""
        added = self.add([0] * filling.missing(len(self)), 0, sequence)
        unwanted = (place for place in reversed(range(len(self))) if not self.wanted[place])
        for place in list(islice(unwanted, filling.missing(sum(self.wanted)))):
            self.want(place)
        return len(added)

    def outputs(self) -> dict[int, int]:
        """The row of the logits for each wanted place (rows come in batch order)."""
        places = [place for place, wanted in enumerate(self.wanted) if wanted]
        return {place: row for row, place in enumerate(places)}


class Buffers:
    """The arrays behind a ``llama_batch``, allocated once and refilled with NumPy."""

    def __init__(self, lib: Any, size: int, sequences: int) -> None:
        self._struct = lib.llama_batch()
        self._token = np.zeros(size, np.int32)
        self._pos = np.zeros(size, np.int32)
        self._count = np.zeros(size, np.int32)
        self._flags = np.zeros(size, np.int8)
        self._ids = np.zeros(size * sequences, np.int32)
        self._rows = np.zeros(size, np.uintp)
        for name, array in (
            ("token", self._token),
            ("pos", self._pos),
            ("n_seq_id", self._count),
            ("logits", self._flags),
            ("seq_id", self._rows),
        ):
            kind = dict(lib.llama_batch._fields_)[name]
            setattr(self._struct, name, ctypes.cast(array.ctypes.data, kind))

    def fill(self, batch: Batch) -> Any:
        n = len(batch)
        self._struct.n_tokens = n
        self._token[:n] = batch.tokens
        self._pos[:n] = batch.positions
        self._flags[:n] = batch.wanted
        counts = np.fromiter(map(len, batch.sequences), np.int32, n)
        self._count[:n] = counts
        flat = [sequence for ids in batch.sequences for sequence in ids]
        self._ids[: len(flat)] = flat
        offsets = np.cumsum(counts) - counts
        self._rows[:n] = self._ids.ctypes.data + offsets * self._ids.itemsize
        return self._struct
