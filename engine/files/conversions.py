"""Converts files that DataFusion does not read as they are: standard input, and JSON that is not
one object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.json_kinds import Kinds
from blendfusion.files.row_writers import json_text
from blendfusion.places.private_folder import private_folder

_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".xlsx"}
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
PREFIX = "blendfusion-files-"
"""The beginning of the names of temporary folders."""
_NO_SPACE = re.compile(r"\S")


def folder_of(owner: object) -> Path:
    """A folder for temporary files, which is deleted with ``owner``."""
    return private_folder(owner, PREFIX)


def standard_input_file(content: bytes, folder: Path) -> Path:
    """A file of ``content``, decompressed, whose extension says what it begins like. Raises
    QueryError if there is nothing."""
    for magic, compression in _COMPRESSIONS.items():
        if content.startswith(magic):
            content = pa.CompressedInputStream(pa.BufferReader(content), compression).read()
    if not content.strip():
        raise QueryError("standard input is empty", hint="A table needs the names of its columns.")
    found = (extension for magic, extension in _MAGIC.items() if content.startswith(magic))
    text = ".json" if content.lstrip()[:1] in (b"[", b"{") else ".csv"
    file = folder / f"standard input{next(found, text)}"
    file.write_bytes(content)
    return file


def are_lines(head: bytes) -> bool:
    """Whether JSON has one object a line, by the beginning of its text."""
    first = head.lstrip().split(b"\n", 1)[0].rstrip()
    return first.startswith(b"{") and first.endswith(b"}")


def json_rows(content: bytes, source: str) -> Iterator[dict[str, object]]:
    """The objects of a text, one behind the other or in arrays. Raises QueryError for other JSON,
    and ValueError for text that is not JSON."""
    decoder, text, at, row = json.JSONDecoder(), content.decode("utf-8-sig"), 0, None
    while (start := _NO_SPACE.search(text, at)) is not None:
        value, at = decoder.raw_decode(text, start.start())
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                raise QueryError(
                    f"'{source}' holds JSON that is no table",
                    hint="A table is an array of objects, or one object a line.",
                )
            yield row
    if row is None:
        raise QueryError(f"'{source}' holds no row", hint="A table needs the names of its columns.")


def json_lines(rows: Iterable[dict[str, object]], kinds: Kinds) -> bytes:
    """Rows as one object a line; ``kinds`` are those of all rows of the table."""
    return "".join(json_text(kinds.as_one(row)) + "\n" for row in rows).encode()
