"""Converts files that DataFusion does not read as they are: standard input, text in UTF-16, and
JSON that is not one object a line."""

from __future__ import annotations

import codecs
import json
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.row_writers import json_text

_MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"PK\3\4": ".xlsx"}
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_NO_SPACE = re.compile(r"\S")
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # which begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def folder_of(owner: object) -> Path:
    """A folder for files that last as long as ``owner``."""
    folder = tempfile.mkdtemp(prefix="blendfusion")
    weakref.finalize(owner, shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


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


def encoding_of(head: bytes) -> str | None:
    """The encoding that the mark at the beginning of a text names; None for UTF-8."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def are_lines(head: bytes) -> bool:
    """Whether JSON has one object a line, by the beginning of its text."""
    first = head.lstrip().split(b"\n", 1)[0].rstrip()
    return first.startswith(b"{") and first.endswith(b"}")


def json_lines(content: bytes, source: str) -> bytes:
    """Objects, one behind the other or in arrays, as one a line. A name with values of several
    kinds, such as numbers and text, has text. Raises QueryError for other JSON, and ValueError for
    text that is not JSON."""
    rows = list(_objects(content.decode("utf-8-sig"), source))
    if not rows:
        raise QueryError(f"'{source}' holds no row", hint="A table needs the names of its columns.")
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                kinds.setdefault(name, set()).add(_KIND_OF.get(type(value), "nested"))
    mixed = {name for name, found in kinds.items() if len(found) > 1}
    for row in rows if mixed else ():
        for name in mixed & row.keys():
            row[name] = None if row[name] is None else _as_text(row[name])
    return "".join(json_text(row) + "\n" for row in rows).encode()


_KIND_OF = {bool: "boolean", int: "number", float: "number", str: "text", list: "list"}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _objects(text: str, source: str) -> Iterator[dict[str, object]]:
    decoder, at = json.JSONDecoder(), 0
    while (start := _NO_SPACE.search(text, at)) is not None:
        value, at = decoder.raw_decode(text, start.start())
        for row in value if isinstance(value, list) else [value]:
            if not isinstance(row, dict):
                raise QueryError(
                    f"'{source}' holds JSON that is no table",
                    hint="A table is an array of objects, or one object a line.",
                )
            yield row
