"""Reads the tables that a question is answered from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.datafusion.arrow_types import is_text
from blendfusion.errors import QueryError, close_matches, given_names, table_of
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table
from blendfusion.services.ask.schema.kept_catalog import kept_catalog
from blendfusion.services.ask.schema.keys import Key, keys_between
from blendfusion.services.ask.schema.layer import Layer, Note
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources
    from blendfusion.services.ask.state import AskState

READ_ROWS = 100_000
"""Rows of a table that are read for sample values and keys."""
MOST_DISTINCT = 5_000
"""A text column with more distinct values is free text or an identifier: no value is linked."""
SAMPLES = 3
SAMPLE_CHARACTERS = 40
LONG_TEXT = 60
"""Characters; the values of a column with a longer mean length are not linked."""
_COMMENTS = (b"comment", b"description")
"""The metadata of Arrow's fields and schemas that hold a comment."""


def read_catalog(session: AskState, tables: Sequence[str] | None = None) -> Catalog:
    """The catalogue of ``tables``, named as in SQL. None: all tables of the session's default
    schema that were given a name, in order of their names. At most ``READ_ROWS`` rows of each are
    read and no model is asked: of a view with calls only the columns are read. Raises QueryError
    for an unknown table, or if there is none."""
    if isinstance(tables, str):
        tables = (tables,)
    known = sorted(session.catalog().schema().names())
    names = given_names(known) if tables is None else [exact_name(name, known) for name in tables]
    if not names:
        raise QueryError(
            "there is no table to answer from",
            hint=f"Make a table of a file: {table_of('reviews.csv')}.",
        )
    read = {name: _data(session, quoted_name(name) if name in known else name) for name in names}
    layer = session.layer
    return kept_catalog(session, layer, read, lambda: _catalog(read, layer))


def _catalog(read: Mapping[str, pa.Table], layer: Layer) -> Catalog:
    parts = tuple(
        _with_notes(_table(name, data), data.schema, layer) for name, data in read.items()
    )
    folded = {name.lower() for name in read}
    metrics = tuple(m for m in layer.metrics if m.table.lower() in folded)
    declared = list(_declared_keys(layer, parts))
    sides = [frozenset((key.left, key.right)) for key in declared]
    found = (key for key in keys_between(read) if frozenset((key.left, key.right)) not in sides)
    return Catalog(parts, (*declared, *found), metrics)


def _with_notes(table: Table, schema: pa.Schema, layer: Layer) -> Table:
    """The table with the comments of its schema and the notes of the layer."""
    columns = tuple(
        replace(column, note=_note(field.metadata, layer.columns, f"{table.name}.{column.name}"))
        for column, field in zip(table.columns, schema, strict=True)
    )
    return replace(table, columns=columns, note=_note(schema.metadata, layer.tables, table.name))


def _note(metadata: dict[bytes, bytes] | None, notes: Mapping[str, Note], name: str) -> str:
    texts = [(metadata or {}).get(key) for key in _COMMENTS]
    comments = [" ".join(text.decode("utf-8", "replace").split()) for text in texts if text]
    return "; ".join(filter(None, (*comments[:1], str(notes.get(name.lower(), "")))))


def _declared_keys(layer: Layer, tables: Sequence[Table]) -> Iterable[Key]:
    """The keys of the layer between these tables, in the spelling of the tables. Raises QueryError
    for a column that a table lacks."""
    places = {f"{t.name}.{c.name}".lower(): f"{t.name}.{c.name}" for t in tables for c in t.columns}
    names = {table.name.lower() for table in tables}
    for pair in layer.keys:
        if not all(side.rpartition(".")[0].lower() in names for side in pair):
            continue
        for side in pair:
            if side.lower() not in places:
                raise QueryError(
                    f"the semantic layer has a key of {side}, which is not a column",
                    hint=close_matches(side, places.values()),
                )
        yield Key(places[pair[0].lower()], places[pair[1].lower()])


def exact_name(name: str, known: Collection[str]) -> str:
    """The table of the default schema that a name in SQL means, in any letter case; the name itself
    for a table elsewhere, or none."""
    plain = name[1:-1].replace('""', '"') if name[:1] == name[-1:] == '"' else name
    same = [other for other in known if other.casefold() == plain.casefold()]
    return plain if plain in known else same[0] if len(same) == 1 else name


def _data(session: FrameSources, name: str) -> pa.Table:
    frame = session.table(name)
    if frame.prepared.calls:
        return frame.schema().empty_table()
    return frame.limit(READ_ROWS).to_arrow_table()


def _table(name: str, data: pa.Table) -> Table:
    columns = zip(data.schema, data.columns, strict=True)
    own = tuple(_column(field, values) for field, values in columns)
    return Table(name, own, rows=data.num_rows)


def _column(field: pa.Field, values: pa.ChunkedArray) -> Column:
    kind = type_word(field.type)
    shown = [_text(v) for v in values.slice(0, 50)] if _is_plain(field.type) else []
    samples = tuple(dict.fromkeys(_short(text) for text in shown if text is not None))[:SAMPLES]
    if not _is_text(field.type):
        return Column(field.name, kind, samples)
    distinct = values.cast(pa.string()).unique().drop_null()
    mean = pc.mean(pc.utf8_length(distinct)).as_py() or 0
    if mean > LONG_TEXT:
        return Column(field.name, kind, samples, free_text=True)
    linked = tuple(distinct.to_pylist())
    if not linked or len(linked) > MOST_DISTINCT:
        return Column(field.name, kind, samples)
    return Column(field.name, kind, samples, linked, complete=len(values) < READ_ROWS)


def _text(value: pa.Scalar) -> str | None:
    """A value as a text; None for NULL, and for a date or a time that Python has no value for."""
    try:
        plain = value.as_py()
    except (OverflowError, ValueError):
        return None
    return None if plain is None else str(plain)


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= SAMPLE_CHARACTERS else f"{folded[:SAMPLE_CHARACTERS]}…"


def _is_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def type_word(kind: pa.DataType) -> str:
    """The SQL word for a type of Arrow.

    >>> type_word(pa.int32()), type_word(pa.large_string()), type_word(pa.timestamp("us"))
    ('INTEGER', 'TEXT', 'TIMESTAMP')
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    tests = {
        "TEXT": _is_text,
        "BOOLEAN": pa.types.is_boolean,
        "INTEGER": pa.types.is_integer,
        "DOUBLE": pa.types.is_floating,
        "DECIMAL": pa.types.is_decimal,
        "DATE": pa.types.is_date,
        "TIMESTAMP": pa.types.is_timestamp,
    }
    return next((word for word, test in tests.items() if test(kind)), str(kind).upper())
