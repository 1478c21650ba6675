"""Writes rows as Markdown, HTML and lines of names and values, as they come.

Text of the data stays text: it becomes neither markup nor what a terminal obeys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import IO

import pyarrow as pa

from blendfusion.files.python_values import python_rows
from blendfusion.files.row_writers import ROW_WRITERS, text_of
from blendfusion.redaction import printable


def write_markdown(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write a table of Markdown, with numbers aligned to the right."""
    for number, table in enumerate(tables):
        if not number:
            rules = ["---:" if is_number(kind) else "---" for kind in table.schema.types]
            _write(file, _markdown_row(table.column_names))
            _write(file, f"| {' | '.join(rules)} |\n")
        for row in rows_of(table):
            _write(file, _markdown_row(row))


def write_html(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write a table of HTML."""
    for number, table in enumerate(tables):
        if not number:
            heads = "".join(f'<th scope="col">{_html(name)}</th>' for name in table.column_names)
            _write(file, f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n")
        for row in rows_of(table):
            cells = "".join(
                "<td></td>" if value is None else f"<td>{_html(text_of(value))}</td>"
                for value in row
            )
            _write(file, f"<tr>{cells}</tr>\n")
    _write(file, "</tbody>\n</table>\n")


def write_lines(tables: Iterable[pa.Table], file: IO[bytes]) -> None:
    """Write each value on a line, ``name = value``, and an empty line between two rows."""
    begun = False
    for table in tables:
        names = [printable(name) for name in table.column_names]
        width = max(map(len, names), default=0)
        for row in rows_of(table):
            lines = [
                f"{name:>{width}} = {_line(value)}\n"
                for name, value in zip(names, row, strict=True)
            ]
            _write(file, "\n" * begun + "".join(lines))
            begun = True


PAGE_WRITERS = {"markdown": write_markdown, "html": write_html, "line": write_lines}
"""By the format, as ``ROW_WRITERS``."""

WRITERS = ROW_WRITERS | PAGE_WRITERS
"""All formats that are written as rows come."""


def rows_of(table: pa.Table) -> Iterator[tuple[object, ...]]:
    """The rows of a table; names may be there twice."""
    for batch in table.to_batches(max_chunksize=4096):
        yield from python_rows(batch, " ")


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type stand at the right of a column."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _markdown_row(values: Iterable[object]) -> str:
    return f"| {' | '.join(map(_markdown, values))} |\n"


def _markdown(value: object) -> str:
    if value is None:
        return ""
    text = printable(text_of(value).replace("\r\n", "\n"))
    for mark in "\\`*_[]<|":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("&", "&amp;").replace("\n", "<br>")


def _html(text: str) -> str:
    return escape(printable(text.replace("\r\n", "\n")))


def _line(value: object) -> str:
    return "NULL" if value is None else printable(" ".join(text_of(value).split()))


def _write(file: IO[bytes], text: str) -> None:
    file.write(text.encode("utf-8", "backslashreplace"))
