"""A CSV file as it is read: its beginning, and a copy of it where DataFusion cannot read the file
itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from blendfusion.files.csv_head import (
    Head,
    delimiter_of,
    first_record,
    head_of,
    stated_delimiter,
)
from blendfusion.files.csv_lines import CsvFile
from blendfusion.files.formats import Format, format_of
from blendfusion.files.texts import HEAD_BYTES, check_utf8, encoding_of, read_head, write_utf8
from blendfusion.places.folders import File
from blendfusion.places.notes import note

_SHOWN = 60


@dataclass(frozen=True)
class CsvOptions:
    """How CSV files are read."""

    delimiter: str | None = None
    """None: found in the header of each file."""
    encoding: str | None = None
    """Python's name; None: UTF-8, or as the mark at the beginning of a file says."""
    has_header: bool = True
    quote: str = '"'
    comment: str | None = None
    """The sign that begins lines which are no records."""
    format: Format | None = None
    """None: by the name of each file."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """DataFusion's further options."""

    def format_of(self, file: File) -> Format:
        """The extension and the compression of a file."""
        return self.format or format_of(file.name)


@dataclass(frozen=True)
class CsvSource:
    """A file, its beginning, and where its records are found again."""

    file: File
    """The file that DataFusion reads."""
    head: Head
    text: CsvFile

    @property
    def name(self) -> str:
        """The file as the user knows it."""
        return self.text.name

    @property
    def is_copy(self) -> bool:
        return bool(self.text.shown)


def open_csv(file: File, options: CsvOptions, new_folder: Callable[[], Path]) -> CsvSource:
    """``file`` as it is read: in UTF-8, from its header on. Warns of lines before the header.
    Raises QueryError for a header in another encoding."""
    start = read_head(file.url)
    encoding = options.encoding or encoding_of(start)
    text = start.decode(encoding or "utf-8", "replace")
    head = _head(text, options, is_cut=len(start) == HEAD_BYTES)
    if encoding is None and any("\ufffd" in name for name in head.names):
        check_utf8(file.url, start)
    if encoding is None and not head.before:
        return CsvSource(file, head, _csv_file(file.url, head, options))
    copy = new_folder() / "text.csv"
    write_utf8(file.url, copy, encoding, len(head.before))
    before = head.before.strip().splitlines()
    if before:
        note(f"'{file.url}': the lines before its header are left out: {before[0][:_SHOWN]!r}")
    made = _csv_file(str(copy), head, options)
    copied = replace(made, shown=file.url, lines_before=len(head.before.splitlines()))
    return CsvSource(File(str(copy), copy.stat().st_size, file.folders), head, copied)


def _csv_file(place: str, head: Head, options: CsvOptions) -> CsvFile:
    escape = options.others.get("escape")
    return CsvFile(place, head.delimiter, options.quote, escape=escape, comment=options.comment)


def _head(text: str, options: CsvOptions, *, is_cut: bool) -> Head:
    if options.comment is not None:
        lines = text.splitlines(keepends=True)
        text = "".join(line for line in lines if not line.startswith(options.comment))
    if options.has_header:
        return head_of(text, options.delimiter, quote=options.quote, is_cut=is_cut)
    line, stated = stated_delimiter(text.removeprefix("\ufeff"))
    text = text.removeprefix("\ufeff")[len(line) :]
    delimiter = options.delimiter or stated or delimiter_of(text, is_cut)
    cells = first_record(text, delimiter, options.quote)
    return Head(delimiter, tuple(f"column_{n}" for n in range(1, len(cells) + 1)), line)
