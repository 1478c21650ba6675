"""The part of a session that reads tables of lakes."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from datafusion.catalog import Table

from blendfusion.prepare.frame_sources import FrameSources


class LakeReading(FrameSources):
    """A context that reads tables of Delta Lake and Iceberg."""

    def register_table(self, name: str, table: Any) -> None:
        from blendfusion.services.lakes.tables import is_lake_object, lake_table

        super().register_table(name, lake_table(table) if is_lake_object(table) else table)

    def register_lake(
        self,
        name: str,
        source: str | os.PathLike[str] | object,
        *,
        version: int | None = None,
        at: datetime.datetime | str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """Register a table of Delta Lake or Iceberg as the table ``name``.

        ``source`` is its folder or URL, or an object: ``deltalake.DeltaTable``, or a table of a
        catalog of ``pyiceberg``. ``version`` is a version of Delta, or the id of a snapshot of
        Iceberg; ``at`` a time, as an ISO text or with a time zone, whose newest version counts
        (None: the newest of all). The version stays that of the registration. Columns and filters
        go into the scan, which leaves out partitions and files without a row that meets them.
        ``storage_options`` are those of an object store, as the libraries name them. Raises
        QueryError for a place without such a table, and for a version that it does not have, and
        ModelNotFound without the extra 'lakes'.
        """
        from blendfusion.services.lakes.tables import lake_table

        storage = storage_options or {}
        super().register_table(name, lake_table(source, version, at, storage))
        self.lakes[name.strip('"')] = source, storage
        moment = at.isoformat() if isinstance(at, datetime.datetime) else at
        given = {"version": version, "at": moment, "storage_options": storage_options}
        self.note_registration("register_lake", name, source, given)

    @cached_property
    def lakes(self) -> dict[str, tuple[Any, Mapping[str, str]]]:
        """The places or objects of tables, and the options of their stores, by their names."""
        return {}

    def lake_version(
        self, name: str, *, version: int | None = None, at: datetime.datetime | str | None = None
    ) -> Any:
        """A frame of the table ``name`` as of a version or a time. Raises QueryError if there is no
        such version."""
        from blendfusion.services.lakes.tables import lake_table

        source, storage = self.lakes[name]
        return self.as_frame(self.read_table(lake_table(source, version, at, storage)))

    def foreign_table(self, value: object) -> Table | None:
        """The table of DataFusion for a table of a lake's library; None for any other value."""
        from blendfusion.services.lakes.tables import is_lake_object, lake_table

        found: Any = lake_table(value) if is_lake_object(value) else super().foreign_table(value)
        return found  # type: ignore[no-any-return]
