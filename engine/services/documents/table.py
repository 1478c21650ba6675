"""Documents as a DataFusion table, whose files are read one after the other as rows are pulled."""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads

from blendfusion.datafusion.scan_run import ScanRun, current_run
from blendfusion.errors import QueryError, close_matches
from blendfusion.planner.ir.document_tables import COLUMNS, Documents
from blendfusion.services.documents.chunks import cut_chunks, words_left_out
from blendfusion.services.documents.parse import ENDINGS, IMAGES
from blendfusion.services.documents.process import PageRead, Reader
from blendfusion.services.documents.pruning import left_by
from blendfusion.services.scans.python_table import Scan, ScannedTable, Scanner

BOX = pa.struct([(side, pa.float64()) for side in ("left", "top", "right", "bottom")])
_WORDS, _NUMBER = pa.string(), pa.int32()
_TYPES = (_WORDS, _NUMBER, _NUMBER, _WORDS, _WORDS, BOX, _WORDS, _NUMBER)
SCHEMA = pa.schema(list(zip(COLUMNS, _TYPES, strict=True)))
_OCR_TAKES = 10
"""The multiple of its time that a step takes with recognition of text."""
_FEW, _MANY = 1, 512
"""The rows of a batch: few at first, in case that no more are wanted."""


def found_files(documents: Documents) -> list[str]:
    """The files, in the order of their names. Raises QueryError if there are no files."""
    place = str(Path(documents.path).expanduser())
    known = {*ENDINGS, *(IMAGES if documents.ocr else ())}
    path = Path(place)
    if path.is_dir():
        files = (f for f in path.iterdir() if f.is_file() and not f.name.startswith("."))
        found = sorted(str(file) for file in files if file.suffix.lower() in known)
        if not found:
            raise QueryError(
                f"there are no documents in '{documents.path}'",
                hint=f"Documents are files with one of these endings: {', '.join(sorted(known))}.",
            )
        return found
    if path.exists():
        return [place]
    if glob.has_magic(place):
        found = sorted(f for f in glob.iglob(place, recursive=True) if Path(f).is_file())
        if found:
            return found
        raise QueryError(f"no file matches '{documents.path}'")
    near = ""
    if path.parent.is_dir():
        near = close_matches(path.name, (other.name for other in path.parent.iterdir()))
    raise QueryError(f"there is no file '{documents.path}'", hint=near or None)


class DocumentTable(ScannedTable):
    """A row for each block, or chunk, of the files that are there when it is scanned."""

    def __init__(self, documents: Documents) -> None:
        super().__init__()
        self._documents = documents
        found_files(documents)  # so that a wrong path shows when the query is planned

    @property
    def schema(self) -> pa.Schema:
        return SCHEMA

    def scans(self) -> Sequence[Scan]:
        run = current_run()

        def scan(
            columns: list[str] | None, where: pads.Expression | None, batch_size: int
        ) -> Scanner:
            return _DocumentScan(self._documents, columns, where, run)

        return (scan,)


class _DocumentScan:
    """One scan, with a process that lives as long as its batches are pulled."""

    def __init__(
        self,
        documents: Documents,
        columns: list[str] | None,
        where: pads.Expression | None,
        run: ScanRun | None,
    ) -> None:
        self._documents = documents
        self._on_left_out = None if run is None else run.on_left_out
        self._columns, self._where = columns, where

    @property
    def projected_schema(self) -> pa.Schema:
        return self._select(SCHEMA.empty_table()).projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        waiting: list[dict[str, object]] = []
        most = _FEW
        for rows in self._pages():
            waiting += rows
            if len(waiting) >= most:
                yield from self._batches(waiting)
                waiting, most = [], min(most * 4, _MANY)
        yield from self._batches(waiting)

    def _batches(self, rows: list[dict[str, object]]) -> Iterator[pa.RecordBatch]:
        if rows:
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            yield from (b for b in self._select(table).to_batches() if b.num_rows)

    def _select(self, table: pa.Table) -> pads.Scanner:
        return pads.dataset(table).scanner(columns=self._columns, filter=self._where)

    def _pages(self) -> Iterator[list[dict[str, object]]]:
        """The rows of pages, and of files without pages."""
        documents = self._documents
        files = found_files(documents)
        field = pads.field("file")
        wanted = left_by(self._where, SCHEMA, [field == file for file in files])
        seconds = documents.seconds * (_OCR_TAKES if documents.ocr else 1)
        reader = Reader(seconds, documents.megabytes, documents.ocr)
        try:
            for at in wanted:
                file = files[at]
                for page in reader.read(file, self._asks(file)):
                    yield self._rows(file, page)
        finally:
            reader.close()

    def _asks(self, file: str) -> _WantedPages | None:
        if self._where is None or "page" not in str(self._where):
            return None
        return _WantedPages(file, self._where)

    def _rows(self, file: str, page: PageRead) -> list[dict[str, object]]:
        documents = self._documents
        if page.reason is not None:
            if documents.on_error == "raise":
                raise QueryError(
                    f"'{file}' cannot be read: {page.reason}",
                    hint="on_error => 'null' makes a row of the reason, and on_error => 'skip' none.",
                )
            if documents.on_error == "skip":
                return []
            return [{"file": file, "page": page.page, "kind": "error", "error": page.reason}]
        chunks = documents.chunk
        rows = cut_chunks(page.rows, chunks) if chunks else page.rows
        left_out = words_left_out(page.rows) if chunks else 0
        if left_out and self._on_left_out is not None:
            self._on_left_out(left_out)
        return [
            {
                "file": file,
                "page": page.page,
                "block": number,
                "kind": kind,
                "text": text,
                "bbox": None if box is None else dict(zip(BOX.names, box, strict=True)),
                "left_out": (left_out if number == 1 else 0) if chunks else None,
            }
            for number, (kind, text, box) in enumerate(rows, 1)
        ]


class _WantedPages:
    """The pages of a file that a filter leaves."""

    def __init__(self, file: str, where: pads.Expression) -> None:
        self._file, self._where = file, where

    def __call__(self, count: int) -> Collection[int]:
        same = pads.field("file") == self._file
        numbers = [pads.field("page") == pa.scalar(n, pa.int32()) for n in range(1, count + 1)]
        return [at + 1 for at in left_by(self._where, SCHEMA, [same & n for n in numbers])]
