"""Text files: their compression and their encoding."""

from __future__ import annotations

import codecs
import lzma
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path, PurePath
from typing import IO, cast

import pyarrow as pa

from blendfusion.errors import QueryError, by_surface, close_matches
from blendfusion.places.remote import open_object, scheme_of

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
"""The compressions of text files."""
HEAD_BYTES = 1 << 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # which begins as that of UTF-16 does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
UNREADABLE = (OSError, EOFError, lzma.LZMAError, pa.ArrowException)
"""The errors of a file that is not there, or not compressed as its name says."""
_USUAL = ("latin-1", "cp1252", "cp1250", "cp1251", "utf-16", "utf-8", "gb18030", "shift_jis", "big5", "mac-roman")  # fmt: skip


def encoding_of(head: bytes) -> str | None:
    """The encoding that the mark at the beginning of a text names; None for UTF-8."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def check_encoding(name: str | None) -> str | None:
    """The encoding called ``name`` in Python; None for UTF-8. Raises QueryError for an unknown
    one."""
    if name is None:
        return None
    try:
        known = codecs.lookup(name)
    except LookupError as problem:
        hint = close_matches(name, _USUAL) or f"For example {', '.join(_USUAL[:4])}."
        raise QueryError(f"unknown encoding '{name}'", hint=hint) from problem
    return None if known.name in ("utf-8", "utf-8-sig") else known.name


def open_text(file: str | Path) -> AbstractContextManager[IO[bytes]]:
    """The bytes of a file, at a path or in an object store, decompressed as its extension says, in
    any letter case."""
    compression = COMPRESSIONS.get(PurePath(file).suffix.lower())
    codec = "bz2" if compression == "bzip2" else compression  # pyarrow's name for it
    if scheme_of(str(file)) is not None:
        return open_object(str(file), codec)
    if compression == "xz":
        return lzma.open(file)
    stream = pa.input_stream(str(file), compression=codec)
    return cast("AbstractContextManager[IO[bytes]]", stream)


def read_head(file: str | Path, size: int = HEAD_BYTES) -> bytes:
    """The first bytes of a text file, decompressed; nothing where they cannot be read."""
    try:
        with open_text(file) as stream:
            head: bytes = stream.read(size)
    except UNREADABLE:
        return b""
    return head


def read_bytes(file: str | Path) -> bytes:
    """The content of a text file, decompressed."""
    with open_text(file) as stream:
        content: bytes = stream.read()
    return content


def text_of(file: str | Path) -> str:
    """The text of a file in UTF-8, or as the mark at its beginning says. Raises QueryError for
    bytes that the encoding lacks."""
    return "".join(_decode(file, encoding_of(read_head(file, 4))))


def write_utf8(file: str | Path, to: Path, encoding: str | None, less: int = 0) -> None:
    """Write the text of ``file``, in ``encoding`` (None: UTF-8), to ``to`` in UTF-8, without its
    first ``less`` characters, a block at a time. Raises QueryError for bytes that the encoding
    lacks."""
    with to.open("wb") as target:
        for text in _decode(file, encoding):
            target.write(text[less:].encode())
            less = max(0, less - len(text))


def _decode(file: str | Path, encoding: str | None) -> Iterator[str]:
    """The text of a file, in blocks."""
    decoder, line = codecs.getincrementaldecoder(encoding or "utf-8-sig")(), 1
    with open_text(file) as stream:
        while True:
            block = stream.read(HEAD_BYTES)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeDecodeError as wrong:
                line += wrong.object[: wrong.start].count(b"\n")
                raise not_encoded(file, encoding, line) from wrong
            line += text.count("\n")
            yield text
            if not block:
                return


def not_encoded(file: str | Path, encoding: str | None, line: int) -> QueryError:
    """The error of a text with bytes on ``line`` that its encoding lacks."""
    return QueryError(
        f"'{file}' is not {encoding or 'UTF-8'}: see line {line}",
        hint="Name its encoding: "
        + by_surface("register_file(path, encoding='latin-1')", "--encoding latin-1")
        + ". Or convert it: "
        f"iconv -f LATIN1 -t UTF-8 '{file}' > utf8{PurePath(file).suffix}",
    )


def check_utf8(file: str | Path, head: bytes) -> None:
    """Raises QueryError if the beginning of a file is not UTF-8."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as wrong:
        raise not_encoded(file, None, head.count(b"\n", 0, wrong.start) + 1) from wrong


def wrong_bytes(file: Path) -> int | None:
    """The first line of a text that is not UTF-8, from 1; None for one that is."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    try:
        with open_text(file) as stream:
            block = stream.read(HEAD_BYTES)
            while True:
                try:
                    line += decoder.decode(block, final=not block).count("\n")
                except UnicodeDecodeError as wrong:
                    before: bytes = wrong.object[: wrong.start]
                    return line + before.count(b"\n")
                if not block:
                    return None
                block = stream.read(HEAD_BYTES)
    except (OSError, pa.ArrowException):
        return None
