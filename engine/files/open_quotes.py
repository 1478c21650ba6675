"""Finds a quote in a CSV text that is never closed: all behind it would be one value."""

from __future__ import annotations

import re
from collections.abc import Iterable

from blendfusion.errors import QueryError
from blendfusion.files.csv_lines import CsvFile
from blendfusion.files.texts import open_text
from blendfusion.places.remote import scheme_of

_MOST_BYTES = 1 << 26
"""The part of a table's files that is looked at: 0.1 s."""


def check_quotes(files: Iterable[CsvFile]) -> None:
    """Raise QueryError for a file with an open quote."""
    room = _MOST_BYTES
    for file in (file for file in files if scheme_of(file.place) is None):
        with open_text(file.place) as stream:
            text = stream.read(room + 1)
        room -= len(text)
        if room < 0:
            return
        if file.escape is not None or text.count(file.quote.encode()) % 2:
            line = _open_line(text.decode("utf-8", "replace"), file)
            if line is not None:
                raise QueryError(
                    f"'{file.name}': the quote that opens on line {line + file.lines_before} is not closed",
                    hint='A value that begins with a quote ends with one, and doubles those inside: "5"" wide".',
                )


def _open_line(text: str, file: CsvFile) -> int | None:
    """The line of the open quote, from 1; None if there is none: a quote inside a value that does
    not begin with one is a character as any other."""
    between, quote = rf"{re.escape(file.delimiter)}\r\n", re.escape(file.quote)
    escape = "" if file.escape is None else re.escape(file.escape)
    escaped = rf"{quote}{quote}" + (rf"|{escape}[\s\S]" if escape else "")
    inside = rf"[^{quote}{escape}]*+"
    comment = "" if file.comment is None else rf"(?m:^{re.escape(file.comment)}.*+)|"
    fields = re.compile(
        rf"{comment}{quote}{inside}(?:(?:{escaped}){inside})*{quote}(?!{quote})[^{between}]*+"
        rf"|(?P<open>{quote})|[^{quote}{between}][^{between}]*+"
    )
    found = next((field for field in fields.finditer(text) if field["open"]), None)
    return None if found is None else text.count("\n", 0, found.start()) + 1
