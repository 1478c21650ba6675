"""Finds a quote in a CSV text that is never closed: all behind it would be one value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import IO

from blendfusion.errors import QueryError

_MOST_BYTES = 1 << 26
"""The part of a table's files that is looked at: 0.1 s."""


def check_quotes(
    files: Iterable[tuple[str, AbstractContextManager[IO[bytes]]]], delimiter: str
) -> None:
    """Raise QueryError for a file, given by its name and its content, with an open quote."""
    room = _MOST_BYTES
    for name, content in files:
        with content as stream:
            text = stream.read(room + 1)
        room -= len(text)
        if room < 0:
            return
        if text.count(b'"') % 2:
            line = _open_line(text.decode("utf-8", "replace"), delimiter)
            if line is not None:
                raise QueryError(
                    f"'{name}': the quote that opens on line {line} is not closed",
                    hint='A value that begins with a quote ends with one, and doubles those inside: "5"" wide".',
                )


def _open_line(text: str, delimiter: str) -> int | None:
    """The line of the open quote, from 1; None if there is none: a quote inside a value that does
    not begin with one is a character as any other."""
    between = rf"{re.escape(delimiter)}\r\n"
    fields = re.compile(rf'"(?:[^"]++|"")*+"[^{between}]*+|(?P<open>")|[^"{between}][^{between}]*+')
    found = next((field for field in fields.finditer(text) if field["open"]), None)
    return None if found is None else text.count("\n", 0, found.start()) + 1
