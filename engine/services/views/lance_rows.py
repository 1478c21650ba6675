"""Rows of views in Lance: each version is a dataset, which takes its place when it is whole."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

import pyarrow as pa

from blendfusion.errors import BlendFusionError, QueryError
from blendfusion.services.scans.lance_table import opened_table, require_lance


def count(place: Path) -> int | None:
    """The rows of a dataset; None for one that is not whole."""
    try:
        found = opened_table(str(place))
        files = [file for part in found.get_fragments() for file in part.data_files()]
        sizes = [os.stat(place / "data" / file.path).st_size for file in files]
        is_whole = all(
            file.file_size_bytes in (None, size) for file, size in zip(files, sizes, strict=True)
        )
        return int(found.count_rows()) if is_whole else None
    except (BlendFusionError, OSError, ValueError):
        return None


def write(place: Path, rows: pa.Table) -> None:
    """Write rows as a dataset. Raises QueryError for columns that Lance does not hold, and
    ModelNotFound without the extra 'search'."""
    require_lance()
    import lance

    part = place.with_name(f".{place.name}.{secrets.token_hex(8)}.part")
    try:
        lance.write_dataset(rows, str(part))
        for file in (file for file in part.rglob("*") if file.is_file()):
            with file.open("rb") as stream:
                os.fsync(stream.fileno())
        shutil.rmtree(place, ignore_errors=True)  # of a refresh that was killed, or damaged
        part.rename(place)
    except (pa.ArrowException, ValueError) as problem:
        raise QueryError(
            f"rows of the view cannot be kept in Lance: {problem}",
            hint="Cast the column to another type, or leave WITH (format = 'lance') out.",
        ) from problem
    finally:
        shutil.rmtree(part, ignore_errors=True)
