"""The folder of materialised views: one folder for each, in which a file says what is served.

```
blendfusion_views/
  complaints/          the name, with all but a-z, 0-9, _ and - escaped
    view.json          the query and what the served version was made of: replaced in one step
    rows-3.parquet     the rows of version 3, or rows-3.lance: those of the last versions stay
    answers.sqlite     the answers to all questions so far
    rows-of-reviews/   the rows so far of a table that only grows
    writing            a lock, held during a refresh
    unfinished         there from the write of a database's table to that of view.json
```
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from blendfusion.errors import QueryError, connect_with
from blendfusion.models.protocol.gate import Shape, Unfit, check_shape, object_of
from blendfusion.places.whole_file import replacing, write_private
from blendfusion.places.write_lock import write_lock
from blendfusion.services.views import lance_rows

FORMAT = 1
_STATE, _LOCK, _ANSWERS = "view.json", "writing", "answers.sqlite"
_MOST_LETTERS, _MOST_VERSIONS = 100, 10
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ROWS = re.compile(r"rows-(\d+)\.(?:parquet|lance)")
_SHAPE: Shape = {
    **dict.fromkeys(("version", "rows", "failed", "values", "format"), int),
    **dict.fromkeys(("name", "query", "digest", "refreshed"), str),
    "inputs": {"...": (str, None)},
    "settings": {"...": object},
    "drift": {"...": int},
    "history": [{"version": int, "served": str, "models": {"...": str}}],
}


@dataclass(frozen=True, slots=True)
class View:
    """A materialised view: its query, and its served version."""

    name: str
    query: str
    """In BlendFusion's SQL."""
    version: int
    """1 for the first one; each refresh that changes rows adds 1."""
    rows: int
    refreshed: str
    """The time when the rows were last known to be those of the query: ISO 8601, UTC."""
    values: int
    """How many values the latest refresh asked."""
    failed: int
    """Values without a valid answer in the latest refresh."""
    digest: str = field(repr=False)
    """A digest of the rows."""
    inputs: Mapping[str, str | None] = field(repr=False)
    """A digest of each table that the query reads; None: its changes cannot be told."""
    settings: Mapping[str, Any] = field(repr=False)
    """Options, versions and models that may change the rows."""
    drift: Mapping[str, int] = field(default_factory=dict, repr=False)
    """The counts of ``drift.Drift``; {}: no answer was asked again."""
    history: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    """The versions that can be read, the oldest first: the number of each, the time from which it
    was served, and the fingerprints of its models by name."""
    format: int = field(default=FORMAT, repr=False)


def history_with(view: View) -> list[Mapping[str, Any]]:
    """The history of a view whose version is served now: its last versions, and the last one of
    each model before them."""
    models = view.settings.get("models", {"own": [], "named": {}})
    known = {**dict(models["own"]), **models["named"]}
    now = {"version": view.version, "served": view.refreshed, "models": known}
    found = [one for one in view.history if one["version"] <= view.version]
    if found and all(found[-1][name] == now[name] for name in ("version", "models")):
        return found
    found.append(now)
    latest = {repr(one["models"]): place for place, one in enumerate(found)}
    first = len(found) - _MOST_VERSIONS
    return [one for at, one in enumerate(found) if at >= first or at in latest.values()]


def escape(name: str) -> str:
    """The name of the folder of a view: another one for each name on every file system, no path.

    >>> escape("a b"), escape("../x"), escape("A")
    ('a%20b', '%2e%2e%2fx', '%41')
    """
    kept = "abcdefghijklmnopqrstuvwxyz0123456789_-"
    raw = name.encode("utf-8", "surrogatepass")
    text = "".join(chr(b) if chr(b) in kept else f"%{b:02x}" for b in raw)
    if len(text) <= _MOST_LETTERS:
        return text
    return f"{text[:_MOST_LETTERS]}%{hashlib.sha256(raw).hexdigest()}"


