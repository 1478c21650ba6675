"""The part of a session that reads datasets of pyarrow."""

from __future__ import annotations

from typing import Any

from blendfusion.prepare.frame_sources import FrameSources


class DatasetReading(FrameSources):
    """A context that reads datasets of pyarrow with SQL's meaning of filters."""

    def register_dataset(self, name: str, dataset: Any) -> None:
        from blendfusion.services.scans.python_table import DatasetTable, ScannedTable

        is_own = isinstance(dataset, ScannedTable)
        super().register_dataset(name, dataset if is_own else DatasetTable(dataset))
