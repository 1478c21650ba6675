"""Recognises tables of Delta Lake, Apache Iceberg and Apache Hudi. Their Parquet files also hold
rows that were deleted or replaced: only their logs say which rows count."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from datafusion import SessionContext

from blendfusion.errors import QueryError
from blendfusion.places.folders import has_pattern
from blendfusion.places.partitions import partition_of
from blendfusion.places.remote import LOCAL, local_path, scheme_of

_REMEDIES = {
    "Delta Lake": (
        "pip install deltalake; then session.register_lake('t', {place!r}), or "
        "session.register_table('t', deltalake.DeltaTable(…)), reads it as it is now."
    ),
    "Iceberg": (
        "pip install 'pyiceberg[pyarrow]'; then session.register_lake('t', {place!r}) reads it as "
        "it is now."
    ),
    "Hudi": (
        "pip install hudi; then session.from_arrow(pyarrow.Table.from_batches(hudi"
        ".HudiTableBuilder.from_base_uri({place!r}).build().read()), name='t') reads it as it is now."
    ),
}
ICEBERG = "Iceberg"
READ_WHOLE = ("Delta Lake", ICEBERG)
"""The kinds that the service blendfusion/services/lakes reads."""
_FOLDERS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
_MARKERS = (
    ("_delta_log/", ".json", "Delta Lake"),
    (".hoodie/", ".properties", "Hudi"),
    ("metadata/", ".metadata.json", "Iceberg"),
)
"""Folders in a table's own, the ending of files in them, and the kind of the table."""
_NUMBER = re.compile(r"^v|[-.].*$", re.DOTALL)
"""The texts around the number of ``00003-….metadata.json`` and ``v3.metadata.json``."""
_UNREAD = "Json error"
_METADATA = "metadata"
_METADATA_FILE = ".metadata.json"


def lake_error(kind: str, place: str) -> QueryError:
    """The error of reading files of the ``kind`` table at ``place``."""
    return QueryError(
        f"'{place}' is a table of {kind}, whose Parquet files also hold rows that were deleted or replaced",
        hint=_REMEDIES[kind].format(place=place),
    )


def check_folders(folders: Iterable[str | os.PathLike[str]]) -> None:
    """Raise QueryError if a folder of this machine, or one above it, is such a table."""
    for folder in dict.fromkeys(_upward(folders)):
        _check_folder(folder)


def _check_folder(folder: str) -> None:
    kind = _kind_of(folder)
    if kind is not None:
        raise lake_error(kind, folder)


def _upward(folders: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    for folder in folders:
        # The path as it was written, and the one that links lead to.
        for place in dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder))):
            yield place
            yield from map(str, Path(place).parents)


def _kind_of(folder: str) -> str | None:
    for name, kind in _FOLDERS.items():
        if os.path.isdir(os.path.join(folder, name)):
            return kind
    inner = os.path.join(folder, _METADATA)
    if os.path.isdir(inner) and any(f.endswith(_METADATA_FILE) for f in os.listdir(inner)):
        return "Iceberg"
    return None


def kind_of_lake(folder: str | os.PathLike[str]) -> str | None:
    """The kind of the table whose folder on this machine this is; None for any other folder."""
    return _kind_of(os.fspath(folder))


def newest_metadata(folder: str) -> str:
    """The metadata file of the Iceberg table in ``folder`` with the highest number. Raises
    QueryError if there is none."""
    inner = Path(folder, _METADATA)
    files = [f.name for f in inner.glob(f"*{_METADATA_FILE}")] if inner.is_dir() else []
    if not files:
        raise QueryError(f"'{folder}' is no folder of a table of Iceberg")
    return str(inner / max(files, key=lambda name: (int(_NUMBER.sub("", name) or 0), name)))


def check_place(context: Any, place: object) -> None:
    """Raise QueryError if the Parquet files at ``place`` (a path, a folder, a pattern, a URL) are
    those of such a table, or a folder in it is one. ``context`` reads URLs."""
    url = str(place)
    if scheme_of(url) not in (None, LOCAL):
        check_url(context, url)
        return
    path = local_path(url)
    if os.path.isdir(path):
        check_below(path)
    elif has_pattern(path) and not os.path.exists(path):
        check_folders({os.path.dirname(found) for found in glob.iglob(path, recursive=True)})
    else:
        check_folders([os.path.dirname(os.path.abspath(path))])


def check_below(folder: str | os.PathLike[str]) -> None:
    """``check_folders`` of a folder, of those directly in it, and of those in them that are
    partitions."""
    check_folders([folder])
    with os.scandir(folder) as entries:
        inner = [entry for entry in entries if entry.is_dir()]
    for entry in inner:
        if partition_of(entry.name):
            check_below(entry.path)
        else:
            _check_folder(entry.path)


def check_url(context: Any, url: str) -> None:
    """Raise QueryError if a folder on the way to ``url``, in an object store that ``context``
    reads, is such a table."""
    scheme, _, path = url.partition("://")
    parts = [part for part in path.split("/") if part]
    fixed = next((at for at, part in enumerate(parts) if "*" in part), len(parts))
    for end in range(1, fixed + 1):
        folder = f"{scheme}://{'/'.join(parts[:end])}/"
        for marker, ending, kind in _MARKERS:
            if _holds_files(context, folder + marker, ending):
                raise lake_error(kind, folder)


def _holds_files(context: Any, folder: str, ending: str) -> bool:
    """Whether DataFusion finds a file with an ending in a folder, and so fails otherwise, or not
    at all, when it looks for columns."""
    try:
        SessionContext.read_json(context, folder, file_extension=ending)
    except Exception as problem:  # DataFusion's
        return _UNREAD in str(problem)
    return True


def check_keys(
    there: Iterable[str], read: Sequence[str], shown: Callable[[str], str], is_pattern: bool
) -> None:
    """Raise QueryError if keys of objects that are to be ``read`` are those of such a table;
    without a pattern, also if the folder, or one in it, is one. ``there`` are all keys below the
    folder, ``shown`` writes one as a URL."""
    for folder, kind in dict(filter(None, map(_table_of_key, there))).items():
        begins = f"{folder}/" if folder else ""
        is_near = not is_pattern and "/" not in folder
        if is_near or any(key.startswith(begins) for key in read):
            raise lake_error(kind, shown(folder).rstrip("/"))


def _table_of_key(key: str) -> tuple[str, str] | None:
    """(folder, kind) of the table whose log an object belongs to."""
    parts = PurePosixPath(key).parts
    for at, part in enumerate(parts[:-1]):
        if part in _FOLDERS:
            return "/".join(parts[:at]), _FOLDERS[part]
    if len(parts) > 1 and parts[-2] == _METADATA and parts[-1].endswith(_METADATA_FILE):
        return "/".join(parts[:-2]), "Iceberg"
    return None
