"""No door of text shortens a value: nanoseconds, days beyond Python's calendar, narrow floats."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.apps.page_writers import PAGE_WRITERS
from blendfusion.apps.ui.cells import column_cells
from blendfusion.files.python_values import python_values
from blendfusion.files.row_writers import write_json_lines
from blendfusion.services.mcp.answers import cell

_TIMES = [
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.date32(), pa.date64()),
]
_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}


def _numbers(kind: pa.DataType, source: random.Random) -> list[int | None]:
    """Numbers behind values of a type, near its ends and near 1970."""
    unit = "ms" if pa.types.is_date64(kind) else getattr(kind, "unit", "day")
    day = _DAY.get(unit, 1)
    if pa.types.is_time(kind):
        return [0, 1, 999, 1000, day - 1, source.randrange(day), None]
    most = min(2**63 // day - 1, 20_000 * 365)
    days = [0, -1, -719_162, -719_163, 2_932_896, 2_932_897, source.randrange(-most, most)]
    days = [d for d in days if abs(d) <= most]
    if pa.types.is_date(kind):
        return [d * (day if unit == "ms" else 1) for d in days] + [None]
    return [d * day + source.choice([0, 1, 1000, day - 1]) for d in days] + [None]


def _wrapped(values: pa.Array) -> dict[str, tuple[pa.Array, Callable[[object], object]]]:
    """The values as they are, and inside of nested types, with a function that takes them out."""
    keys = pa.array([str(i) for i in range(len(values))])
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return {
        "plain": (values, lambda held: held),
        "list": (pa.ListArray.from_arrays(offsets, values), lambda held: held[0]),
        "struct": (pa.StructArray.from_arrays([values], ["v"]), lambda held: held["v"]),
        "map": (
            pa.MapArray.from_arrays(offsets, keys, values),
            lambda held: next(iter(held.values())),
        ),
        "dictionary": (values.dictionary_encode(), lambda held: held),
    }


@pytest.mark.parametrize("kind", _TIMES, ids=str)
def test_lines_of_json_have_every_digit_of_a_time(kind: pa.DataType) -> None:
    source = random.Random(str(kind))
    for _ in range(20):
        numbers = _numbers(kind, source)
        for way, (values, inner) in _wrapped(pa.array(numbers, kind)).items():
            file = io.BytesIO()
            write_json_lines([pa.table({"v": values})], file)
            texts = [inner(json.loads(line)["v"]) for line in file.getvalue().splitlines()]
            assert [_number(text, kind) for text in texts] == numbers, (way, texts)


def _number(text: object, kind: pa.DataType) -> int | None:
    """The number behind the text of a time."""
    if text is None:
        return None
    assert isinstance(text, str)
    moment = np.datetime64(f"1970-01-01T{text}" if pa.types.is_time(kind) else text)
    unit = {"date32[day]": "D", "date64[ms]": "ms"}.get(str(kind)) or kind.unit
    return int(moment.astype(f"datetime64[{unit}]").astype(np.int64))


def test_a_time_with_nanoseconds_and_a_zone_keeps_both() -> None:
    moments = pa.array([1_711_846_800_000_000_001, 0], pa.timestamp("ns", tz="Europe/Berlin"))
    text, moment = python_values(moments)
    assert text == "2024-03-31T03:00:00.000000001+02:00"
    assert moment.isoformat() == "1970-01-01T01:00:00+01:00"
    assert python_values(moments, " ")[0] == "2024-03-31 03:00:00.000000001+02:00"


@pytest.mark.parametrize("width", [16, 32])
def test_a_narrow_float_has_no_more_digits_than_it_holds(width: int) -> None:
    kind = {16: np.float16, 32: np.float32}[width]
    source = np.random.default_rng(width)
    numbers = source.standard_normal(200).astype(kind)
    found = python_values(pa.array(numbers))
    assert [kind(v) for v in found] == list(numbers)
    assert max(len(str(abs(v)).replace(".", "").strip("0")) for v in found) <= (5, 9)[width == 32]


@pytest.mark.parametrize("style", PAGE_WRITERS)
def test_a_page_shows_numbers_that_are_not_finite(style: str) -> None:
    rows = pa.table({"v": pa.array([float("nan"), float("-inf"), None])})
    file = io.BytesIO()
    PAGE_WRITERS[style]([rows], file)
    text = file.getvalue().decode()
    assert "nan" in text
    assert "-inf" in text
    assert "None" not in text


_NOT_HELD = [
    ("to_pylist", "DATE '9999-12-31' + INTERVAL '1 day'", "date32[day] that Python"),
    ("to_pydict", "arrow_cast(-800000, 'Date32')", "date32[day] that Python"),
    ("to_pylist", "CAST('23:59:59.999999999' AS TIME)", "time64[ns] that Python"),
    ("to_pandas", "CAST('23:59:59.999999999' AS TIME)", "time64[ns] that pandas"),
    ("to_pandas", "DATE '9999-12-31' + INTERVAL '1 day'", "date32[day] that pandas"),
    (
        "to_polars",
        f"arrow_cast('{'9' * 45}', 'Decimal256(70, 2)')",
        "decimal256(70, 2) that Polars",
    ),
]


@pytest.mark.parametrize(("method", "value", "words"), _NOT_HELD)
def test_a_value_that_no_object_holds_is_an_error_with_its_column(
    method: str, value: str, words: str
) -> None:
    frame = bf.connect().sql(f"SELECT 1 AS a, {value} AS d")
    with pytest.raises(bf.QueryError, match=rf"column 'd' has a value of {re.escape(words)}"):
        getattr(frame, method)()
    assert frame.to_arrow_table().num_rows == 1
    assert "<table" in frame._repr_html_()


def test_polars_has_moments_of_offsets_and_decimals_that_fit() -> None:
    zoned = """arrow_cast(0, 'Timestamp(Millisecond, Some("+05:30"))')"""
    frame = bf.connect().sql(f"SELECT {zoned} AS t, arrow_cast('1.5', 'Decimal256(70, 2)') AS d")
    (row,) = frame.to_polars().to_dicts()
    assert row["t"].isoformat() == "1970-01-01T00:00:00+00:00"
    assert str(row["d"]) == "1.50"


def test_doors_of_json_show_intervals_as_text() -> None:
    intervals = pa.chunked_array([pa.array([pa.MonthDayNano([1, 2, 500_000_000]), None])])
    durations = pa.chunked_array([pa.array([1, 2000], pa.duration("ns"))])
    assert column_cells(intervals) == ["1 mons 2 days 0.5 secs", None]
    assert column_cells(durations) == ["0.000000001 secs", "0.000002 secs"]
    assert [*map(cell, python_values(durations))] == column_cells(durations)
