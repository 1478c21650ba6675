"""Tables whose scans run in Python, with the scan's columns and filter."""

from __future__ import annotations

import atexit
import functools
import operator
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from blendfusion.datafusion.scan_errors import ScanError
from blendfusion.errors import BlendFusionError
from blendfusion.services.scans.scan_filters import (
    Tree,
    columns_of,
    conjuncts,
    expression_of,
    has_lists,
    tree_of,
)


class Scanner(Protocol):
    """A function that gives DataFusion the columns of a scan, of the rows that meet its filter."""

    @property
    def projected_schema(self) -> pa.Schema: ...

    def to_batches(self) -> Iterator[pa.RecordBatch]: ...


Scan = Callable[["list[str] | None", "pads.Expression | None", int], Scanner]
"""Reads one part of a table: some columns, by name and in that order (None: all), of the rows that
meet a filter (None: all), in batches of about the given number of rows."""


class ScannedTable(pads.Dataset):  # type: ignore[misc]  # pyarrow ships no types
    """A pyarrow dataset without files.

    DataFusion takes a dataset for a table. It asks for the fragments of a scan, and reads each of
    them, maybe at the same time, on threads of its own; a scan must not wait for another plan of
    DataFusion's, or they may wait for each other.
    """

    def __init__(self) -> None:
        # Not pyarrow's: it refuses, because only its functions should make datasets.
        pass

    @property
    @abstractmethod
    def schema(self) -> pa.Schema: ...

    def scans(self) -> Sequence[Scan]:
        """The parts of the table as it is now: one, unless a table says otherwise. DataFusion
        starts all parts at once, and a LIMIT should leave unread what it can."""
        return (self._scan,)

    def _scan(
        self, columns: list[str] | None, where: pads.Expression | None, batch_size: int
    ) -> Scanner:
        """A scan of the table, where it has one part: see ``Scan``."""
        raise NotImplementedError

    def scanner(self, **options: Any) -> pads.Scanner:
        """A scanner without rows: DataFusion only wants to know what a scan's columns are."""
        return pads.dataset(self.schema.empty_table()).scanner(columns=options.get("columns"))

    def get_fragments(self, where: pads.Expression | None = None) -> Iterator[_Fragment]:
        return map(_Fragment, self.scans())

    def __reduce__(self) -> Any:
        raise TypeError("a table that is scanned in Python cannot be sent to another process")


class _Fragment:
    def __init__(self, scan: Scan) -> None:
        self._scan = scan

    def scanner(
        self,
        schema: pa.Schema | None = None,
        *,
        columns: list[str] | None = None,
        filter: pads.Expression | None = None,  # noqa: A002 - DataFusion's name
        batch_size: int = 8192,
    ) -> Scanner:
        filter = _expression(filter)  # noqa: A001
        tree = None if filter is None or schema is None else tree_of(filter)
        if tree is not None and has_lists(tree):  # DataFusion passes on one that NULL is outside of
            filter = expression_of(tree, schema)  # noqa: A001
        return _GuardedScanner(self._scan(columns, filter, batch_size))


def _expression(where: pads.Expression | pa.Scalar | None) -> pads.Expression | None:
    """A filter as an expression: DataFusion passes one that no row meets on as a value."""
    return pc.scalar(where) if isinstance(where, pa.Scalar) else where


def in_sql(where: pads.Expression | None, schema: pa.Schema) -> pads.Expression | None:
    """A filter for pyarrow with SQL's meaning."""
    tree = None if where is None else tree_of(where)
    return where if tree is None else expression_of(tree, schema)


def _all_of(parts: Sequence[Tree], schema: pa.Schema) -> pads.Expression | None:
    """A conjunction; None of no parts."""
    tests = [expression_of(part, schema) for part in parts]
    return functools.reduce(operator.and_, tests) if tests else None


