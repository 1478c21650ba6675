"""Problems of CSV and JSON files, from DataFusion's messages: the place, and what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from blendfusion.errors import ExecutionError, by_surface, show_values
from blendfusion.redaction import Redaction

_LENGTHS = re.compile(
    r"Expected (?P<due>\d+) records, found (?P<found>\d+) records at line (?P<line>\d+)"
    r"|incorrect number of fields for line (?P<late>\d+), expected (?P<wanted>\d+) got (?:more than )?(?P<got>\d+)"
)
_VALUE = re.compile(
    r"Error while parsing value '?(?P<value>.*?)'? as type '?(?P<type>\w+)'? for column (?P<column>\d+) "
    r"at line (?P<line>\d+)",
    re.DOTALL,
)
_FIELD = re.compile(
    r"Json error: (?:whilst decoding field '[^']*': )*whilst decoding field '(?P<name>[^']*)': "
    r"(?:expected (?P<due>\w+) got (?P<found>.+)|failed to parse \"(?P<text>.*)\" as (?P<type>\w+))",
    re.DOTALL,
)
INFERRED_ROWS = 100_000
"""Rows of a CSV or JSON file from which the types of its columns are found."""


_EXTENSION = re.compile(r"does not match the expected extension '(?P<due>[^']*)'")


class CsvRecordError(ExecutionError):
    """A record of a CSV file is wrong. DataFusion counts records, of a part of a large file alone,
    where people count lines."""

    due: int | None = None
    """The cells that a record has to have; None: the record is of that length."""
    value: str | None = None
    """The value that is wrong."""
    rest = ""
    """The words behind the place."""

    def is_of(self, cells: Sequence[str], names: int) -> bool:
        """Whether the error is about a record of a file with so many ``names``."""
        if self.due is not None:
            return names == self.due and len(cells) != names
        return self.value in cells

    def place(self, line: int, file: str) -> None:
        """Name the record by the line where it begins and its file."""
        self.reword(f"line {line} of the CSV file '{file}'{self.rest}", self.hint)


def extension_error(text: str) -> ExecutionError | None:
    """The error of a file with another ending than its reader expects, or None if ``text`` is about
    something else."""
    found = _EXTENSION.search(text)
    if found is None:
        return None
    return ExecutionError(
        f"the name of the file does not end in {found['due']}",
        hint=by_surface("session.register_file(path)", "--table PATH")
        + " reads a file by its ending; file_extension='.jsonl' names another one.",
    )


def csv_error(text: str, redaction: Redaction) -> ExecutionError | None:
    """The error of a line of a CSV file, or None if ``text`` is about something else."""
    found = _LENGTHS.search(text)
    if found is not None:
        line = found["line"] or found["late"]
        count, due = found["found"] or found["got"], found["due"] or found["wanted"]
        hint = (
            'A value that holds the delimiter or a line break is written in double quotes: "a, b".'
        )
        if count == due and line == "1":
            return ExecutionError(
                f"line 1 of the CSV file has more fields than its {due} columns",
                hint=f"Columns of one name in the header count as one: rename them. {hint}",
            )
        held = "more" if count == due else count
        rest = f": {held} fields, where the lines before have {due}"
        error = CsvRecordError(f"line {line} of the CSV file{rest}", hint=hint)
        error.due, error.rest = int(due), rest
        return error
    found = _VALUE.search(text)
    if found is None:
        return None
    # DataFusion counts here from the first line behind the header, or of a part of a large file.
    line = int(found["line"]) + 1
    hint = (
        f"A column has the type of its first {INFERRED_ROWS:,} values. To name it yourself: CREATE EXTERNAL "
        "TABLE t (id BIGINT, code TEXT) STORED AS CSV LOCATION 'file.csv' OPTIONS ('format.has_header' 'true')."
    )
    shown = redaction.quote(found["value"])
    rest = f": {shown} in column {int(found['column']) + 1} is not {found['type']}"
    error = CsvRecordError(
        f"line {line} of the CSV file (of a part of it, above 10 MB){rest}",
        hint=f"{hint} {show_values(redaction)}".rstrip(),
    )
    error.value, error.rest = found["value"], rest
    return error


def json_error(text: str, redaction: Redaction) -> ExecutionError | None:
    """The error of a value of a JSON file, or None if ``text`` is about something else."""
    found = _FIELD.search(text)
    if found is None:
        return None
    name, value = found["name"], found["found"] or found["text"]
    return ExecutionError(
        f"column {name!r} of the JSON file: {redaction.quote(value)} is no {found['due'] or found['type']}",
        hint="A column has one type, and some of its values are of another kind. Make all of them text: "
        f"jq -c '.{name} |= tostring' file.jsonl > text.jsonl. {show_values(redaction)}".rstrip(),
    )
