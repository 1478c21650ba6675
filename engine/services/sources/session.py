"""The part of a session that attaches databases."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from datafusion import DataFrame

    from blendfusion.datafusion.scan_run import ScanRun
    from blendfusion.planner.stages.split import StagedPlan
    from blendfusion.services.sources.attachment import Attachment


class Attaching(FrameSources):
    """A context with databases whose tables queries read where they lie."""

    @cached_property
    def attached(self) -> dict[str, Attachment]:
        """The attached databases, by their names."""
        return {}

    def attach(
        self,
        url: str | os.PathLike[str],
        name: str | None = None,
        *,
        kind: str | None = None,
        read_only: bool = True,
        is_default: bool = False,
    ) -> str:
        """Make the tables and views of a database tables of this session, and return its name.

        ``url`` is the path of a file of SQLite or DuckDB, or ``sqlite:///shop.db``,
        ``duckdb:///shop.duckdb``, ``postgresql://user@host/shop``, ``mysql://user@host/shop``.
        ``name`` (None: from the file or the database) stands in front of tables: ``shop.orders`` is
        a table of the default schema, ``shop.public.orders`` one of any. ``kind`` is the kind of a
        file whose bytes do not tell it. Rows stream in when a query reads them; columns, and
        filters that mean the same there, are left to the database (docs/databases.md).
        ``is_default``: the tables of its default schema have names without it in front, too, as far
        as these are free. ``read_only``: nothing writes to it; else INSERT, CREATE TABLE … AS and
        ``Frame.write_table`` do. Raises QueryError for a place without a database, or a name that
        is taken, and ModelNotFound without the extra 'databases'.
        """
        from blendfusion.services.sources.attachment import attach_database

        found = attach_database(self, url, name, kind, read_only=read_only)
        self.attached[found.name] = found
        if is_default:
            found.register_tables(self)
        return found.name

    def places_of(self, plan: StagedPlan | None) -> list[list[str]]:
        """Where each stage of a plan runs, with the queries that its scans send to databases."""
        lines = super().places_of(plan)
        if plan is None or not self.attached:
            return lines
        from blendfusion.services.sources.heard_queries import stage_lines

        return [
            [*line, *stage_lines(self, stage)]
            for line, stage in zip(lines, plan.stages, strict=True)
        ]

    def scan_notes(self, frame: DataFrame) -> list[str]:
        """The queries that the scans of a frame of DataFusion send to databases."""
        if not self.attached:
            return super().scan_notes(frame)
        from blendfusion.services.sources.heard_queries import frame_lines

        return frame_lines(self, frame)

    def scan_run(self) -> ScanRun:
        """A run whose scans read one state of each database, and leave it what it can do."""
        if not self.attached:
            return super().scan_run()
        from blendfusion.services.sources.attached_run import AttachedRun

        return AttachedRun(self, self.attached)

    def release(self) -> None:
        """Close the files of attached databases until the next query."""
        super().release()
        for found in self.attached.values():
            found.database.close()

    def detach(self, name: str) -> None:
        """Take the tables of the database ``name`` out of the session. Raises QueryError if there
        is none."""
        if not isinstance(name, str):
            raise ArgumentError(f"a name is text, not {type(name).__name__}")
        found = self.attached.pop(name, None)
        if found is None:
            names = ", ".join(self.attached) or "none is"
            raise QueryError(f"no database '{name}' is attached", hint=f"Attached: {names}.")
        found.detach(self)
