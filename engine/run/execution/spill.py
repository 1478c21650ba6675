"""Stores the rows between the stages of a run: in memory up to a size, the rest in unnamed
files."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

import pyarrow as pa

from blendfusion.errors import BlendFusionError
from blendfusion.options import Options

MEGABYTE = 1_000_000


class Spill:
    """Keeps the rows of one run's stages. Above ``options.spill_above`` megabytes for all stages
    together, they are written to temporary files in Arrow's IPC format and memory-mapped.

    A file is deleted as soon as it is open: nobody else can open it, and it disappears with the
    process. Its space is free again when the last of its rows is dropped.
    """

    def __init__(self, options: Options) -> None:
        self._room = options.spill_above * MEGABYTE
        self._folder = options.spill_folder or None
        self.spilled = 0
        """Bytes written to files."""

    def keep(self, tables: Iterable[pa.Table]) -> pa.Table:
        """The rows of ``tables``, at least one table, all of one schema. Raises BlendFusionError if
        a file cannot be written; exceptions of ``tables`` pass through."""
        held: list[pa.Table] = []
        room = self._room
        waiting = iter(tables)
        for table in waiting:
            held.append(table)
            room -= table.nbytes
            if room < 0:
                return self._on_disk(held, waiting)
        self._room = room
        return pa.concat_tables(held)

    def _on_disk(self, held: list[pa.Table], waiting: Iterator[pa.Table]) -> pa.Table:
        with ExitStack() as stack:
            with self._trouble():
                file = stack.enter_context(_unnamed_file(self._folder))
                # The stream format, since the file format requires one dictionary for all batches
                # of a column.
                writer = pa.ipc.new_stream(pa.PythonFile(file, "wb"), held[0].schema)
            while held:
                with self._trouble():
                    writer.write_table(held.pop(0))
            for table in waiting:
                with self._trouble():
                    writer.write_table(table)
            with self._trouble():
                writer.close()
                file.flush()
                self.spilled += file.tell()
                pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return pa.ipc.open_stream(pa.py_buffer(pages)).read_all()

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise BlendFusionError(
                "rows between two stages cannot be written to a file in "
                f"{self._folder or tempfile.gettempdir()}: {problem}",
                hint="Name another folder with spill_folder, or keep more rows in memory: spill_above is "
                "the limit in megabytes.",
            ) from problem


@contextmanager
def _unnamed_file(folder: str | None) -> Iterator[IO[bytes]]:
    """A file without a name. Errors on closing are ignored, since nobody reads it any more."""
    with tempfile.TemporaryFile(prefix="blendfusion-", dir=folder) as file:
        try:
            yield file
        finally:
            with suppress(OSError):
                file.close()
