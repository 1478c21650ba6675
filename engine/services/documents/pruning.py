"""Selects the files and pages that satisfy a filter, before any of them is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs


def left_by(
    where: pads.Expression | None, schema: pa.Schema, known: Sequence[pads.Expression]
) -> list[int]:
    """The places in ``known`` of what may hold rows that meet ``where``. Each of ``known`` holds
    for all rows of a file or a page.

    pyarrow decides, which has this for the folders of partitioned files.
    """
    if where is None:
        return list(range(len(known)))
    kind, place = pads.IpcFileFormat(), pyarrow.fs.LocalFileSystem()
    parts = [
        kind.make_fragment(str(at), place, partition_expression=fact)
        for at, fact in enumerate(known)
    ]
    dataset = pads.FileSystemDataset(parts, schema, kind, place)  # which opens no file
    return [int(part.path) for part in dataset.get_fragments(filter=where)]