class DatasetTable(ScannedTable):
    """A dataset of pyarrow, for which NaN is no number, and in SQL the greatest one."""

    def __init__(self, dataset: pads.Dataset) -> None:
        super().__init__()
        self._dataset = dataset

    @property
    def schema(self) -> pa.Schema:
        return self._dataset.schema

    @property
    def files(self) -> Sequence[str]:
        """The paths that are checked for the folders of lakes; none of rows in memory."""
        return getattr(self._dataset, "files", ())

    def get_fragments(self, where: pads.Expression | None = None) -> Iterator[_Fragment]:
        parts = [*self._dataset.get_fragments(self._divide(_expression(where))[0])]
        for part in parts:
            yield _Fragment(functools.partial(self._read, part))
        if not parts:  # DataFusion sorts no rows without a part
            yield _Fragment(scan_of(self.schema.empty_table()))

    def _divide(
        self, where: pads.Expression | None
    ) -> tuple[pads.Expression | None, pads.Expression | None, set[str]]:
        """A filter in two, what pyarrow checks and what is checked here, with the columns of the
        latter: the statistics by which pyarrow leaves rows out have no NaN."""
        tree = None if where is None else tree_of(where)
        if tree is None:
            return where, None, set()
        kinds = {field.name: field.type for field in self.schema}
        there: list[Tree] = []
        here: list[Tree] = []
        for part in conjuncts(tree):
            floats = any(pa.types.is_floating(kinds[name]) for name in columns_of(part))
            (here if floats else there).append(part)
        needed = {name for part in here for name in columns_of(part)}
        return _all_of(there, self.schema), _all_of(here, self.schema), needed

    def _read(
        self,
        part: pads.Fragment,
        columns: list[str] | None,
        where: pads.Expression | None,
        batch_size: int,
    ) -> Scanner:
        there, here, needed = self._divide(where)
        names = self.schema.names if columns is None else columns
        read = [*names, *sorted(needed - {*names})]
        scanner: Scanner = part.scanner(
            schema=self.schema, columns=read, filter=there, batch_size=batch_size
        )
        if here is None:
            return scanner
        return FilteredRows(scanner.to_batches(), self.schema, names, here)


class _GuardedScanner:
    """A scanner whose errors reach the user as they are."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    @property
    def projected_schema(self) -> pa.Schema:
        return self._scanner.projected_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        batches = self._batches()
        _running.add(batches)
        return batches

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._scanner.to_batches()
        except BlendFusionError as error:
            raise ScanError(error) from error


_running: weakref.WeakSet[Iterator[pa.RecordBatch]] = weakref.WeakSet()
_EXIT_SECONDS, _STEP = 1.0, 0.005


@atexit.register
def _await_scans() -> None:
    """Wait for scans that a limit has left: a thread of DataFusion's that returns to Python when
    that has ended aborts the process."""
    end = time.monotonic() + _EXIT_SECONDS
    while _running and time.monotonic() < end:
        time.sleep(_STEP)
    time.sleep(_STEP)  # its thread lets go of it


def scan_of(table: pa.Table) -> Scan:
    """Reads rows that are in memory."""

    def scan(columns: list[str] | None, where: pads.Expression | None, batch_size: int) -> Scanner:
        scanner: Scanner = pads.dataset(table).scanner(
            columns=columns, filter=in_sql(where, table.schema), batch_size=batch_size
        )
        return scanner

    return scan


class FilteredRows:
    """The rows of a scan that meet a filter, one batch at a time: none is read ahead. ``schema`` is
    that of the table, ``names`` are the columns of the scan."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        schema: pa.Schema,
        names: Sequence[str],
        where: pads.Expression | None,
    ) -> None:
        self._batches, self._names, self._where = batches, names, where
        self.projected_schema = pa.schema([schema.field(name) for name in names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            rows = pa.Table.from_batches([batch])
            if self._where is not None:
                rows = rows.filter(self._where)
            yield from rows.select(self._names).to_batches()
