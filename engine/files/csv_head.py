"""Reads the beginning of a CSV text: the delimiter, the lines before the header, the names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from blendfusion.errors import QueryError

_DELIMITERS = ",;\t|"
_BLANKS = " \t\r\n,;|"
_MOST_TITLE_LINES = 10
_COMPARED_ROWS = 20
_STATED = re.compile(r'("?)sep=([^\w\s"]|\t)\1\r?\n', re.IGNORECASE)
_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d[\d.,]*%?\s*")
"""A cell that names no column."""


@dataclass(frozen=True, slots=True)
class Head:
    """How a CSV text begins."""

    delimiter: str
    names: tuple[str, ...]
    before: str = ""
    """The lines before the header: comments, a title."""


def head_of(
    text: str, delimiter: str | None = None, *, quote: str = '"', is_cut: bool = False
) -> Head:
    """The head of a text, or of the beginning of a text that ``is_cut``. ``delimiter`` None: a
    comma, unless the header has none and another one instead, or all records have as many cells by
    another one, and more, or the first line states it."""
    text = text.removeprefix("\ufeff")
    line, stated = stated_delimiter(text)
    delimiter = delimiter or stated
    before = line + _before_header(text[len(line) :], delimiter, is_cut)
    rest = text[len(before) :]
    chosen = delimiter or delimiter_of(rest, is_cut)
    return Head(chosen, tuple(first_record(rest, chosen, quote)), before)


def stated_delimiter(text: str) -> tuple[str, str | None]:
    """The first line of a text and the delimiter, where the line states it as Excel reads it:
    "sep=;". ("", None): it does not."""
    found = _STATED.match(text)
    return (found[0], found[2]) if found else ("", None)


def first_record(text: str, delimiter: str, quote: str = '"') -> list[str]:
    """The cells of the first record of a text; none where there is none."""
    return next(_records(text.removeprefix("\ufeff"), delimiter, quote), [])


def delimiter_of(text: str, is_cut: bool = False) -> str:
    """The delimiter of a text: see ``head_of``."""
    line = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").split("\n", 1)[0])
    likely = max(_DELIMITERS, key=lambda d: (d == "," and "," in line, line.count(d)))
    found = {
        d: _whole_records(text, d, is_cut)
        for d in dict.fromkeys((likely, *_DELIMITERS))
        if d in line
    }
    alike = [d for d, records in found.items() if _are_alike(records)]
    return max(alike, key=lambda d: len(found[d][0]), default=likely)


def _whole_records(text: str, delimiter: str, is_cut: bool) -> list[list[str]]:
    """The first records of a text that are whole."""
    records = list(islice(_records(text, delimiter), _COMPARED_ROWS))
    return records[:-1] if is_cut and 1 < len(records) < _COMPARED_ROWS else records


def _are_alike(records: Sequence[Sequence[str]]) -> bool:
    return len({len(record) for record in records}) < 2


def _records(text: str, delimiter: str, quote: str = '"') -> Iterator[list[str]]:
    """The records of a text, without blank lines; the last one may be cut."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote)
    try:
        yield from (record for record in reader if record)
    except csv.Error:  # a cell of more than 128 KB
        return


def _before_header(text: str, delimiter: str | None, is_cut: bool) -> str:
    """The lines before the header of a text: comments that begin with ``#``, or lines of one cell,
    where the first line with more cells looks like names, and all records below have as many."""
    lines = text.splitlines(keepends=True)
    for count in range(1, min(_MOST_TITLE_LINES, len(lines) - 1) + 1):
        before = "".join(lines[:count])
        if before.count('"') % 2 or not all(map(_is_apart, lines[:count], [delimiter] * count)):
            if lines[count - 1].startswith("#"):
                continue
            return ""
        if _is_apart(lines[count], delimiter):
            continue
        rest = "".join(lines[count:])
        return before if _is_header(lines[:count], rest, delimiter, is_cut) else ""
    return ""


def _is_apart(line: str, delimiter: str | None) -> bool:
    """Whether a line may stand before a header: blank, a comment, or of one cell."""
    line = line.strip()
    if not line or line.startswith("#"):
        return True
    chosen = delimiter or delimiter_of(line)
    cells = first_record(line, chosen)
    return len([cell for cell in cells if cell.strip()]) < 2 and not line.startswith('"')


def _is_header(before: Sequence[str], rest: str, delimiter: str | None, is_cut: bool) -> bool:
    """Whether ``rest`` begins with names of columns, rather than the first line ``before``."""
    chosen = delimiter or delimiter_of(rest, is_cut)
    records = _whole_records(rest, chosen, is_cut)
    names, rows = records[0], records[1:]
    if len(names) < 2 or not _are_alike(records) or not _are_names(names):
        return False
    if len(rows) < (2 if all(line.strip(_BLANKS) and line[0] != "#" for line in before) else 1):
        return False
    last = next(line for line in reversed(before) if line.strip())
    cells = first_record(last.strip(), chosen)
    if len(cells) != len(names) or len([cell for cell in cells if cell.strip()]) < 2:
        return True
    prose = last.startswith(("# ", "##")) and all(cell[:1] in ("", " ") for cell in cells[1:])
    return last.startswith("#") and (prose or _is_typed(names, rows))


def _are_names(cells: Sequence[str]) -> bool:
    return (
        all(cell.strip() and not _NUMBER.fullmatch(cell) for cell in cells)
        and not any(cell.startswith(" ") for cell in cells[1:])
        and len(set(cells)) == len(cells)
    )


def _is_typed(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether a column of numbers stands below the ``names``."""
    columns = zip(*(row for row in rows if len(row) == len(names)), strict=True)
    return any(all(map(_NUMBER.fullmatch, column)) for column in columns)


def check_names(names: Sequence[str], place: str) -> None:
    """Raises QueryError for columns of one name, which DataFusion would read as one."""
    counts = Counter(names)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        *others, last = map(repr, twice)
        shown = f"{', '.join(others)} and {last}" if others else last
        least = "two" if max(counts.values()) == 2 else "several"
        raise QueryError(
            f"'{place}' has {least} columns {shown}",
            hint="Rename them in the first line of the file: one name a column.",
        )
