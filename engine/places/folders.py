"""The files that a path stands for: a file, a folder, or a pattern, on this machine."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from blendfusion.errors import QueryError, close_matches
from blendfusion.places.notes import note, quote_first
from blendfusion.places.partitions import Partition, partition_of

_MAGIC = re.compile(r"[*?\[]")
_MARKERS = re.compile(
    r"_(SUCCESS|metadata|common_metadata|committed_.*|started_.*|temporary|delta_log|spark_metadata)"
)
"""The names of what Hadoop, Spark and Databricks write beside the files of a table."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a table."""

    url: str
    """Its path, or its URL in an object store."""
    size: int
    folders: tuple[str, ...] = ()
    """The folders that lead to it from the place that was named."""
    changed: int = 0
    """When an object of a store was changed, in nanoseconds."""

    @property
    def path(self) -> Path:
        return Path(self.url)

    @property
    def name(self) -> str:
        return unquote(self.url.rpartition("/")[2]) if "://" in self.url else self.path.name

    @property
    def partitions(self) -> tuple[Partition, ...]:
        found = map(partition_of, self.folders)
        return tuple(partition for partition in found if partition is not None)

    @property
    def address(self) -> str:
        """The file for DataFusion, which reads signs such as ``*`` and ``[`` in paths as patterns,
        but not in URLs."""
        return self.url if "://" in self.url else file_url(self.url)


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a table, at least one, in the order of their names."""

    place: str
    """The path or the URL as it was named."""
    base: str
    """The folder in which the files are, or the only file."""
    files: tuple[File, ...]
    passed: tuple[str, ...] = ()
    """All files below ``base``, also those that are left out, where they are known: paths from
    there."""


def file_url(path: str | os.PathLike[str]) -> str:
    return f"file://{quote(os.path.abspath(path))}"


def has_pattern(path: str) -> bool:
    """Whether a path holds signs of a pattern."""
    return _MAGIC.search(path) is not None


def list_files(place: str) -> Listing:
    """The files at ``place``, a path. A file that exists is no pattern, whatever its name; hidden
    files, and what Spark writes beside its files, are left out. Raises QueryError where there is no
    file."""
    path = Path(place).expanduser()
    if path.is_dir() and path.suffix.lower() != ".lance":
        return _folder(place, path)
    if path.exists():
        return Listing(place, str(path), (File(str(path), _size(path)),))
    if has_pattern(str(path)):
        return _pattern(place, str(path))
    near = ""
    if path.parent.is_dir():
        near = close_matches(path.name, (other.name for other in path.parent.iterdir()))
    raise QueryError(f"there is no file '{place}'", hint=near or None)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _folder(place: str, folder: Path) -> Listing:
    outer = tuple(part for part in Path(place).parts if partition_of(part))
    entries = list(_walk(folder, ()))
    passed = tuple("/".join((*inner, entry.name)) for entry, inner in entries)
    shown = [
        File(entry.path, entry.stat().st_size, outer + inner)
        for entry, inner in entries
        if not is_hidden(entry.name)
    ]
    if not shown:
        below = sorted(e.name for e in os.scandir(folder) if e.is_dir() and not is_hidden(e.name))
        hint = f"Files in folders below it: '{place.rstrip('/')}/**/*.parquet'." if below else None
        raise QueryError(f"there are no files in '{place}'", hint=hint)
    return Listing(
        place, str(folder), tuple(sorted(_without_empty(shown), key=lambda f: f.url)), passed
    )


def _walk(
    folder: str | os.PathLike[str], inner: tuple[str, ...]
) -> Iterator[tuple[os.DirEntry[str], tuple[str, ...]]]:
    """The files in a folder, and in those below it that are partitions, with the names of the
    latter."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file():
                yield entry, inner
            elif entry.is_dir() and partition_of(entry.name):
                yield from _walk(entry.path, (*inner, entry.name))


def _pattern(place: str, pattern: str) -> Listing:
    matches = [Path(found) for found in glob.glob(pattern, recursive=True)]
    files = [File(str(f), f.stat().st_size, f.parent.parts) for f in matches if f.is_file()]
    first = _MAGIC.split(Path(pattern).name)[0]
    shown = [
        file
        for file in files
        if not _in_hidden_folder(file.path, pattern)
        and (not is_hidden(file.name) or first.startswith(file.name[0]))
    ]
    if not shown:
        raise QueryError(f"no file matches '{place}'")
    base = Path(*_before_magic(Path(pattern).parts))
    return Listing(place, str(base), tuple(sorted(_without_empty(shown), key=lambda f: f.url)))


def _before_magic(parts: Sequence[str]) -> Sequence[str]:
    """The folders of a pattern before the first one that is a pattern itself."""
    at = next((n for n, part in enumerate(parts) if has_pattern(part)), len(parts))
    return parts[: min(at, len(parts) - 1)]


def _in_hidden_folder(file: Path, pattern: str) -> bool:
    named = set(Path(pattern).parts)
    return any(is_hidden(part) for part in file.parent.parts if part not in named and part != "..")


def is_hidden(name: str) -> bool:
    """Whether a file or a folder, by its name, is no part of a table: Spark and Hive keep their own
    files so.

    >>> is_hidden("_SUCCESS"), is_hidden(".a.crc"), is_hidden("_year=2024"), is_hidden("a.csv")
    (True, True, False, False)
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _without_empty(files: list[File]) -> list[File]:
    """The files that hold something; all, if none does."""
    return [file for file in files if file.size] or files


def note_hidden(listing: Listing, extension: str) -> None:
    """Warn of files left out for their names that may be meant as data: ``_more.parquet``."""
    names = sorted(passed.rpartition("/")[2] for passed in listing.passed)
    hidden = [
        name
        for name in names
        if name.startswith("_") and name.endswith(extension) and not _MARKERS.match(name)
    ]
    if hidden:
        note(
            f"'{listing.place}': files whose names begin with _ are left out: {quote_first(hidden)}"
        )
