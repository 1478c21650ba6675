"""Lance tables as tables of a session: columns and filters go into Lance's own scan.

DataFusion has a provider of Lance's for an older version only, and a Lance dataset that is registered as
it is fails as soon as a filter is pushed into it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion.catalog import Table

from blendfusion.datafusion.python_table import Scan, ScannedTable, Scanner
from blendfusion.errors import QueryError, close_matches
from blendfusion.search.indexing import require_lance

if TYPE_CHECKING:
    import lance


def lance_table(path: str | os.PathLike[str]) -> Table:
    """The Lance table in the folder ``path`` as a table of DataFusion's. Raises QueryError if there is
    none, ModelNotFound without the extra 'search'."""
    return Table(LanceTable(Path(path).expanduser()))


class LanceTable(ScannedTable):
    """The dataset at a path: each scan reads its latest version, with the columns that it had when it
    was registered."""

    def __init__(self, path: Path) -> None:
        """Raises QueryError if there is no dataset."""
        super().__init__()
        self._path = path
        self._schema = _opened(path).schema

    @property
    def schema(self) -> pa.Schema:
        return self._schema

    def scans(self) -> Sequence[Scan]:
        dataset = _opened(self._path)
        return [functools.partial(_scan, dataset, part) for part in dataset.get_fragments()]


def _scan(
    dataset: lance.LanceDataset,
    fragment: lance.LanceFragment,
    columns: list[str] | None,
    where: pads.Expression | None,
    batch_size: int,
) -> Scanner:
    wanted: dict[str, Any] = {"fragments": [fragment], "batch_size": batch_size}
    try:
        scanner: Scanner = dataset.scanner(columns=columns, filter=where, **wanted)
    except (pa.ArrowException, ValueError, OSError):
        # Not every predicate has a form that Lance takes: then all rows come, and are filtered here.
        rows = dataset.scanner(**wanted)
        scanner = pads.Scanner.from_batches(
            rows.to_batches(), schema=dataset.schema, columns=columns, filter=where
        )
    return scanner


def _opened(path: Path) -> lance.LanceDataset:
    require_lance()
    import lance

    if not path.is_dir():
        near = ""
        if path.parent.is_dir():
            near = close_matches(path.name, (other.name for other in path.parent.glob("*.lance")))
        raise QueryError(f"there is no Lance table at '{path}'", hint=near or None)
    try:
        return lance.dataset(path)
    except (OSError, ValueError) as problem:
        raise QueryError(
            f"'{path}' is no Lance table: {problem}",
            hint="It is a folder that a writer of Lance or LanceDB has made: NAME.lance.",
        ) from problem
