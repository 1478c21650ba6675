"""The views of models, which a session forgets when dbt ends: their queries lie in a file."""

from __future__ import annotations

import json
from pathlib import Path

from blendfusion import BlendFusionError, Session
from blendfusion.places.whole_file import write_private
from blendfusion.places.write_lock import write_lock
from blendfusion.udfs.declare.arguments import quoted_name

CATALOG = "datafusion"
"""The catalog of the session's own tables, in which views lie."""


class ViewFile:
    """A file with the query of each view by its schema and name."""

    def __init__(self, file: Path, session: Session) -> None:
        self.file, self.session = file, session

    def load(self) -> dict[tuple[str, str], str]:
        """The queries by (schema, name)."""
        if not self.file.is_file():
            return {}
        found = json.loads(self.file.read_text("utf-8"))
        return {(schema, name): query for schema, name, query in found}

    def keep(self, schema: str, name: str, query: str | None) -> None:
        """Make a view, and keep its query; None drops it. Raises QueryError for a query that is
        wrong, and keeps the view before."""
        if query is None:
            self.session.sql(f"DROP VIEW IF EXISTS {_path(schema, name)}").collect()
        else:
            self._create(schema, name, query)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with write_lock(self.file.with_name(f"{self.file.name}.lock")):
            views = self.load()
            views.pop((schema, name), None)
            if query is not None:
                views[schema, name] = query
            rows = [[*key, kept] for key, kept in views.items()]
            write_private(self.file, json.dumps(rows, indent=1).encode())
        if query is not None:
            self.create_all()

    def create_all(self) -> None:
        """Make the views of the file. One whose tables are gone is left out."""
        left = self.load()
        while left:
            failed = {}
            for (schema, name), query in left.items():
                try:
                    self._create(schema, name, query)
                except BlendFusionError:
                    failed[schema, name] = query
            if len(failed) == len(left):
                return
            left = failed

    def _create(self, schema: str, name: str, query: str) -> None:
        self.session.sql(f"CREATE SCHEMA IF NOT EXISTS {_path(schema)}").collect()
        self.session.sql(f"CREATE OR REPLACE VIEW {_path(schema, name)} AS\n{query}").collect()


def _path(*names: str) -> str:
    return ".".join(map(quoted_name, (CATALOG, *names)))
