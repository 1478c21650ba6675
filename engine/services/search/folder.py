"""The folder of one index: its datasets, which of their versions is served, and who may write.

```
docs.index/
  index.json          what is served: replaced in one step when an update is done
  rows-1f0c….lance    the rows, a dataset named by what it holds; each write is a version of it
  writing             a lock, held while an index is built
```

A reader opens the version that index.json names. A writer adds versions that nobody reads yet, and
what a killed one had written is there for the next. Versions are dropped when the next update
begins, so that readers have time to go on.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.protocol.gate import Shape, Unfit, check_shape, object_of
from blendfusion.places.whole_file import hide
from blendfusion.places.write_lock import write_lock

FORMAT = 1
"""Format of the datasets and of index.json; an index of another format is rebuilt."""
_STATE = "index.json"
_LOCK = "writing"
_DATASET = re.compile(r"rows-[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Spec:
    """The parameters of an index's content, beside the rows themselves."""

    columns: tuple[str, ...]
    """The searched columns."""
    schema: pa.Schema
    """The columns of the rows."""
    language: str | None
    embedder: str | None
    """The embedder's fingerprint; None: no vectors."""

    @property
    def dataset(self) -> str:
        """The name of the dataset with this content."""
        fields = [(field.name, str(field.type)) for field in self.schema]
        key = repr((FORMAT, self.columns, fields, self.language, self.embedder))
        return f"rows-{hashlib.blake2b(key.encode(), digest_size=8).hexdigest()}"


@dataclass(frozen=True, slots=True)
class State:
    """The served version."""

    dataset: str
    version: int
    rows: int
    columns: tuple[str, ...]
    language: str | None
    embedder: str | None
    embedder_name: str | None
    loose: int = 0
    """Rows that came or went since the full-text index was last built completely."""
    clustered: int = 0
    """Rows from which the vectors' clusters were made; 0: no clusters."""
    table: str | None = None
    """The name of the table that was indexed; None for a frame or an Arrow table."""
    format: int = FORMAT


_SHAPE: Shape = {
    **dict.fromkeys(("version", "rows", "loose", "clustered", "format"), int),
    **dict.fromkeys(("language", "embedder", "embedder_name", "table"), (str, None)),
    "dataset": str,
    "columns": [str],
}


class Folder:
    """One index on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def dataset(self, name: str) -> Path:
        return self.path / f"{name}.lance"

    def state(self) -> State | None:
        """The served version; None if the folder has none, or if another version of BlendFusion
        wrote it."""
        try:
            found = object_of((self.path / _STATE).read_bytes(), {"format": int})
            if found["format"] != FORMAT:
                return None
            check_shape(found, _SHAPE)
            state = State(**found | {"columns": tuple(found["columns"])})
        except (FileNotFoundError, Unfit, TypeError):
            return None
        return state if _DATASET.fullmatch(state.dataset) else None

    def stamp(self) -> tuple[int, int] | None:
        """A value that changes with every served state; None without one."""
        try:
            found = (self.path / _STATE).stat()
        except FileNotFoundError:
            return None
        return found.st_mtime_ns, found.st_ino

    def serve(self, state: State) -> None:
        """Serve ``state`` to readers from now on. Its rows are for the eyes of its owner, as far as
        the folder is."""
        hide(self.path)
        handle, name = tempfile.mkstemp(dir=self.path, prefix=_STATE)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(asdict(state), file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path / _STATE)
        finally:
            Path(name).unlink(missing_ok=True)

    def drop_others(self, *names: str) -> None:
        """Delete the datasets with other names."""
        kept = {self.dataset(name) for name in names}
        for path in self.path.glob("rows-*.lance"):
            if path not in kept:
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the write lock of all processes; waits for another writer. A killed writer releases
        it."""
        self._make()
        with write_lock(self.path / _LOCK):
            yield

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            strange = {p.name for p in self.path.iterdir()} - {_STATE, _LOCK}
        except OSError as problem:
            raise QueryError(
                f"'{self.path}' cannot be the folder of an index: {problem.strerror or problem}",
                hint="Name a separate folder: session.index(…, path='docs.index').",
            ) from problem
        ours = ("rows-", f"{_STATE}", f"{_LOCK}")
        stray = sorted(name for name in strange if not name.startswith(ours))
        if stray:
            raise QueryError(
                f"'{self.path}' contains other files, for example '{stray[0]}'",
                hint="An index needs a separate folder: session.index(…, path='docs.index').",
            )
