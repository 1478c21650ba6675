"""An embedder that remembers recent vectors, finds stored ones, and computes the rest in
batches."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias, cast

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models.embedders.embedder import (
    Embedder,
    MeteredEmbedder,
    SpendingLimits,
    Vectors,
)
from blendfusion.models.embedders.load import load_embedder
from blendfusion.models.protocol.allowance import OutOfCallsError, allowing
from blendfusion.models.vectors.vector import vectors_from
from blendfusion.options import Options
from blendfusion.types import Usage

MOST_BYTES = 128 * 1024 * 1024
"""Maximum size of remembered vectors: 128,000 of wordllama's."""

Stored: TypeAlias = "Callable[[str, Sequence[bytes]], dict[bytes, Vectors]]"
"""Looks up stored vectors, from the embedder's fingerprint and the keys of texts."""


def nothing_stored(fingerprint: str, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
    return {}


@dataclass(slots=True)
class VectorCounts:
    """Sources of the vectors of distinct texts."""

    embedded: int = 0
    stored: int = 0
    """Vectors from an index."""
    remembered: int = 0
    """Vectors from memory."""
    usage: Usage = field(default=Usage(), repr=False)
    """Usage of a server for the embedded texts."""

    def __add__(self, other: VectorCounts) -> VectorCounts:
        return VectorCounts(
            self.embedded + other.embedded,
            self.stored + other.stored,
            self.remembered + other.remembered,
            self.usage + other.usage,
        )

    def __str__(self) -> str:
        """
        >>> print(VectorCounts(embedded=1, stored=2_000))
        1 embedded, 2,000 from an index
        """
        sources = [f"{self.embedded:,} embedded"]
        if self.usage.calls:
            sources[0] += f" ({self.usage.calls:,} requests, {self.usage.prompt_tokens:,} tokens)"
        other = ((self.stored, "from an index"), (self.remembered, "remembered"))
        return ", ".join([*sources, *(f"{n:,} {how}" for n, how in other if n)])


class LazyEmbedder:
    """Returns the embedder of ``spec`` when called, always the same object. Calls raise
    ModelNotFound."""

    def __init__(self, spec: str | Embedder | None, options: Options) -> None:
        self.stored: Stored = nothing_stored
        """Looks up stored vectors; set before the first call."""
        self.purse: SpendingLimits | None = None
        """Pays for embeddings outside of a run; set before the first call."""
        self._spec = spec
        self._options = options
        self._made: CachedEmbedder | None = None
        self._lock = threading.Lock()

    def __call__(self) -> CachedEmbedder:
        with self._lock:
            if self._made is None:
                embedder = load_embedder(self._spec, self._options)
                self._made = CachedEmbedder(embedder, stored=self.stored, purse=self.purse)
            return self._made

    def known_vectors(self) -> KnownVectors:
        """Remembered and stored vectors only; loads nothing."""
        return KnownVectors(self._made)

    def close(self) -> None:
        """Free the loaded embedder; the next call loads it again."""
        with self._lock:
            if self._made is not None:
                self._made.close()


class UnknownVectorError(Exception):
    """A text is neither remembered nor stored."""


class KnownVectors:
    """The remembered and stored vectors of an embedder; ``embed`` raises UnknownVectorError for
    other texts."""

    name = "remembered"
    fingerprint = ""
    batch_size = 1

    def __init__(self, embedder: CachedEmbedder | None) -> None:
        self._embedder = embedder

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        found = {} if self._embedder is None else self._embedder.find_known(list(map(_key, texts)))
        try:
            return np.stack([found[_key(text)] for text in texts])
        except KeyError:
            raise UnknownVectorError from None

    def close(self) -> None:
        """Nothing to free."""


class CachedEmbedder:
    """Asks ``embedder`` for each distinct text once, while its vector is remembered. Vectors in
    ``stored`` are read again each time.

    Vectors are kept in memory only: an index holds those of its rows, and a local embedder is about
    as fast as a file. ``embedded`` counts the embedded texts. Safe to use from threads.
    """

    def __init__(
        self,
        embedder: Embedder,
        most_bytes: int = MOST_BYTES,
        stored: Stored = nothing_stored,
        purse: SpendingLimits | None = None,
    ) -> None:
        self.embedder = embedder
        self._metered = cast("MeteredEmbedder", embedder) if hasattr(embedder, "metered") else None
        self._purse = purse
        self._stored = stored
        self.embedded = 0
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[bytes, Vectors] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint

    @property
    def batch_size(self) -> int:
        return self.embedder.batch_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Like ``Embedder.embed``; without texts, an array without rows and columns."""
        return self.embed_and_count(texts, VectorCounts())

    def embed_and_count(
        self, texts: Sequence[str], counts: VectorCounts, purse: SpendingLimits | None = None
    ) -> Vectors:
        """Like ``embed``, adding to ``counts`` and charging ``purse``. Raises BudgetExceeded if it
        is empty, where earlier vectors stay remembered, and ModelFailed for vectors of several
        lengths."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = list(map(_key, texts))
        found = self.find_known(keys, counts)
        waiting = list(
            {k: text for k, text in zip(keys, texts, strict=True) if k not in found}.items()
        )
        purse = purse or self._purse
        while waiting:
            size = self._admit(len(waiting), purse)
            batch, waiting = waiting[:size], waiting[size:]
            try:
                given = self._vectors([text for _, text in batch], counts, purse)
            except OutOfCallsError:
                assert purse is not None
                raise purse.out_of_texts(size + len(waiting)) from None
            vectors = vectors_from(self.name, given, size)
            counts.embedded += size
            new = dict(zip((key for key, _ in batch), vectors, strict=True))
            found.update(new)
            self._remember(new)
        widths = sorted({len(vector) for vector in found.values()})
        if len(widths) > 1:
            raise ModelFailed(
                f"the embedder '{self.name}' gives vectors of {widths[0]} numbers, and of "
                f"{widths[-1]}: another model has that name by now",
                hint="Begin a new session, and delete the folders of its indexes to build them again.",
            )
        return np.stack([found[key] for key in keys])

    def _admit(self, pending: int, purse: SpendingLimits | None) -> int:
        if purse is None or self._metered is None:
            return min(pending, self.batch_size)
        return purse.admit_texts(self._metered, pending)

    def _vectors(
        self, texts: list[str], counts: VectorCounts, purse: SpendingLimits | None
    ) -> Vectors:
        if self._metered is None:
            return self.embedder.embed(texts)
        spent: list[Usage] = []
        start = perf_counter()
        allowance = nullcontext() if purse is None else allowing(purse.take_request)
        with allowance as requests:
            try:
                return self._metered.metered(texts, spent.append)
            finally:  # a failed request was sent nevertheless
                usage = replace(Usage.total(spent), seconds=perf_counter() - start)
                counts.usage += usage
                if purse is not None and requests is not None:
                    purse.settle_texts(self._metered, len(texts), usage, requests.requests)

    def counting(self, counts: VectorCounts, purse: SpendingLimits) -> Counting:
        """This embedder for one run, which adds to ``counts`` and charges ``purse``."""
        return Counting(self, counts, purse)

    def close(self) -> None:
        with self._lock:
            self._known.clear()
            self._bytes = 0
        self.embedder.close()

    def find_known(
        self, keys: Sequence[bytes], counts: VectorCounts | None = None
    ) -> dict[bytes, Vectors]:
        """The remembered and stored vectors among those of these keys."""
        found = self.look_up(keys)
        remembered = len(found)
        missing = [key for key in dict.fromkeys(keys) if key not in found]
        if missing:
            found |= self._stored(self.fingerprint, missing)
        if counts is not None:
            counts.remembered += remembered
            counts.stored += len(found) - remembered
        return found

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The remembered vectors among those of these keys."""
        with self._lock:
            found = {key: self._known[key] for key in keys if key in self._known}
            for key in found:
                self._known.move_to_end(key)
            return found

    def _remember(self, new: dict[bytes, Vectors]) -> None:
        with self._lock:
            self.embedded += len(new)
            for key, vector in new.items():
                if key not in self._known:
                    # A copy, because a row of a batch would keep the whole batch alive.
                    self._known[key] = vector.copy()
                    self._bytes += vector.nbytes
            while self._bytes > self._most_bytes:
                self._bytes -= self._known.popitem(last=False)[1].nbytes


class Counting:
    """An embedder that counts its vectors by source and charges one run."""

    def __init__(
        self, embedder: CachedEmbedder, counts: VectorCounts, purse: SpendingLimits
    ) -> None:
        self._embedder = embedder
        self._counts = counts
        self._purse = purse

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def batch_size(self) -> int:
        return self._embedder.batch_size

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.embed_and_count(texts, self._counts, self._purse)

    def close(self) -> None:
        self._embedder.close()


def _key(text: str) -> bytes:
    """The hash of a text, equal to that of an index (engine/services/search/hashes.py)."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
