"""The answers of one run, in memory up to a size, the rest in an unnamed file."""

from __future__ import annotations

import marshal
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, islice
from typing import Any, Generic, Protocol, TypeVar

from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests
from blendfusion.models.stores.temporary_rows import PIECE, TemporaryRows
from blendfusion.types import Answer, Usage

MEGABYTE = 1_000_000
ENTRY_BYTES = 600
"""The memory of an answer and its values besides their texts."""

K = TypeVar("K", bound=Hashable)


class MemoryHolder(Protocol):
    """A holder of a share of the memory."""

    @property
    def bytes(self) -> int:
        """The memory that a file may take over."""
        ...

    def spill(self) -> None:
        """Move all of that to a file."""
        ...


class AnswerSpill:
    """The memory for the answers of a run, at least one megabyte: beyond ``most_mb``, the question
    that holds most moves its answers to a file in ``folder`` (None: the system's).

    The file is deleted as soon as it is open: nobody else can open it, and it disappears with the
    process. Safe to use from threads.
    """

    def __init__(self, most_mb: int, folder: str | None = None) -> None:
        self.most_mb, self.folder = most_mb, folder
        self.most_bytes = max(1, most_mb) * MEGABYTE
        self._file: TemporaryRows | None = None
        self._held: weakref.WeakSet[MemoryHolder] = weakref.WeakSet()
        self._holders = count()
        self.lock = threading.RLock()

    @property
    def spilled_bytes(self) -> int:
        """Bytes in the file."""
        with self.lock:
            return self._file.size if self._file else 0

    @property
    def file(self) -> TemporaryRows:
        """The file, which the first call makes."""
        self._file = self._file or TemporaryRows(self.folder)
        return self._file

    def answers(self) -> SpillableAnswers[Values]:
        """The answers to one more question, none so far."""
        return SpillableAnswers(self, digests, _size)

    def hold(self, held: MemoryHolder) -> SpilledRows:
        """Count the memory of ``held`` for as long as the object lives. Returns the place of its
        rows in the file."""
        with self.lock:
            self._held.add(held)
            return SpilledRows(self, next(self._holders))

    def keep_within(self) -> None:
        """Move answers to the file until the others have room. Raises BlendFusionError if they
        cannot be written; nothing is dropped then."""
        while sum(held.bytes for held in self._held) > self.most_bytes:
            max(self._held, key=lambda held: held.bytes).spill()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Name the folder and the remedy where the file cannot be written."""
        try:
            yield
        except (OSError, sqlite3.Error) as problem:
            raise BlendFusionError(
                "answers of a query cannot be written to a file in "
                f"{self.folder or tempfile.gettempdir()}: {problem}",
                hint="They are stored, and the next run does not ask for them. Name another folder with "
                "spill_folder, or keep more answers in memory: spill_above is the limit in megabytes.",
            ) from problem


class SpilledRows:
    """The values that one holder has moved to the file of ``spill``, by the digest of its key. Used
    under the lock of ``spill``."""

    def __init__(self, spill: AnswerSpill, holder: int) -> None:
        self._spill, self._holder = spill, holder
        self.count = 0
        """The number of rows."""
        self.moves = 0
        """How often rows were moved."""

    def move(self, rows: Iterable[tuple[bytes, Any]]) -> Iterator[int]:
        """Move rows of simple Python values; after each piece, their number. Raises
        BlendFusionError."""
        encoded = ((key, marshal.dumps(row)) for key, row in rows)
        while piece := [*islice(encoded, PIECE)]:
            with self._spill.trouble():
                self._spill.file.add(self._holder, piece)
            self.count += len(piece)
            self.moves += 1
            yield len(piece)

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Any]:
        """The rows with these keys."""
        if not self.count:
            return {}
        rows = self._spill.file.find(self._holder, keys)
        return {key: marshal.loads(data) for key, data in rows}

    def between(self, first: bytes, last: bytes) -> list[bytes]:
        """At most two keys from ``first`` to ``last``."""
        return self._spill.file.between(self._holder, first, last, 2) if self.count else []

    def pop(self, most: int) -> list[tuple[bytes, Any]]:
        """Take the ``most`` oldest rows back."""
        rows = self._spill.file.pop(self._holder, most)
        self.count -= len(rows)
        return [(key, marshal.loads(data)) for key, data in rows]


class SpillableAnswers(Generic[K]):
    """The answers to one question by values, or by another key. What they cost is not kept: it was
    counted when they arrived.

    ``digests_of``: the digest of each key; ``size_of``: the memory of an answer."""

    def __init__(
        self,
        spill: AnswerSpill,
        digests_of: Callable[[Iterable[K]], Iterable[bytes]],
        size_of: Callable[[K, Answer], int],
    ) -> None:
        self._spill, self._digests_of, self._size_of = spill, digests_of, size_of
        self.recent: dict[K, Answer] = {}
        """The answers that are not in the file."""
        self.bytes = 0
        """The memory of the recent answers."""
        self.rows = spill.hold(self)
        """The others."""

    def among(self, keys: Sequence[K]) -> dict[K, Answer]:
        """The answers to these, as far as there are any."""
        with self._spill.lock:
            recent = self.recent
            found = {v: recent[v] for v in keys if v in recent}
            if self.rows.count and len(found) < len(keys):
                rest = [v for v in dict.fromkeys(keys) if v not in found]
                by_digest = dict(zip(self._digests_of(rest), rest, strict=True))
                rows = self.rows.find([*by_digest])
                found.update((by_digest[key], _answer(*row)) for key, row in rows.items())
            return found

    def update(self, answers: Mapping[K, Answer]) -> None:
        """Keep these. Raises BlendFusionError if a file cannot be written; they are kept then,
        too."""
        with self._spill.lock:
            self.recent.update(answers)
            self.bytes += sum(map(self._size_of, answers, answers.values()))
            self._spill.keep_within()

    def spill(self) -> None:
        """Move all answers to the file."""
        keys, left = [*self.recent], iter([*self.recent])
        rows = (_row(self.recent[key]) for key in keys)
        for moved in self.rows.move(zip(self._digests_of(keys), rows, strict=True)):
            for key in islice(left, moved):
                self.bytes -= self._size_of(key, self.recent.pop(key))
        self.bytes = 0


def _size(values: Values, answer: Answer) -> int:
    return ENTRY_BYTES + sum(len(v) for v in values if v) + len(answer.text or "")


def _row(answer: Answer) -> tuple[Any, ...]:
    parts = answer.text, answer.finish, answer.logprob, answer.error, answer.too_long
    return (*parts, answer.model)


def _answer(
    text: str | None, finish: Any, logprob: Any, error: str | None, too_long: bool, model: str
) -> Answer:
    spent = ((model, Usage()),) if model else ()
    return Answer(text, finish, logprob, Usage(), error, too_long, spent)
