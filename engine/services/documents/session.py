"""The part of a session that reads documents."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.planner.ir.document_tables import Documents, OnProblem
    from blendfusion.services.documents.tables import DocumentTables


class DocumentReading(FrameSources):
    """A context that reads documents as tables of blocks."""

    @cached_property
    def documents(self) -> DocumentTables:
        """The documents that queries named."""
        from blendfusion.planner.ir.document_tables import DOCUMENTS
        from blendfusion.services.documents.tables import DocumentTables

        tables = DocumentTables()
        self.add_hidden_schema(DOCUMENTS, tables)
        return tables

    def read_documents(
        self,
        path: str | os.PathLike[str],
        *,
        chunk: int = 0,
        ocr: bool = False,
        on_error: OnProblem = "null",
        seconds: float = 60.0,
        megabytes: int = 2048,
    ) -> Frame:
        """The blocks of documents in reading order: ``file``, ``page``, ``block``, ``kind``,
        ``text``, ``bbox``, ``error`` and ``left_out``. See docs/documents.md.

        ``path`` is a file, a folder or a pattern (``reports/*.pdf``) of PDF, DOCX, PPTX, EPUB,
        e-mails, HTML, Markdown or text; files are read when the frame runs, one after the other.
        ``chunk`` joins blocks to rows of at most so many tokens. ``ocr`` reads pages that are
        images, by the extra 'ocr'. ``on_error``: what cannot be read is a row of kind 'error'
        ('null'), left out ('skip'), or an error. A file is read in another process, in steps of at
        most ``seconds`` of the processor and in so many ``megabytes``. Raises QueryError if there
        is no such file.
        """
        table = self.documents.allow(_read(path, chunk, ocr, on_error, seconds, megabytes))
        return self.new_frame(self.table(table))

    def register_documents(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        chunk: int = 0,
        ocr: bool = False,
        on_error: OnProblem = "null",
        seconds: float = 60.0,
        megabytes: int = 2048,
    ) -> None:
        """Register documents as the table ``name``. Every query reads the files again. The
        parameters are those of ``read_documents``."""
        from datafusion.catalog import Table

        from blendfusion.services.documents.table import DocumentTable

        documents = _read(path, chunk, ocr, on_error, seconds, megabytes)
        super().register_table(name, Table(DocumentTable(documents)))
        options = asdict(documents)
        del options["path"]
        self.note_registration("register_documents", name, path, options)

    def _document_files(self, documents: Documents) -> list[str]:
        """The files that are read for ``documents``."""
        from blendfusion.services.documents.table import found_files

        return found_files(documents)


def _read(path: str | os.PathLike[str], *options: Any) -> Documents:
    from blendfusion.services.documents.in_queries import check_documents

    names = ("chunk", "ocr", "on_error", "seconds", "megabytes")
    return check_documents(os.fspath(path), **dict(zip(names, options, strict=True)))
