"""A store in a folder or on an object store: segments of Parquet that are added and never
changed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from blendfusion.errors import OptionError
from blendfusion.models.services.shared_stores.segment import (
    BrokenSegment,
    Name,
    Segment,
    merge_segments,
)
from blendfusion.models.services.shared_stores.shared_store import SharedStore, Unreachable
from blendfusion.models.stores.address import clean_message, without_secrets
from blendfusion.models.stores.entry import Row, pieces
from blendfusion.models.stores.key import MODEL_BYTES, TASK_BYTES
from blendfusion.models.stores.memory import StoreStats

FOLDER = "blendfusion-answers-1"
"""Ends with the version of the format, so that two versions of BlendFusion share no folder."""
_ROWS_AT_ONCE = 5_000
_MERGED = 16
"""Segments of about one size that become one."""
_LOOKS = 20
"""Listings after which a folder that never rests is read as it is."""
_LOOKED_SHARE = 10
"""A folder is listed again when so many times the time of a listing has passed."""


class SegmentStore(SharedStore):
    """Answers below the folder at ``url``: ``file:///path``, ``s3://bucket/path``, ``gs://…`` or
    another address of ``pyarrow.fs``, whose credentials the environment holds.

    Each ``store_many`` adds a file. Its name holds the checksum of its bytes, and files appear as a
    whole, so that readers need no lock. Sixteen segments of about one size are merged. The answers
    to a task lie in a folder of their own; a process holds those of the tasks that it asks in
    memory. Two machines that ask the same at the same time both keep their answer, and the older
    one counts.
    """

    def __init__(self, url: str, *, clock: Callable[[], float] = time.time) -> None:
        """Reads nothing yet. Raises OptionError for an address that pyarrow does not know."""
        super().__init__(clock)
        self.path = without_secrets(url)
        self._url = url
        try:
            self._files, root = fs.FileSystem.from_uri(url)
        except (pa.ArrowException, OSError) as problem:
            raise OptionError(
                f"cache={self.path!r} is no address of a folder: {clean_message(problem, url)}",
                hint="Write file:///path/to/folder, s3://bucket/folder or gs://bucket/folder.",
            ) from None
        self._local = isinstance(self._files, fs.LocalFileSystem)
        self._root = f"{root.rstrip('/')}/{FOLDER}"
        self._shelves: dict[str, FolderCache] = {}

    def __reduce__(self) -> tuple[object, ...]:
        """A store of the same place, for another process; with its secrets."""
        return SegmentStore, (self._url,)

    def _let_go(self) -> None:
        with self._lock:
            self._shelves.clear()

    # --- rows ------------------------------------------------------------------------------------

    def _rows(self, prefix: bytes, keys: Sequence[bytes]) -> Iterable[Row]:
        with self._reaching():
            return self._fresh(prefix.hex()).rows(keys)

    def _write(self, rows: Sequence[Row]) -> int:
        new = 0
        by_folder: dict[str, dict[bytes, Row]] = {}
        for row in rows:
            folder = row[0][: MODEL_BYTES + TASK_BYTES].hex()
            by_folder.setdefault(folder, {}).setdefault(row[0], row)
        with self._reaching():
            for folder, some in by_folder.items():
                shelf = self._fresh(folder)
                known = {row[0] for row in shelf.rows(sorted(some))}
                unknown = [some[key] for key in sorted(some) if key not in known]
                if unknown:
                    with self._reaching(readable=True):
                        self._add_file(shelf, Segment.of(unknown, self._clock()))
                        self._merge(shelf)
                new += len(unknown)
        return new

    def _refresh(self, keys: Sequence[bytes], now: int) -> None:
        """Nothing: segments do not change, and none is dropped for want of room."""

    def _drop(self, keys: Sequence[bytes]) -> None:
        """Nothing: segments do not change."""

    def _texts(self, prefix: bytes, most: int) -> list[str]:
        with self._reaching():
            return self._fresh(prefix.hex()).texts(most)

    def _forget(self, prefix: bytes) -> None:
        with self._reaching():
            for name in self._folders():
                if name.startswith(prefix.hex()):
                    shelf = self._shelves.pop(name, None) or self._shelf(name)
                    while there := self._list_files(
                        shelf.folder
                    ):  # others may just be merging some
                        self._remove(shelf, [info.base_name for info in there])

    def _stats(self) -> StoreStats:
        with self._reaching():
            folders = self._folders()
            tables = [merge_segments(self._fresh(name).segments) for name in folders]
            size = sum(file.size or 0 for file in self._list_files(self._root, recursive=True))
        used = [t["used"].combine_chunks() for t in tables if len(t)]
        models = {
            name[: 2 * MODEL_BYTES] for name, t in zip(folders, tables, strict=True) if len(t)
        }
        times = pa.chunked_array(used, pa.int64()).to_numpy() if used else None
        oldest, newest = (None, None) if times is None else (int(times.min()), int(times.max()))
        return StoreStats(sum(map(len, tables)), len(models), size, 0, oldest, newest)

    def _pages(self) -> Iterator[Sequence[Row]]:
        with self._lock, self._reaching():
            folders = self._folders()
        for name in folders:
            with self._lock, self._reaching():
                rows = Segment(merge_segments(self._fresh(name).segments)).rows()
            yield from pieces(rows, _ROWS_AT_ONCE)

    # --- files -----------------------------------------------------------------------------------

    def _shelf(self, folder: str) -> FolderCache:
        return FolderCache(f"{self._root}/{folder}")

    def _folders(self) -> list[str]:
        return sorted(
            info.base_name
            for info in self._files.get_file_info(fs.FileSelector(self._root, allow_not_found=True))
            if info.type == fs.FileType.Directory
        )

    def _list_files(self, folder: str, *, recursive: bool = False) -> list[fs.FileInfo]:
        selector = fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
        infos = self._files.get_file_info(selector)
        return [i for i in infos if i.type == fs.FileType.File and i.base_name[0] != "."]

    def _fresh(self, folder: str) -> FolderCache:
        """The segments of a folder, as far as a look at it just now or a moment ago tells."""
        shelf = self._shelves.setdefault(folder, self._shelf(folder))
        begun = time.monotonic()
        if begun < shelf.look_at:
            return shelf
        before: set[str] | None = None
        for _ in range(_LOOKS):
            names = {info.base_name for info in self._list_files(shelf.folder)}
            if names == before:
                break
            # While another process merges, a listing may miss both the old files and the new one.
            complete = names.issuperset(shelf.held)
            for gone in shelf.held.keys() - names:
                del shelf.held[gone]
            new = sorted(names - shelf.held.keys() - shelf.broken)
            missed = sum(not self._load(shelf, name) for name in new)
            if complete and not missed:
                break
            before = names
        ended = time.monotonic()
        shelf.look_at = ended + _LOOKED_SHARE * (ended - begun)
        return shelf

    def _load(self, shelf: FolderCache, name: str) -> bool:
        """Read a segment; False if it is there no more."""
        try:
            with self._files.open_input_stream(f"{shelf.folder}/{name}") as stream:
                data = stream.read()
            shelf.held[name] = Segment.read(name, data)
        except FileNotFoundError:
            return False
        except BrokenSegment:
            shelf.broken.add(name)
            self._tell(
                f"the answer cache {self.path} has a damaged segment, {shelf.folder}/{name}. It is "
                "left out, and its answers are asked again; delete it at will."
            )
        return True

    def _add_file(self, shelf: FolderCache, segment: Segment) -> str:
        name, data = segment.to_file()
        place = f"{shelf.folder}/{name}"
        # An object appears when it is complete; a file does after its renaming.
        begun = f"{shelf.folder}/.{name}.part" if self._local else place
        if self._local:
            _make_private(Path(shelf.folder), begun)
        with self._files.open_output_stream(begun, compression=None) as stream:
            stream.write(data)
        if self._local:
            self._files.move(begun, place)
        shelf.held[name] = segment
        return name

    def _merge(self, shelf: FolderCache) -> None:
        """Merge segments of about one size, as long as there are enough."""
        while names := shelf.mergeable():
            merged = Segment(
                merge_segments([shelf.held[name] for name in names]), shelf.held[names[0]].begun
            )
            added = self._add_file(shelf, merged)
            there = {info.base_name for info in self._list_files(shelf.folder)}
            if not there.issuperset(names):
                # Another process merged them, or forgot them: then they must not come back.
                self._remove(shelf, [added])
                return
            self._remove(shelf, names)

    def _remove(self, shelf: FolderCache, names: Iterable[str]) -> None:
        for name in names:
            shelf.held.pop(name, None)
            with suppress(FileNotFoundError):
                self._files.delete_file(f"{shelf.folder}/{name}")

    @contextmanager
    def _reaching(self, *, readable: bool = False) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as problem:
            is_folder = not isinstance(problem, FileExistsError | NotADirectoryError)
            raise Unreachable(
                f"{clean_message(problem, self._url)}. Check the address, the rights on it, and the "
                "credentials in the environment",
                readable=readable and is_folder,
            ) from None


class FolderCache:
    """The segments of one folder that this process has read."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.held: dict[str, Segment] = {}
        self.broken: set[str] = set()
        self.look_at = 0.0
        """When the folder is to be listed again."""

    @property
    def segments(self) -> list[Segment]:
        """The segments that were read, the oldest first."""
        return [self.held[name] for name in sorted(self.held)]

    def rows(self, keys: Sequence[bytes]) -> list[Row]:
        """The rows of these keys; of a key in several segments, that of the oldest."""
        found: dict[bytes, Row] = {}
        missing = list(keys)
        for segment in self.segments:
            if not missing:
                break
            found |= {row[0]: row for row in segment.among(missing)}
            missing = [key for key in missing if key not in found]
        return list(found.values())

    def texts(self, most: int) -> list[str]:
        """At most ``most`` of the stored answers' texts, without NULLs."""
        columns = (segment.table["text"].drop_null() for segment in self.segments)
        some: Iterable[str] = chain.from_iterable(c.slice(0, most).to_pylist() for c in columns)
        return list(some)[:most]

    def mergeable(self) -> list[str]:
        """The oldest segments of one size, if there are enough of it."""
        by_size: dict[int, list[str]] = {}
        for name in sorted(self.held):
            by_size.setdefault(Name.parse(name).size_class, []).append(name)
        enough = [names for names in by_size.values() if len(names) >= _MERGED]
        return enough[0][:_MERGED] if enough else []


def _make_private(folder: Path, file: str) -> None:
    """Make a folder for the eyes of this user only, where it is missing, and an empty file in it
    that only those can read who may read there."""
    for place in [*reversed(folder.parents), folder]:
        if not place.is_dir():
            place.mkdir(mode=0o700, exist_ok=True)
    bits = folder.stat().st_mode & 0o666 | 0o600
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT, bits))