class ViewFolder:
    """The place of one view."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.path = name, folder / escape(name)

    @property
    def answers(self) -> Path:
        return self.path / _ANSWERS

    def stamp(self) -> tuple[int, int] | None:
        """A value that changes with every served version; None without one."""
        try:
            found = (self.path / _STATE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def rows_of(self, view: View, version: int | None = None) -> Path:
        """The place of the rows of a version, by default of the served one."""
        if version is not None:
            found = (
                file for file in self.path.glob(f"rows-{version}.*") if _ROWS.fullmatch(file.name)
            )
            return next(found, self.path / f"rows-{version}.parquet")
        return self.path / f"rows-{view.version}.{view.settings.get('format', 'parquet')}"

    def is_whole(self, view: View) -> bool:
        """Whether the file of the served rows can be read, and has all of them."""
        place = self.rows_of(view)
        if place.suffix == ".lance":
            return lance_rows.count(place) == view.rows
        try:
            return bool(pq.read_metadata(place).num_rows == view.rows)
        except (OSError, pa.ArrowException):
            return False

    def load(self) -> View | None:
        """The served version; None if there is none. Raises QueryError for a file that is no
        view."""
        file = self.path / _STATE
        try:
            found = object_of(file.read_bytes(), {"checksum": str})
            if found.pop("checksum") != _checksum(found):
                raise Unfit("its checksum differs")
            check_shape(found := {"history": (), **found}, _SHAPE)
            view = View(**found)
            if view.format != FORMAT or view.name != self.name:
                raise Unfit("it is of another version of BlendFusion, or of another view")
        except FileNotFoundError:
            return None
        except (OSError, Unfit, TypeError) as problem:
            raise QueryError(
                f"'{file}' is no view that BlendFusion has made: {problem}",
                hint=f"Make it again: CREATE OR REPLACE MATERIALIZED VIEW {self.name} AS ….",
            ) from problem
        return view

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the view for a refresh; waits for another one. Raises QueryError where nothing can
        be written."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as problem:
            raise QueryError(
                f"no view can be kept in '{self.path.parent}': {problem.strerror or problem}",
                hint=f"Name a folder for views: {connect_with(views_folder='…')}.",
            ) from problem
        try:
            with write_lock(self.path / _LOCK):
                yield
        except OSError as problem:
            if not self.path.exists():
                raise QueryError(
                    f"the folder of view {self.name} was deleted meanwhile",
                    hint=f"CREATE MATERIALIZED VIEW {self.name} AS … makes it again.",
                ) from problem
            if problem.errno not in _FULL:
                raise
            raise QueryError(
                f"view {self.name} cannot be kept: {problem.strerror}",
                hint="The version before is served. Free space, and refresh it again.",
            ) from problem

    def write_rows(self, view: View, rows: pa.Table) -> None:
        """Write the rows of a version that is not served yet. Raises QueryError for columns that
        Parquet or Lance does not hold."""
        if self.rows_of(view).suffix == ".lance":
            return lance_rows.write(self.rows_of(view), rows)
        try:
            with replacing(self.rows_of(view)) as part:
                owned = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(owned, "wb") as stream:
                    pq.write_table(rows, stream)
                    stream.flush()
                    os.fsync(owned)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as problem:
            raise QueryError(
                f"the rows of view {self.name} cannot be kept as Parquet: {problem}",
                hint="Cast the column to another type.",
            ) from problem

    def serve(self, view: View) -> None:
        """Serve a version to readers from now on. Those of its history stay, and the one before,
        for those who read it."""
        state = asdict(view)
        whole = {**state, "checksum": _checksum(state)}
        write_private(self.path / _STATE, (json.dumps(whole, indent=1) + "\n").encode())
        self.unfinished_file.unlink(missing_ok=True)
        kept = {view.version - 1, view.version, *(one["version"] for one in view.history)}
        for file in self.path.iterdir():
            found = _ROWS.fullmatch(file.name)
            left = file.name.endswith(".part")  # by a refresh that was killed
            if not left and not (found and int(found[1]) not in kept):
                continue
            if file.is_dir():
                shutil.rmtree(file, ignore_errors=True)
            else:
                file.unlink(missing_ok=True)

    @property
    def unfinished_file(self) -> Path:
        """A file that is there where a table of a database may be ahead of the served version."""
        return self.path / "unfinished"

    def remove(self) -> None:
        """Delete the view with its answers; readers do not see half of it."""
        gone = self.path.with_name(f".dropped-{secrets.token_hex(8)}")
        self.path.rename(gone)
        for folder in self.path.parent.glob(".dropped-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _checksum(state: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def stamps_in(folder: Path) -> dict[Path, tuple[int, int]]:
    """The places of the views in a folder, each with a value that changes with its version."""
    found = {}
    for file in folder.glob(f"*/{_STATE}"):
        with suppress(OSError):
            stamp = file.stat()
            found[file.parent] = stamp.st_mtime_ns, stamp.st_ino
    return found


def names_in(folder: Path) -> list[str]:
    """The names of the views in a folder, in their order; those that are no view are left out."""
    found = []
    for place in folder.glob(f"*/{_STATE}"):
        try:
            name = object_of(place.read_bytes(), {"name": str})["name"]
        except (OSError, Unfit):
            continue
        if escape(name) == place.parent.name:
            found.append(name)
    return sorted(found)
