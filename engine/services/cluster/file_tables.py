"""Remembers the files behind a session's tables, so that workers can read them."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.files.conversions import PREFIX
from blendfusion.services.cluster.divide import Files
from blendfusion.services.cluster.messages import FileTable
from blendfusion.services.scans.lance_table import RegisteredLance, opened_table

_METHODS = {
    "register_parquet": (".parquet", "file_type=parquet"),
    "register_csv": (".csv", "file_type=csv"),
    "register_json": (".json", "file_type=json"),
}


def _lance(place: str, shown: str) -> Files | None:
    """The fragments of a Lance table, by number."""
    dataset = opened_table(place)
    parts = dataset.get_fragments()
    if f"DatasetExec: number_of_fragments={len(parts)}" not in shown:
        return None
    table = FileTable("register_lance", place, {"version": dataset.version}, dataset.schema)
    sizes = tuple(sum(file.file_size_bytes or 1 for file in p.data_files()) for p in parts)
    return Files(tuple(str(part.fragment_id) for part in parts), sizes, table)


def _list_files(folder: Path, extension: str) -> list[Path]:
    """The files that DataFusion reads in a folder: not those in folders below it, unless these are
    called ``name=value``; no empty ones."""
    return sorted(
        file
        for file in folder.rglob(f"*{extension}")
        if all("=" in part for part in file.relative_to(folder).parts[:-1])
        and file.is_file()
        and file.stat().st_size
    )


def _is_shared(path: str) -> bool:
    """Whether workers can have the file or the folder at ``path``, too: no URL, no folder of this
    session's own."""
    own = os.path.join(tempfile.gettempdir(), PREFIX)
    return "://" not in path and not os.path.abspath(path).startswith(own)


class FileTables:
    """The files that were registered as tables of ``session``."""

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self._known: dict[str, tuple[str, str, dict[str, Any]]] = {}

    def note(self, method: str, name: str, path: object, arguments: dict[str, Any]) -> None:
        """Remember that ``path`` became the table ``name``."""
        self.forget(name)
        if isinstance(path, str | os.PathLike) and _is_shared(os.fspath(path)):
            self._known[name.strip('"')] = (method, str(Path(path).absolute()), arguments)

    def note_table(self, name: str, table: object) -> None:
        """Remember a Lance table that workers can open; forget what the name has stood for
        otherwise."""
        self.forget(name)
        if isinstance(table, RegisteredLance) and table.alone:
            self._known[name.strip('"')] = ("register_lance", table.place, {})

    def forget(self, name: str) -> None:
        """Forget what the name has stood for: it stands for something else now."""
        self._known.pop(name.strip('"'), None)

    def of(self, name: str) -> Files | None:
        """The files behind a table, in order; None for a table of something else."""
        known = self._known.get(name)
        if known is None or known[2].get("table_partition_cols"):
            return None
        method, path, arguments = known
        table = SessionContext.table(self._session, f'"{name}"')
        shown = table.execution_plan().display_indent()
        if method == "register_lance":
            return _lance(path, shown)
        extension = arguments.get("file_extension", _METHODS[method][0])
        place = Path(path)
        # Another table may have the name by now.
        start = re.escape(path.lstrip("/")) + ("/" if place.is_dir() else r"[\],:]")
        is_here = _METHODS[method][1] in shown and re.search(rf"[\[ ]{start}", shown)
        if not is_here or "ProjectionExec" in shown:  # or a view reads it
            return None
        files = _list_files(place, extension) if place.is_dir() else [place]
        schema = pa.schema([field.remove_metadata() for field in table.schema()])
        kept = {k: v for k, v in arguments.items() if k != "schema"}
        if method == "register_parquet":
            kept.setdefault("file_extension", extension)
        return Files(
            tuple(map(str, files)),
            tuple(file.stat().st_size for file in files),
            FileTable(method, path, kept, schema),
        )
