"""The schema with a table for all documents that were asked for, by names that encode them."""

from __future__ import annotations

from datafusion.catalog import SchemaProvider, Table

from blendfusion.planner.ir.document_tables import DOCUMENTS, Documents, documents_name
from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.services.documents.table import DocumentTable
from blendfusion.udfs.declare.arguments import quoted_name


class DocumentTables(SchemaProvider):
    """Tables of documents that the session, or a query that may read files, has named. No other
    query reaches a file by writing such a name. It lists none."""

    def __init__(self) -> None:
        self._allowed: dict[str, Documents] = {}

    @property
    def table_names(self) -> list[str]:  # type: ignore[override]  # what DataFusion reads it as
        return []

    def table(self, name: str) -> Table | None:
        documents = self._allowed.get(name)
        return None if documents is None else Table(DocumentTable(documents))

    def table_exist(self, name: str) -> bool:
        return name in self._allowed

    def allow(self, documents: Documents) -> str:
        """The table of these documents, in SQL. Raises QueryError where there is no file."""
        DocumentTable(documents)
        name = documents_name(documents)
        self._allowed[name] = documents
        return f"{CATALOG}.{DOCUMENTS}.{quoted_name(name)}"
