"""The first of groups by a number with NaN are those of all groups."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import blendfusion as bf

NUMBERS = [float("nan"), float("inf"), 0.0, -0.0, 1.5, None]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("order", ["ASC NULLS LAST", "DESC NULLS LAST"])
def test_groups_of_nan_come_once(kind: pa.DataType, order: str) -> None:
    for seed in range(6):
        source = random.Random(seed)
        session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
        values = pa.array([source.choice(NUMBERS) for _ in range(40)], kind)
        session.from_arrow(pa.table({"f": values}), name="t")
        every = session.sql(f"SELECT f FROM t GROUP BY f ORDER BY f {order}").to_pylist()
        some = session.sql(f"SELECT f FROM t GROUP BY f ORDER BY f {order} LIMIT 3").to_pylist()
        first, found = ([abs(row["f"]) for row in rows] for rows in (every[:3], some))
        assert repr(found) == repr(first)  # 0.0 or -0.0 stands for both
