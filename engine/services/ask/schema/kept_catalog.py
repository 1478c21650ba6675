"""The catalogue of a session's last question, used again while its tables hold the same data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

import pyarrow as pa

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources
    from blendfusion.services.ask.schema.catalog import Catalog
    from blendfusion.services.ask.schema.layer import Layer

_State: TypeAlias = "tuple[Layer, tuple[tuple[str, bytes], ...]]"
_KEPT: WeakKeyDictionary[FrameSources, tuple[_State, Catalog]] = WeakKeyDictionary()


def kept_catalog(
    session: FrameSources, layer: Layer, tables: Mapping[str, pa.Table], make: Callable[[], Catalog]
) -> Catalog:
    """The catalogue of ``tables``, by name: the last one if data and layer are equal to those
    before, else what ``make`` gives."""
    state = layer, tuple((name, _digest(table)) for name, table in tables.items())
    kept = _KEPT.get(session)
    if kept is not None and kept[0] == state:
        return kept[1]
    catalog = make()
    _KEPT[session] = state, catalog
    return catalog


def _digest(table: pa.Table) -> bytes:
    sink = _Hash()
    with (
        pa.PythonFile(sink, mode="w") as file,
        pa.ipc.new_stream(file, table.schema) as stream,
    ):
        stream.write_table(table)
    return sink.hash.digest()


class _Hash:
    """A file that keeps a hash of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
