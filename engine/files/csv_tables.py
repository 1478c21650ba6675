"""CSV files as a table: those with other columns, or in another order, are put together by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionConfig, SessionContext

from blendfusion.datafusion.file_errors import INFERRED_ROWS
from blendfusion.errors import QueryError
from blendfusion.files.csv_files import CsvOptions, CsvSource, open_csv
from blendfusion.files.csv_head import check_names
from blendfusion.files.csv_lines import find_record
from blendfusion.files.csv_types import ColumnTypes, type_of_kinds
from blendfusion.files.formats import Format
from blendfusion.files.open_quotes import check_quotes
from blendfusion.files.parts import Form, Table, parts_of
from blendfusion.files.quoted_breaks import has_quoted_break
from blendfusion.files.texts import open_text
from blendfusion.files.united_types import column_keys
from blendfusion.places.folders import File, Listing
from blendfusion.places.notes import note_columns
from blendfusion.places.remote import open_store

_SAMPLED_FILES = 64
_CUT_BYTES = 10 << 20
"""DataFusion cuts larger files into ranges of bytes."""
_COPY = Format("csv", ".csv")


@dataclass(frozen=True)
class _Group:
    """The files of a table that begin alike."""

    sources: list[CsvSource]
    format: Format

    @property
    def names(self) -> tuple[str, ...]:
        return self.sources[0].head.names


def csv_table(listing: Listing, options: CsvOptions, new_folder: Callable[[], Path]) -> Table:
    """The table of the CSV files of ``listing``. Raises QueryError, with the file and the line, for
    what is no table."""
    sources = [open_csv(file, options, new_folder) for file in listing.files]
    for source in sources:
        check_names(source.head.names, source.name)
    _check_alike(sources)
    check_quotes([source.text for source in sources])
    groups = _group(sources, options)
    key_of = column_keys(source.head.names for source in sources)
    readers = {key: _form(group, options) for key, group in groups.items()}
    kinds = _kinds(groups, readers)
    schema = _unite(groups, kinds, key_of)
    note_columns(listing.place, [(s.name, s.head.names) for s in sources], key_of)
    keys = {s.file.url: key for key, group in groups.items() for s in group.sources}
    forms = {
        key: _with_types(readers[key], group.names, schema, key_of) for key, group in groups.items()
    }
    if any(source.is_copy for source in sources):
        listing = replace(listing, passed=())
    files = [source.file for source in sources]
    parts = parts_of(listing, files, lambda file: (keys[file.url], forms[keys[file.url]]))
    texts = tuple(source.text for source in sources)
    return Table(listing, parts, schema, new_folder, texts)


def _check_alike(sources: Sequence[CsvSource]) -> None:
    """Raises QueryError for a file that shares no column with the first one."""
    first, *others = sources
    known = {name.lower() for name in first.head.names}
    for source in others:
        if known.isdisjoint(name.lower() for name in source.head.names):
            line = source.head.delimiter.join(source.head.names)
            raise QueryError(
                f"'{source.name}' and '{first.name}' have no column in common: the first line of"
                f" '{source.name}' is {line[:80]!r}",
                hint="Each file of a table begins with the names of its columns. Of two tables, "
                "a pattern names the files of one: 'folder/sales*.csv'.",
            )


def _group(sources: Sequence[CsvSource], options: CsvOptions) -> dict[Hashable, _Group]:
    """The sources that begin alike, by what is alike."""
    groups: dict[Hashable, _Group] = {}
    for source in sources:
        own = _COPY if source.is_copy else options.format_of(source.file)
        key = source.head.delimiter, source.head.names, own
        groups.setdefault(key, _Group([], own)).sources.append(source)
    return groups


def _form(group: _Group, options: CsvOptions) -> Form:
    """How the files of a group are read, but for their columns."""
    own = dict(options.others) | {
        "delimiter": group.sources[0].head.delimiter,
        "quote": options.quote,
        "has_header": options.has_header,
        "newlines_in_values": stay_whole(
            [source.file for source in group.sources],
            options.quote,
            is_compressed=group.format.compression is not None,
            escape=options.others.get("escape"),
        ),
    }
    null_texts = own.pop("null_regex", None)
    return Form(
        "csv",
        group.format.extension,
        group.format.compression,
        options=own,
        null_texts=null_texts or None,
    )


def stay_whole(
    files: Sequence[File], quote: str, *, is_compressed: bool, escape: str | None = None
) -> bool:
    """Whether each of ``files`` must be read whole. Files are cut at the ends of lines only if none
    holds a quoted line break, and if there are fewer files than cores. An ``escape`` hides where
    values end."""
    large = [file for file in files if file.size > _CUT_BYTES and not is_compressed]
    if not large or len(files) >= (os.cpu_count() or 1) > 1:
        return True
    return escape is not None or any(
        "://" in file.url or _has_quoted_break(file.path, quote) for file in large
    )


def _has_quoted_break(file: Path, quote: str) -> bool:
    with open_text(file) as content:
        return has_quoted_break(content, quote)


def _kinds(
    groups: dict[Hashable, _Group], readers: dict[Hashable, Form]
) -> dict[Hashable, ColumnTypes]:
    """The kinds of the values in the columns of each group, by the first rows of files that are
    spread over all."""
    count = sum(len(group.sources) for group in groups.values())
    step = max(1, count // _SAMPLED_FILES)
    rows = INFERRED_ROWS // min(count, _SAMPLED_FILES)
    found = {}
    for key, group in groups.items():
        found[key] = ColumnTypes(group.names)
        chosen = {*group.sources[::step], group.sources[-1]}
        for source in (s for s in group.sources if s in chosen):
            _note_rows(found[key], source, readers[key], rows)
    return found


def _note_rows(types: ColumnTypes, source: CsvSource, reader: Form, rows: int) -> None:
    """Add the first rows of a file to ``types``. Raises QueryError for a record of another
    length."""
    names = source.head.names
    texts = replace(reader, schema=pa.schema([(name, pa.string()) for name in names]))
    context = SessionContext(SessionConfig().with_target_partitions(1))
    if "://" in source.file.url:
        open_store(context, source.file.url)
    try:
        frame = context.read_csv([source.file.address], **texts.arguments({}))
        for batch in frame.execute_stream():
            found = batch.to_pyarrow()
            types.note(_without(found.slice(0, rows), reader.null_texts))
            rows -= found.num_rows
            if rows <= 0:
                return
    except Exception as problem:  # DataFusion's, which counts records
        raise _of_line(source, len(names)) or problem from None


def _without(batch: pa.RecordBatch, null_texts: str | None) -> pa.RecordBatch:
    """Rows of text, with NULL for the texts that stand for it."""
    if null_texts is None:
        return batch
    columns = [column.cast(pa.string()) for column in batch.columns]
    known = [pc.invert(pc.match_substring_regex(column, null_texts)) for column in columns]
    values = [pc.if_else(are, c, None) for are, c in zip(known, columns, strict=True)]
    return pa.RecordBatch.from_arrays(values, names=batch.schema.names)


def _of_line(source: CsvSource, due: int) -> QueryError | None:
    """The error of the first record of a file that has not as many cells as its header."""
    place = find_record([source.text], lambda cells, _: len(cells) != due)
    if place is None:
        return None
    return QueryError(
        f"cannot read '{source.name}' as csv: line {place.line} of the CSV file: {place.cells} "
        f"fields, where the lines before have {due}",
        hint='A value that holds the delimiter or a line break is written in double quotes: "a, b".',
    )


def _unite(
    groups: dict[Hashable, _Group],
    kinds: dict[Hashable, ColumnTypes],
    key_of: Callable[[str], str],
) -> pa.Schema:
    """The columns of a table by name, each of a type for the values of all its files."""
    names: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    for key, group in groups.items():
        for name in group.names:
            names.setdefault(key_of(name), name)
            found.setdefault(key_of(name), set()).update(kinds[key].kinds[name])
    return pa.schema([(name, type_of_kinds(found[key])) for key, name in names.items()])


def _with_types(
    reader: Form, names: Sequence[str], schema: pa.Schema, key_of: Callable[[str], str]
) -> Form:
    """A form with the types of its columns, and what the table calls them."""
    of_table = {key_of(field.name): field for field in schema}
    fields = [of_table[key_of(name)] for name in names]
    renamed = {f.name: n for f, n in zip(fields, names, strict=True) if f.name != n}
    same = [field.name for field in fields] == schema.names
    own = pa.schema([(n, f.type) for f, n in zip(fields, names, strict=True)])
    if reader.null_texts is not None:  # which are no values of other types
        own, same = pa.schema([(name, pa.string()) for name in names]), False
    return replace(reader, schema=own, names=renamed, is_table=same and not renamed)
