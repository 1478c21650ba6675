"""Results of every type in each format, and as they are drawn."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from datafusion import SessionContext

import blendfusion as bf
from blendfusion.apps.cli.results import page_of, write
from blendfusion.files.reading import register_file

ODD = pa.table(
    {
        "not_a_number": pa.array([float("nan"), float("-inf"), 1.5]),
        "decimal": pa.array(["123456789012345678.25", "-0.5", None]).cast(pa.decimal128(20, 2)),
        "order": pa.array([9007199254740993, None, 7]),
        "interval": pa.array(
            [(1, 2, 3_500_000_000), (0, 0, 0), None], pa.month_day_nano_interval()
        ),
        "duration": pa.array([90061, -1, None], pa.duration("s")),
        "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "nested": pa.array([[{"x": float("inf")}], [], None]),
    }
)


def test_json_is_what_every_reader_of_json_knows(tmp_path: Path) -> None:
    file = tmp_path / "o.json"
    write(ODD, "json", file)
    refused: Any = {"parse_constant": pytest.fail, "parse_float": Decimal}
    first, second, third = (json.loads(line, **refused) for line in file.read_text().splitlines())
    assert first == {
        "not_a_number": None,
        "decimal": Decimal("123456789012345678.25"),
        "order": 9007199254740993,
        "interval": "1 mons 2 days 3.5 secs",
        "duration": "1 days 1 hours 1 mins 1 secs",
        "map": {"k": 1},
        "nested": [{"x": None}],
    }
    assert (second["decimal"], second["interval"], second["map"]) == (
        Decimal("-0.50"),
        "0 secs",
        {},
    )
    assert (third["not_a_number"], third["map"]) == (Decimal("1.5"), None)
    register_file(context := SessionContext(), str(file), "t")
    read = context.sql('SELECT count(*) AS n, max(CAST("interval" AS INTERVAL)) AS i FROM t')
    assert read.to_pylist() == [{"n": 3, "i": pa.MonthDayNano((1, 2, 3_500_000_000))}]


def test_types_that_a_format_lacks_become_text(tmp_path: Path) -> None:
    parquet, sheet = tmp_path / "o.parquet", tmp_path / "o.xlsx"
    write(ODD, "parquet", parquet)
    read = pyarrow.parquet.read_table(parquet)
    assert read["interval"].to_pylist() == ["1 mons 2 days 3.5 secs", "0 secs", None]
    assert read["map"].type == ODD["map"].type
    pytest.importorskip("openpyxl")
    write(ODD, "xlsx", sheet)
    (first, _, third) = bf.connect().register_file(sheet, "t").to_pylist()
    assert (first["order"], first["decimal"]) == ("9007199254740993", "123456789012345678.25")
    assert (third["order"], third["not_a_number"]) == ("7", "1.5")


def test_a_row_that_is_wider_than_the_screen_is_drawn_value_below_value(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wide = pa.table({f"column_{i}": [f"value {i} of a row that is wide", None] for i in range(9)})
    monkeypatch.setenv("COLUMNS", "80")
    page = page_of(wide)
    assert page.splitlines()[0].startswith("row 1 ─")
    assert re.search(r"^column_8 +value 8 of a row that is wide *$", page, re.MULTILINE)
    assert page.endswith("2 rows\n")
    monkeypatch.setenv("COLUMNS", "400")
    assert "row 1" not in page_of(wide)
    write(wide, "table", tmp_path / "o.txt")  # a file has room
    assert len((tmp_path / "o.txt").read_text("utf-8").splitlines()) == 5


def test_periods_of_pandas_are_text() -> None:
    pd = pytest.importorskip("pandas")
    months = pd.PeriodIndex(["2024-01", None], freq="M", name="month")
    frame = pd.DataFrame(
        {"quarter": pd.PeriodIndex(["2024Q1", "2024Q2"], freq="Q"), "n": [1, 2]}, index=months
    )
    session = bf.connect(None, cache=None)
    assert session.from_pandas(frame, "t").select("quarter", "n").to_pylist() == [
        {"quarter": "2024Q1", "n": 1}, {"quarter": "2024Q2", "n": 2}
    ]  # fmt: skip
    assert session.table("t").to_pydict()["month"][0] == "2024-01"
    assert str(frame.dtypes["quarter"]) == "period[Q-DEC]"
