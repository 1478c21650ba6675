"""Rows with NULL in a key of COPY … PARTITIONED BY are read back as they were written."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf

MOMENT = datetime.datetime(2024, 1, 1, 5, 30)
KEYS = {
    "text": pa.array(["a b", None, "", "c/d", "é", "x=1"]),
    "whole": pa.array([0, None, -1, 2, 3, 4]),
    "small": pa.array([0, None, 1, 2, 3, 4], pa.int8()),
    "number": pa.array([0.0, None, 1.5, -2.5, 1e300, 4.0]),
    "truth": pa.array([False, None, True, False, True, None]),
    "day": pa.array([datetime.date(1970, 1, day) for day in range(1, 6)] + [None]),
    "price": pa.array([Decimal("0.00"), None, *map(Decimal, ("1.10", "-2.05", "3.00", "4.00"))]),
    "moment": pa.array([None, *(MOMENT.replace(hour=hour) for hour in range(5))]),
    "word": pa.array(["a", None, "b", "a", None, "b"]).dictionary_encode(),
}


@pytest.fixture
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_arrow(pa.table({"id": range(6), **KEYS}), name="rows")
    return session


@pytest.mark.parametrize("stored", ["PARQUET", "CSV", "JSON"])
@pytest.mark.parametrize("keys", [*([name] for name in KEYS), ["truth", "text"], ["day", "whole"]])
@pytest.mark.parametrize(
    "source", ["rows", "(SELECT * FROM rows)", "(SELECT * FROM rows WHERE llm_filter('q', id))"]
)
def test_keys_are_read_back(
    session: bf.Session, stored: str, keys: Sequence[str], source: str, tmp_path: Path
) -> None:
    session.sql(
        f"COPY {source} TO '{tmp_path}/' STORED AS {stored} PARTITIONED BY ({', '.join(keys)}) "
        + ("OPTIONS ('format.has_header' 'true')" if stored == "CSV" else "")
    ).collect()
    found = session.register_file(tmp_path, "found").sort("id")
    written = session.table("rows").sort("id")
    for key in keys:
        texts = [text_of(v) for v in written.to_pydict()[key]]
        assert [text_of(v) for v in found.to_pydict()[key]] == texts
    assert found.to_pydict()["id"] == list(range(6))


def text_of(value: object) -> str | None:
    """A key as the name of its folder has it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    return str(value).replace("e+", "e")


@pytest.mark.parametrize("limit", ["", " LIMIT 15000"])
def test_the_order_of_a_source_stays(session: bf.Session, limit: str, tmp_path: Path) -> None:
    count = 20_000
    session.from_pydict({"id": range(count), "K": [None, 1] * (count // 2)}, "many")
    session.sql(
        f"COPY (SELECT id, \"K\" FROM many ORDER BY id DESC{limit} -- newest\n) TO '{tmp_path}/' "
        'STORED AS PARQUET PARTITIONED BY ("K")'
    ).collect()
    for file in tmp_path.rglob("*.parquet"):
        ids = pq.ParquetFile(file).read()["id"].to_pylist()
        assert len(ids) == (7500 if limit else 10_000)
        assert ids == sorted(ids, reverse=True)
    assert {folder.name for folder in tmp_path.iterdir()} == {"K=1", "K=__HIVE_DEFAULT_PARTITION__"}
