"""``FROM read_text('folder/*.md')``: whole text files as rows, as DuckDB has them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion import SessionContext
from datafusion.catalog import Table
from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.unnamed_tables import HIDDEN_CATALOG, UNNAMED_SCHEMA
from blendfusion.errors import QueryError, connect_with
from blendfusion.files.conversions import folder_of
from blendfusion.files.objects import list_objects
from blendfusion.files.texts import text_of
from blendfusion.language.query_text.call_sites import literal_of
from blendfusion.language.query_text.calls_in_from import rewrite_calls
from blendfusion.language.query_text.lateral import Columns
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.places.folders import File, list_files
from blendfusion.places.remote import LOCAL, download, local_path, scheme_of
from blendfusion.services.documents.pruning import left_by
from blendfusion.services.documents.tables_in_queries import with_table
from blendfusion.services.scans.python_table import ScannedTable, Scanner

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources

NAME = "read_text"
_FORM = "Write FROM read_text('folder/*.md'), or FROM read_text(['a.txt', 'b.txt'])."
SCHEMA = pa.schema(
    [
        ("filename", pa.string()),
        ("content", pa.string()),
        ("size", pa.int64()),
        ("last_modified", pa.timestamp("us", "UTC")),
    ]
)
"""``size`` is in bytes, and ``last_modified`` NULL of what does not lie on this machine."""


def read_in(
    sql: str,
    session: FrameSources,
    parameters: Mapping[str, str] | None,
    columns: Columns,
    *,
    read_only: bool,
) -> str:
    """``sql`` with its texts as tables, as the session's option ``read_files`` allows. Raises
    QueryError for files that may not be read, or are not there."""
    return rewrite_calls(
        sql,
        NAME,
        parameters,
        columns,
        lambda place: with_table(
            place, NAME, lambda *call: _table(session, _paths(*call)), read_only=read_only
        ),
        form=_FORM,
    )


def _paths(reader: Reader, start: int, stop: int) -> list[str]:
    """The paths that the arguments of a call name: a text, or a list of texts."""
    if stop > start and reader.kind(start) == TokenType.L_BRACKET:
        start, stop = start + 1, stop - 1
        spans = list(reader.parts(start, stop))
    else:
        spans = [(start, stop)]
    found = [literal_of(reader.tokens[slice(*span)]) for span in spans]
    paths = [literal.value for literal in found if literal is not None]
    if len(paths) < len(spans) or not all(isinstance(path, str) and path for path in paths):
        written = reader.source_text(start, stop) if stop > start else "nothing"
        raise QueryError(f"{NAME}: {written} is no path, nor a list of paths", hint=_FORM)
    return [str(path) for path in paths]


def _table(session: FrameSources, paths: Sequence[str]) -> str:
    """The table of the files at these paths, in SQL."""
    files = [file for path in paths for file in _files(session, path)]
    table = TextTable(tuple(files))
    name = f"{HIDDEN_CATALOG}.{UNNAMED_SCHEMA}.{NAME}_{abs(hash(table.files)):x}"
    if not SessionContext.table_exist(session, name):
        SessionContext.register_table(session, name, Table(table))
    return name


def _files(session: FrameSources, path: str) -> list[tuple[str, File]]:
    """(the name to show, the file) of each file at a path."""
    allowed, scheme = session.options.read_files, scheme_of(path)
    if allowed == "off":
        raise QueryError(
            f"{NAME}: a query of this session may not read files",
            hint=f"Allow it, {connect_with(read_files='local')}.",
        )
    if allowed == "local" and scheme not in (None, LOCAL):
        raise QueryError(
            f"'{path}': a query of this session reads files of this machine only",
            hint="Allow URLs by the option read_files='urls'.",
        )
    if scheme in ("http", "https"):
        place = download(path, folder_of(session))
        return [(path, File(str(place), place.stat().st_size))]
    found = list_files(local_path(path)) if scheme in (None, LOCAL) else list_objects(path)
    return [(file.url, file) for file in found.files]


class TextTable(ScannedTable):
    """A row for each file, which is read when its content is."""

    def __init__(self, files: tuple[tuple[str, File], ...]) -> None:
        super().__init__()
        self.files = files

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        return _TextScan(self.files, columns, where)


class _TextScan:
    def __init__(
        self,
        files: Sequence[tuple[str, File]],
        columns: list[str] | None,
        where: pads.Expression | None,
    ) -> None:
        self._files, self._columns, self._where = files, columns, where

    @property
    def projected_schema(self) -> pa.Schema:
        return self._select(SCHEMA.empty_table()).projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        named = [pads.field("filename") == name for name, _ in self._files]
        for at in left_by(self._where, SCHEMA, named):
            table = pa.Table.from_pylist([self._row(*self._files[at])], schema=SCHEMA)
            yield from (b for b in self._select(table).to_batches() if b.num_rows)

    def _row(self, name: str, file: File) -> dict[str, object]:
        read = self._columns is None or "content" in self._columns or self._where is not None
        local = scheme_of(file.url) is None and scheme_of(name) is None
        changed = file.path.stat().st_mtime if local else None
        return {
            "filename": name,
            "content": text_of(file.url if not local else Path(file.url)) if read else None,
            "size": file.size,
            "last_modified": changed and datetime.datetime.fromtimestamp(changed, tz=datetime.UTC),
        }

    def _select(self, table: pa.Table) -> pads.Scanner:
        return pads.dataset(table).scanner(columns=self._columns, filter=self._where)
