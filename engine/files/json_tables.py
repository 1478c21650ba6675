"""JSON files as a table: copies of them where a column of DataFusion would not keep their values.

DataFusion finds the columns in the rows that it is told to look at. A key that comes later is no
column, and the fraction of a number that comes later is cut off, both without a word. So it looks
at all rows, whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.errors import QueryError
from blendfusion.files.conversions import are_lines, json_lines, json_rows
from blendfusion.files.formats import Format, format_of
from blendfusion.files.json_kinds import Kinds, need_conversion
from blendfusion.files.parts import Form, Table, parts_of
from blendfusion.files.texts import UNREADABLE, encoding_of, open_text, read_bytes, read_head
from blendfusion.places.folders import File, Listing

ALL_ROWS = {"schema_infer_max_records": 1 << 62}
"""The rows in which DataFusion finds the columns, as its methods have it."""
JSON_BYTES = 1 << 20
"""The text of a JSON file that is searched for values of several kinds."""
_CONVERTED_BYTES = 1 << 28
"""The largest files that are converted for their sake."""
_BLOCK = 1 << 24
_LONG_NUMBER = r"[:\[,\s]-?[0-9]{16,}[\s,\]}]"
"""A whole number that a column of numbers with fractions may round."""
_LONGEST = 1 << 10
"""The digits of a number that are found where two blocks meet."""


def json_table(
    listing: Listing,
    new_folder: Callable[[], Path],
    encoding: str | None = None,
    format: Format | None = None,  # noqa: A002 - of ``CsvOptions``, too
) -> Table:
    """The table of the JSON files of ``listing``, or of copies that DataFusion reads: in UTF-8,
    with one object a line, and with one kind of values under one name. ``format`` None: by the name
    of each file."""

    def form_of(file: File) -> tuple[Format, Form]:
        own = (None if is_copied else format) or format_of(file.name)
        return own, Form("json", own.extension, own.compression, schema, options=ALL_ROWS)

    files, read, schema = listing.files, listing, None
    heads = [read_head(file.url) for file in files]
    encodings = [encoding or encoding_of(head) for head in heads]
    is_copied = any(encodings) or not all(map(are_lines, heads)) or _are_mixed(listing)
    if is_copied:
        read, schema = _copies(listing, encodings, new_folder())
    return Table(listing, parts_of(read, read.files, form_of), None, new_folder)


def _copies(
    listing: Listing, encodings: Sequence[str | None], folder: Path
) -> tuple[Listing, pa.Schema | None]:
    """Copies of the files, and their columns where DataFusion does not find them."""
    files, kinds, copies = listing.files, Kinds(), []

    def rows(number: int) -> Iterator[dict[str, object]]:
        read = read_bytes(files[number].url)
        encoding = encodings[number]
        text = read if encoding is None else read.decode(encoding).encode()
        return json_rows(text, files[number].url)

    for number in range(len(files)):
        for row in rows(number):
            kinds.note(row)
    for number, file in enumerate(files):
        copy = folder / f"{number:06}.json"
        copy.write_bytes(json_lines(rows(number), kinds))
        copies.append(File(str(copy), copy.stat().st_size, file.folders))
    whole = tuple(copy.path.name for copy in copies)
    schema = pa.schema([*kinds.type]) if kinds.have_gaps() else None
    return Listing(listing.place, str(folder), tuple(copies), whole), schema


def _are_mixed(listing: Listing) -> bool:
    """Whether values of JSON lines need a conversion: those of the first lines, or long numbers in
    any line. Raises QueryError for files that are too large for it."""
    files = listing.files
    room = JSON_BYTES // len(files)
    heads = [line for file in files for line in whole_lines(read_head(file.url, room), room)]
    if not need_conversion(heads, len(files)):
        if not any(_has_long_numbers(file) for file in files):
            return False
        if not need_conversion(_lines(files), len(files)):
            return False
    if sum(file.size for file in files) <= _CONVERTED_BYTES:
        return True
    raise QueryError(
        f"'{listing.place}' has values of several kinds under one name, or numbers of more digits "
        f"than a column of numbers keeps, and more than {_CONVERTED_BYTES >> 20} MB to be converted",
        hint="Name the types: CREATE EXTERNAL TABLE t (id DECIMAL(38, 0)) STORED AS JSON LOCATION "
        f"'{listing.place}'.",
    )


def whole_lines(head: bytes, room: int) -> Sequence[bytes]:
    """The whole lines of the beginning of a text, of at most ``room`` bytes."""
    lines = head.splitlines()
    return lines[:-1] if len(head) == room else lines


def _lines(files: Sequence[File]) -> Iterator[bytes]:
    for file in files:
        with open_text(file.url) as text:
            rest = b""
            while block := text.read(_BLOCK):
                *lines, rest = (rest + block).split(b"\n")
                yield from lines
            yield rest


def _has_long_numbers(file: File) -> bool:
    rest = b""
    try:
        with open_text(file.url) as text:
            while block := text.read(_BLOCK):
                part = rest + block
                found = pc.find_substring_regex(pa.scalar(part, pa.large_binary()), _LONG_NUMBER)
                if found.as_py() >= 0:
                    return True
                rest = part[-_LONGEST:]
    except UNREADABLE:  # DataFusion says why
        return False
    return False
