"""``session.index``: from a table of the session to an index on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from datafusion import DataFrame, col
from datafusion import functions as f

from blendfusion.datafusion.arrow_layouts import plain_batch, plain_schema
from blendfusion.datafusion.arrow_types import is_text
from blendfusion.datafusion.context import OwnContext
from blendfusion.errors import QueryError, by_surface, close_matches
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.stores.store_names import user_cache
from blendfusion.services.scans.lance_table import require_lance
from blendfusion.services.search.build import ROW, TEXT, TEXT_HASH, VECTOR, IndexReport, build
from blendfusion.services.search.folder import Folder, Spec
from blendfusion.services.search.snapshot import RANK, SCORE
from blendfusion.udfs.declare.arguments import quoted_name

_TAKEN = (TEXT, VECTOR, ROW, TEXT_HASH, SCORE, RANK, "_rowid", "_rowaddr", "_distance")
LANGUAGES = (
    *("Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian"),
    *("Italian", "Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil"),
    "Turkish",
)


def default_path(name: str) -> Path:
    """The default folder of an index, in the user's cache folder. The name and the working
    directory determine it, so that tables of one name in two projects do not collide."""
    place = hashlib.blake2b(f"{os.getcwd()}\n{name}".encode(), digest_size=6).hexdigest()
    word = "".join(c if c.isalnum() or c in "-_" else "_" for c in name)[:40]
    try:
        return user_cache() / "indexes" / f"{word}-{place}"
    except RuntimeError as problem:
        raise QueryError(
            f"session.index('{name}'): there is no home folder to keep it in",
            hint="Name a folder: path='docs.index'.",
        ) from problem


def make_index(
    context: OwnContext,
    name: str,
    source: object,
    columns: Sequence[str] | None,
    path: Path,
    language: str | None,
    embedder: Embedder | None,
) -> IndexReport:
    """Build or update an index: see ``Session.index``."""
    require_lance()
    if language is not None and language not in LANGUAGES:
        near = close_matches(str(language), LANGUAGES)
        raise QueryError(f"language={language!r} is not possible", hint=f"{near} None for none.")
    frame = _frame(context, name, source)
    stored = plain_schema(frame.schema()).remove_metadata()
    searched = _columns(name, stored, columns)
    texts = [col(quoted_name(column)).cast(pa.string()) for column in searched]
    kept = [col(quoted_name(column)) for column in stored.names]
    ready = frame.select(*kept, f.concat_ws("\n", *texts).alias(TEXT))
    fingerprint = None if embedder is None else embedder.fingerprint
    spec = Spec(tuple(searched), stored, language, fingerprint)
    table = source or name if source is None or isinstance(source, str) else None
    return build(name, Folder(path), spec, _batches(ready, stored), embedder, table)


def _frame(context: OwnContext, name: str, source: object) -> DataFrame:
    if source is None or isinstance(source, str):
        return context.table(source or name)
    if isinstance(source, DataFrame):
        return source
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return context.plain_frame(pa.table(source))
    raise QueryError(
        f"session.index('{name}'): {type(source).__name__} is not a table",
        hint="Give the name of a table, a frame, or an Arrow table.",
    )


def _columns(name: str, schema: pa.Schema, columns: Sequence[str] | None) -> list[str]:
    if isinstance(columns, str):
        columns = [columns]
    names = schema.names
    for column in names:
        if column in _TAKEN or "." in column or names.count(column) > 1:
            what = "occurs twice" if names.count(column) > 1 else "cannot be kept in an index"
            raise QueryError(
                f"session.index('{name}'): the column '{column}' {what}",
                hint="Rename it"
                + by_surface(
                    ": session.index(name, session.sql('SELECT … AS …')).", " in the file."
                ),
            )
    if columns is None:
        columns = [field.name for field in schema if is_text(field.type)]
        if not columns:
            raise QueryError(
                f"session.index('{name}'): the table has no column of text",
                hint="Name the columns to search: columns=['…'].",
            )
    if not columns:
        raise QueryError(f"session.index('{name}'): columns=[] leaves no column to search")
    for column in columns:
        if column not in names:
            raise QueryError(
                f"session.index('{name}'): no column '{column}'", hint=close_matches(column, names)
            )
    return list(dict.fromkeys(columns))


def _batches(frame: DataFrame, stored: pa.Schema) -> Iterator[pa.RecordBatch]:
    schema = pa.schema([*stored, pa.field(TEXT, pa.string())])
    for batch in frame.execute_stream():
        yield plain_batch(batch.to_pyarrow(), schema)
