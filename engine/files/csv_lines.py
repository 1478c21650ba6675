"""The lines of records in CSV files: DataFusion counts records, and those of a part of a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from blendfusion.datafusion.file_errors import CsvRecordError
from blendfusion.files.texts import open_text


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file in UTF-8, as it is read."""

    place: str
    delimiter: str
    quote: str = '"'
    shown: str = ""
    """The file that it was made from."""
    lines_before: int = 0
    """The lines of that file before its own."""
    escape: str | None = None
    """The sign before a quote inside of a quoted value; None: it is doubled."""
    comment: str | None = None
    """The sign that begins lines which are no records."""

    @property
    def name(self) -> str:
        return self.shown or self.place


@dataclass(frozen=True, slots=True)
class Place:
    """A record of a file."""

    file: CsvFile
    line: int
    """Where it begins, from 1."""
    cells: int


def place_error(error: BaseException, files: Iterable[Sequence[CsvFile]]) -> None:
    """Give an error of a record in one of the tables of ``files`` its line, if it is found."""
    if isinstance(error, CsvRecordError):
        found = find_record([file for table in files for file in table], error.is_of)
        if found is not None:
            error.place(found.line, found.file.name)


def find_record(
    files: Sequence[CsvFile], wanted: Callable[[Sequence[str], int], bool]
) -> Place | None:
    """The first record that is ``wanted``, by its cells and the number of names in the header of
    its file; None if there is none, or none can be found."""
    for file in files:
        try:
            names = 0
            for line, cells in _records(file):
                names = names or len(cells)
                if wanted(cells, names):
                    return Place(file, line + file.lines_before, len(cells))
        except (csv.Error, OSError, ValueError):
            continue
    return None


def _records(file: CsvFile) -> Iterator[tuple[int, list[str]]]:
    """The records of a file that are not blank, each with its first line."""
    with open_text(file.place) as stream:
        text = io.TextIOWrapper(cast(Any, stream), "utf-8-sig", "replace", newline="")
        reader = csv.reader(
            text, delimiter=file.delimiter, quotechar=file.quote, escapechar=file.escape
        )
        before = 0
        for cells in reader:
            if cells:
                yield before + 1, cells
            before = reader.line_num
