"""Frames that are written in folders by keys: NULL in a key is read back as NULL."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import DataFrameWriteOptions

import blendfusion as bf

ROWS = pa.table(
    {
        "id": range(4),
        "whole": [0, None, 1, 2],
        "Text": ["a", None, "", "c/d"],
        "truth": [False, None, True, None],
        "day": [datetime.date(1970, 1, 1), None, datetime.date(2024, 1, 1), None],
        "list": [[1], None, [], [2]],
    }
)


@pytest.mark.parametrize("method", ["write_parquet", "write_json", "write_csv"])
@pytest.mark.parametrize(
    "keys", [["whole"], ["Text"], ["truth"], ["day"], ["whole", "truth"], ["Text", "day"]]
)
@pytest.mark.parametrize("condition", ["id >= 0", "llm_filter('q', id)"])
def test_null_keys_are_read_back(
    method: str, keys: Sequence[str], condition: str, tmp_path: Path
) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_arrow(ROWS, name="rows")
    frame = session.sql(f"SELECT * FROM rows WHERE {condition}")
    more = {"with_header": True} if method == "write_csv" else {}
    options = DataFrameWriteOptions(partition_by=keys)
    getattr(frame, method)(f"{tmp_path}/", write_options=options, **more)
    found = session.register_file(tmp_path, "found").sort("id").to_pydict()
    assert found["id"] == [0, 1, 2, 3]
    for key in keys:
        texts = [None if v is None else str(v).lower() for v in ROWS[key].to_pylist()]
        assert [None if v is None else str(v).lower() for v in found[key]] == texts


def test_options_without_keys_write_the_rows_as_they_are(tmp_path: Path) -> None:
    session = bf.connect(None, cache=None)
    frame = session.from_arrow(ROWS, name="rows")
    options = DataFrameWriteOptions(single_file_output=True)
    frame.write_parquet(f"{tmp_path}/one.parquet", write_options=options)
    assert pq.read_table(tmp_path / "one.parquet").to_pylist() == ROWS.to_pylist()
    ordered = frame.sort(bf.col("id").sort(ascending=False))
    ordered.write_parquet(f"{tmp_path}/d/", write_options=DataFrameWriteOptions(partition_by="day"))
    (file,) = (tmp_path / "d" / "day=__HIVE_DEFAULT_PARTITION__").iterdir()
    assert pq.ParquetFile(file).read()["id"].to_pylist() == [3, 1]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["u", "", "v"])])
@pytest.mark.parametrize(
    "query", ["SELECT * FROM df", "SELECT *, llm_filter('q', word) AS z FROM df"]
)
def test_words_of_polars_are_written(kind: object, query: str, tmp_path: Path) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    words = ["u", None, "", "v"]
    df = pl.DataFrame({"id": range(4), "word": pl.Series(words, dtype=kind)})  # type: ignore[call-overload]
    assert len(df) == len(words)
    frame = session.sql(query)
    for ending, write in ((".parquet", frame.write_parquet), (".json", frame.write_json)):
        write(tmp_path / f"words{ending}")
        found = session.register_file(tmp_path / f"words{ending}", f"words{ending[1:]}")
        assert found.sort("id").to_pydict()["word"] == words
