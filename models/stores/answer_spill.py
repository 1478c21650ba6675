"""The answers of one run, in memory up to a size, the rest in an unnamed file."""

from __future__ import annotations

import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import VALUES_BYTES, digests
from blendfusion.types import Answer, Usage

MEGABYTE = 1_000_000
ENTRY_BYTES = 600
"""The memory of an answer and its values besides their texts."""
_PAGE_ROWS = 16_384
_KEY = pa.binary(VALUES_BYTES)
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


class AnswerSpill:
    """The memory for the answers of a run, at least one megabyte: beyond ``most_mb``, the question
    that holds most moves its answers to a file in ``folder`` (None: the system's).

    The file is deleted as soon as it is open: nobody else can open it, and it disappears with the
    process. Safe to use from threads.
    """

    def __init__(self, most_mb: int, folder: str | None = None) -> None:
        self.most_bytes = max(1, most_mb) * MEGABYTE
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._held: list[SpillableAnswers] = []
        self.lock = threading.RLock()
        self.spilled = 0
        """Bytes in the file."""

    def answers(self) -> SpillableAnswers:
        """The answers to one more question, none so far."""
        with self.lock:
            self._held.append(SpillableAnswers(self))
            return self._held[-1]

    def keep_within(self) -> None:
        """Move answers to the file until the others have room. Raises BlendFusionError if it cannot
        be written; nothing is dropped then."""
        while sum(held.bytes for held in self._held) > self.most_bytes:
            max(self._held, key=lambda held: held.bytes).spill()

    def append(self, data: memoryview) -> int:
        """Write ``data`` to the file; its place there. Raises BlendFusionError."""
        place = self.spilled
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the spill
                    prefix="blendfusion-", dir=self._folder, buffering=0
                )
                weakref.finalize(self, self._file.close)
            self._file.seek(place)
            while data:
                data = data[self._file.write(data) :]
        except OSError as problem:
            raise BlendFusionError(
                "answers of a query cannot be written to a file in "
                f"{self._folder or tempfile.gettempdir()}: {problem}",
                hint="They are stored, and the next run does not ask for them. Name another folder with "
                "spill_folder, or keep more answers in memory: spill_above is the limit in megabytes.",
            ) from problem
        self.spilled = self._file.tell()
        return place

    def read(self, place: int, size: int) -> bytes:
        """``size`` bytes of the file."""
        assert self._file is not None
        self._file.seek(place)
        return self._file.read(size)


@dataclass(frozen=True, slots=True)
class _Page:
    """Answers in the file, in the order of their keys."""

    first: np.uint64
    """The head of the first key."""
    last: np.uint64
    keys: int
    """The place of the keys in the file."""
    answers: int
    """The place of the answers, behind the keys."""
    end: int


class SpillableAnswers:
    """The answers to one question by values. What they cost is not kept: it was counted when they
    arrived."""

    def __init__(self, spill: AnswerSpill) -> None:
        self._spill = spill
        self._recent: dict[Values, Answer] = {}
        self._pages: list[_Page] = []
        self.bytes = 0
        """The memory of the answers that are not in the file."""

    def among(self, values: Sequence[Values]) -> dict[Values, Answer]:
        """The answers to these, as far as there are any."""
        with self._spill.lock:
            recent = self._recent
            found = {v: recent[v] for v in values if v in recent}
            if self._pages and len(found) < len(values):
                rest = [v for v in dict.fromkeys(values) if v not in found]
                keys = _Keys(rest)
                for page in self._pages:
                    found.update((rest[at], answer) for at, answer in self._on(page, keys))
            return found

    def update(self, answers: Mapping[Values, Answer]) -> None:
        """Keep these. Raises BlendFusionError if a file cannot be written; they are kept then,
        too."""
        with self._spill.lock:
            self._recent.update(answers)
            self.bytes += sum(map(_size, answers, answers.values()))
            self._spill.keep_within()

    def spill(self) -> None:
        """Move all answers to the file."""
        keys, answers = _Keys(self._recent), list(self._recent.values())
        pages = []
        for start in range(0, len(answers), _PAGE_ROWS):
            places = keys.order[start : start + _PAGE_ROWS]
            some = keys.taken(places)
            at = self._spill.append(memoryview(some.buffers()[1]))
            data = _written([answers[place] for place in places])
            then = self._spill.append(memoryview(data))
            first, last = (np.uint64(int.from_bytes(some[i].as_py()[:8], "big")) for i in (0, -1))
            pages.append(_Page(first, last, at, then, self._spill.spilled))
        self._pages += pages
        self._recent = {}
        self.bytes = 0

    def _on(self, page: _Page, keys: _Keys) -> Iterator[tuple[int, Answer]]:
        """The answers of a page to values at their places."""
        start = np.searchsorted(keys.heads, page.first)
        stop = np.searchsorted(keys.heads, page.last, side="right")
        if start == stop:
            return
        places = keys.order[start:stop]
        known = _keys(self._spill.read(page.keys, page.answers - page.keys))
        rows = pc.index_in(keys.taken(places), known)
        if rows.null_count == len(rows):
            return
        data = self._spill.read(page.answers, page.end - page.answers)
        found = places[rows.is_valid().to_numpy(zero_copy_only=False)]
        yield from zip(found.tolist(), _read(data, rows.drop_null()), strict=True)


class _Keys:
    """The digests of values, and the places of these values in the order of the digests' heads:
    their first eight bytes."""

    def __init__(self, values: Iterable[Values]) -> None:
        data = b"".join(digests(values))
        heads = np.frombuffer(data, ">u8")[::2].astype(np.uint64)
        self._keys = _keys(data)
        self.order = np.argsort(heads, kind="stable")
        self.heads = heads[self.order]

    def taken(self, places: np.ndarray) -> pa.Array:
        """The keys at these places."""
        return self._keys.take(pa.array(places))


def _keys(data: bytes) -> pa.Array:
    return pa.Array.from_buffers(_KEY, len(data) // VALUES_BYTES, [None, pa.py_buffer(data)])


def _size(values: Values, answer: Answer) -> int:
    return ENTRY_BYTES + sum(len(v) for v in values if v) + len(answer.text or "")


def _written(answers: Sequence[Answer]) -> pa.Buffer:
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
