"""Parquet and Arrow files as a table: files whose columns differ in width, order or number are put
together by the names of their columns."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.files.formats import format_of
from blendfusion.files.parts import Form, Table, parts_of
from blendfusion.files.united_types import column_keys, united_schema
from blendfusion.places.folders import File, Listing
from blendfusion.places.notes import note_columns

_READERS = 16
_MAGIC = b"ARROW1"


def parquet_schema(content: IO[bytes] | str) -> pa.Schema:
    """The columns of a Parquet file."""
    import pyarrow.parquet as pq

    return pq.read_schema(content).remove_metadata()


def arrow_schema(content: IO[bytes] | str) -> pa.Schema:
    """The columns of an Arrow file, or of a file of Arrow's stream format."""
    with pa.memory_map(content) if isinstance(content, str) else content as source:
        is_stream = source.read(len(_MAGIC)) != _MAGIC
        source.seek(0)
        opened = pa.ipc.open_stream if is_stream else pa.ipc.open_file
        return opened(source).schema.remove_metadata()


_SCHEMAS = {"parquet": parquet_schema, "arrow": arrow_schema}


def typed_table(
    kind: str,
    listing: Listing,
    new_folder: Callable[[], Path],
    opened: Callable[[File], IO[bytes] | str] = lambda file: file.url,
    ending: str | None = None,
) -> Table:
    """The table of the Parquet or Arrow files of ``listing``. ``opened`` gives the content of a
    file. ``ending`` None: that of their format. Raises QueryError for a column whose types have no
    common one."""
    files, read = listing.files, _SCHEMAS[kind]
    with ThreadPoolExecutor(_READERS) as pool:
        schemas = list(pool.map(lambda file: read(opened(file)), files))
    key_of = column_keys(schema.names for schema in schemas)
    united = united_schema(
        schemas,
        lambda name, one, other: _type_error(
            name, (files[one], schemas[one]), (files[other], schemas[other])
        ),
    )
    note_columns(
        listing.place, [(f.url, s.names) for f, s in zip(files, schemas, strict=True)], key_of
    )
    names = {key_of(name): name for name in united.names}
    alike = all(schema.equals(schemas[0]) for schema in schemas)
    by_url = {f.url: s for f, s in zip(files, schemas, strict=True)}

    def form_of(file: File) -> tuple[Hashable, Form]:
        extension, own = ending or format_of(file.name).extension, by_url[file.url]
        renamed = {n: o for o in own.names if (n := names[key_of(o)]) != o}
        if kind == "arrow":  # DataFusion takes the columns by their places, and other types fail
            fits = own.equals(united)
            form = Form(kind, extension, schema=own, names=renamed, is_table=fits)
            return (extension, own), form
        if alike:
            return extension, Form(kind, extension)
        if not renamed:  # DataFusion casts, and fills in NULL
            return extension, Form(kind, extension, schema=united)
        fields = [united.field(names[key_of(name)]).with_name(name) for name in own.names]
        form = Form(kind, extension, schema=pa.schema(fields), names=renamed, is_table=False)
        return (extension, tuple(own.names)), form

    return Table(listing, parts_of(listing, files, form_of), united, new_folder)


def _type_error(name: str, *sides: tuple[File, pa.Schema]) -> QueryError:
    first, other = (
        f"{schema.field(_own_name(schema, name)).type} in '{file.name}'" for file, schema in sides
    )
    return QueryError(
        f"column '{name}' is {first}, and {other}: no type holds both",
        hint="Write one of the files again with the type of the other, or read them as two tables.",
    )


def _own_name(schema: pa.Schema, name: str) -> str:
    names: list[str] = schema.names
    return next(own for own in names if own.lower() == name.lower())
