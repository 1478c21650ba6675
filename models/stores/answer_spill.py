"""The answers of one run, in memory up to a size, the rest in an unnamed file."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import digests
from blendfusion.models.stores.key_runs import NONE, KeyRuns, keys_of
from blendfusion.types import Answer, Usage

MEGABYTE = 1_000_000
ENTRY_BYTES = 600
"""The memory of an answer and its values besides their texts."""
PAGE_ROWS = 16_384
_PAGE_BITS = np.uint64(14)
_SCHEMA = pa.schema(
    [
        ("text", pa.large_binary()),
        ("finish", pa.string()),
        ("logprob", pa.float64()),
        ("error", pa.large_binary()),
        ("too_long", pa.bool_()),
        ("model", pa.string()),
    ]
)


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

    Files are deleted as soon as they are open: nobody else can open them, and they disappear with
    the process. Safe to use from threads.
    """

    def __init__(self, most_mb: int, folder: str | None = None) -> None:
        self.most_mb, self.folder = most_mb, folder
        self.most_bytes = max(1, most_mb) * MEGABYTE
        self._file: IO[bytes] | None = None
        self._held: weakref.WeakSet[MemoryHolder] = weakref.WeakSet()
        self.lock = threading.RLock()
        self._end = 0
        """The size of the file of answers."""

    @property
    def spilled_bytes(self) -> int:
        """Bytes in files."""
        with self.lock:
            runs = sum(held.runs.bytes for held in self._held if isinstance(held, SpillableAnswers))
            return self._end + runs

    def answers(self) -> SpillableAnswers[Values]:
        """The answers to one more question, none so far."""
        return SpillableAnswers(self, lambda values: b"".join(digests(values)), _size)

    def hold(self, held: MemoryHolder) -> None:
        """Let ``held`` have a share of the memory for as long as it lives."""
        with self.lock:
            self._held.add(held)

    def keep_within(self) -> None:
        """Move answers to files until the others have room. Raises BlendFusionError if they cannot
        be written; nothing is dropped then."""
        while sum(held.bytes for held in self._held) > self.most_bytes:
            max(self._held, key=lambda held: held.bytes).spill()

    def new_file(self) -> IO[bytes]:
        """A file without a name, which is closed with whoever holds it. Raises BlendFusionError."""
        with self.trouble():
            return tempfile.TemporaryFile(prefix="blendfusion-", dir=self.folder, buffering=0)

    def append(self, data: memoryview) -> int:
        """Write ``data`` to the file of answers; its place there. Raises BlendFusionError."""
        place = self._end
        if self._file is None:
            self._file = self.new_file()
            weakref.finalize(self, self._file.close)
        with self.trouble():
            self._file.seek(place)
            while data:
                data = data[self._file.write(data) :]
        self._end = self._file.tell()
        return place

    def read(self, place: int, size: int) -> bytes:
        """``size`` bytes of the file of answers."""
        assert self._file is not None
        self._file.seek(place)
        return self._file.read(size)

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Name the folder and the remedy where a file cannot be written."""
        try:
            yield
        except OSError as problem:
            raise BlendFusionError(
                "answers of a query cannot be written to a file in "
                f"{self.folder or tempfile.gettempdir()}: {problem}",
                hint="They are stored, and the next run does not ask for them. Name another folder with "
                "spill_folder, or keep more answers in memory: spill_above is the limit in megabytes.",
            ) from problem


class SpillableAnswers(Generic[K]):
    """The answers to one question by values, or by another key. What they cost is not kept: it was
    counted when they arrived.

    ``digests_of``: the digests of keys, one behind the other; ``size_of``: the memory of one."""

    def __init__(
        self,
        spill: AnswerSpill,
        digests_of: Callable[[Iterable[K]], bytes],
        size_of: Callable[[K, Answer], int],
    ) -> None:
        self._spill, self._digests_of, self._size_of = spill, digests_of, size_of
        self.recent: dict[K, Answer] = {}
        """The answers that are not in the file."""
        self.runs = KeyRuns(spill.new_file)
        """The others: the number of a page, and the place there."""
        self._pages: list[tuple[int, int]] = []
        """The place and the size of each page in the file."""
        self.bytes = 0
        """The memory of the recent answers."""
        spill.hold(self)

    def among(self, keys: Sequence[K]) -> dict[K, Answer]:
        """The answers to these, as far as there are any."""
        with self._spill.lock:
            recent = self.recent
            found = {v: recent[v] for v in keys if v in recent}
            if self._pages and len(found) < len(keys):
                rest = [v for v in dict.fromkeys(keys) if v not in found]
                numbers = self.runs.find(keys_of(self._digests_of(rest)))
                found.update((rest[at], answer) for at, answer in self._read(numbers))
            return found

    def update(self, answers: Mapping[K, Answer]) -> None:
        """Keep these. Raises BlendFusionError if a file cannot be written; they are kept then,
        too."""
        with self._spill.lock:
            self.recent.update(answers)
            self.bytes += sum(map(self._size_of, answers, answers.values()))
            self._spill.keep_within()

    def spill(self) -> None:
        """Move all answers to files."""
        keys, answers = keys_of(self._digests_of(self.recent)), list(self.recent.values())
        order = np.argsort(keys[:, 0], kind="stable")  # a page has answers that lie together
        pages = list(self._pages)
        for start in range(0, len(answers), PAGE_ROWS):
            data = _to_ipc([answers[place] for place in order[start : start + PAGE_ROWS]])
            pages.append((self._spill.append(memoryview(data)), data.size))
        first = np.uint64(len(self._pages)) << _PAGE_BITS
        with self._spill.trouble():
            self.runs.add(keys[order], first + np.arange(len(answers), dtype=np.uint64))
        self._pages = pages
        self.recent = {}
        self.bytes = 0

    def _read(self, numbers: np.ndarray) -> Iterator[tuple[int, Answer]]:
        """The answers with these numbers, by place."""
        there = np.flatnonzero(numbers != NONE)
        there = there[np.argsort(numbers[there], kind="stable")]
        pages = (numbers[there] >> _PAGE_BITS).astype(np.int64)
        rows = (numbers[there] & np.uint64(PAGE_ROWS - 1)).astype(np.int64)
        starts = np.flatnonzero(np.diff(pages, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts, len(there)][1:], strict=True):
            data = self._spill.read(*self._pages[pages[start]])
            some = _read(data, pa.array(rows[start:end]))
            yield from zip(there[start:end].tolist(), some, strict=True)


def _size(values: Values, answer: Answer) -> int:
    return ENTRY_BYTES + sum(len(v) for v in values if v) + len(answer.text or "")


def _to_ipc(answers: Sequence[Answer]) -> pa.Buffer:
    columns = [
        pa.array([_bytes(answer.text) for answer in answers], pa.large_binary()),
        pa.array([answer.finish for answer in answers]),
        pa.array([answer.logprob for answer in answers], pa.float64()),
        pa.array([_bytes(answer.error) for answer in answers], pa.large_binary()),
        pa.array([answer.too_long for answer in answers]),
        pa.array([answer.model for answer in answers]),
    ]
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, _SCHEMA, options=options) as stream:
        stream.write_batch(pa.record_batch(columns, schema=_SCHEMA))
    return sink.getvalue()


def _read(data: bytes, rows: pa.Array) -> Iterator[Answer]:
    columns = pa.ipc.open_stream(data).read_next_batch().take(rows).columns
    parts = zip(*(column.to_pylist() for column in columns), strict=True)
    for text, finish, logprob, error, too_long, model in parts:
        spent = ((model, Usage()),) if model else ()
        yield Answer(_text(text), finish, logprob, Usage(), _text(error), too_long, spent)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
