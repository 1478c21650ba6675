"""DataFusion's own methods that read JSON and Arrow files, with the care that ``register_file``
takes: every key and digit of JSON, and the columns of Arrow files by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

from blendfusion.errors import QueryError
from blendfusion.files.csv_doors import local_listing
from blendfusion.files.formats import Format
from blendfusion.files.json_tables import ALL_ROWS, json_table
from blendfusion.files.parts import Table
from blendfusion.files.reading import unreadable
from blendfusion.files.texts import COMPRESSIONS
from blendfusion.files.typed_tables import typed_table

_SETTLED = ("table_partition_cols", "file_partition_cols", "object_store")
"""Arguments with which DataFusion reads the files itself."""


def prepare_files(
    kind: str, given: Mapping[str, Any], new_folder: Callable[[], Path]
) -> dict[str, Any] | Table:
    """How DataFusion reads the files of a kind, json or arrow, with the arguments ``given``: as a
    table whose columns were found, or with further arguments, where some of the given ones say what
    the columns are, or the files are elsewhere. Raises QueryError for what is no table."""
    if given.get("schema") is not None:
        return {}
    further = ALL_ROWS if kind == "json" else {}
    are_known = further and further.items() <= given.items()  # of a table that was made here
    if are_known or any(given.get(name) for name in _SETTLED):
        return further
    extension = given.get("file_extension", f".{kind}")
    try:
        listing = local_listing(given["path"], extension)
    except QueryError:  # DataFusion says that there are no files
        return further
    if listing is None:
        return further
    compression = given.get("file_compression_type") or None
    if any(COMPRESSIONS.get(PurePath(f.url).suffix.lower()) != compression for f in listing.files):
        return further
    try:
        if kind == "arrow":
            return typed_table(kind, listing, new_folder, ending=extension)
        return json_table(listing, new_folder, format=Format(kind, extension, compression))
    except QueryError:
        raise
    except Exception as problem:  # pyarrow's, and of texts
        raise unreadable(listing, kind, problem) from problem
