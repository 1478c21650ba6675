"""Random tables whose rows fall into groups, with NULLs and texts that repeat."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa


def grouped_table(
    source: random.Random,
    *,
    groups: int,
    floats: Sequence[float] = (),
    texts: int = 40,
    sizes: Sequence[int] = (0, 1, 30, 60),
) -> pa.Table:
    """A table of one of the ``sizes``: ``id`` numbers the rows, ``k`` is one of the ``groups``, ``n``
    is 0 to 2, ``d`` one of the ``floats`` (left out if there are none) and ``x`` one of the
    ``texts``; all but ``id`` may be NULL."""
    size = source.choice(sizes)

    def column(*values: object) -> list[object]:
        return [source.choice([None, *values]) for _ in range(size)]

    columns: dict[str, list[object]] = {
        "id": [*range(size)],
        "k": column(*range(groups)),
        "n": column(0, 1, 2),
    }
    if floats:
        columns["d"] = column(*floats)
    columns["x"] = column(*(f"v{i}" for i in range(texts)))
    kinds = {"id": "int64", "k": "int64", "n": "int64", "d": "float64", "x": "string"}
    return pa.table(columns, pa.schema({name: kinds[name] for name in columns}))
