"""Keys of rows are equal where DataFusion groups the rows' values as equal."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext

from blendfusion.udfs.evaluate.row_keys import row_keys

MOMENTS = [
    datetime.datetime(2024, 10, 27, hour, minute, second, microsecond)
    for hour in (0, 1, 2)
    for minute, second, microsecond in ((30, 0, 0), (30, 0, 1), (59, 59, 999_999))
]
"""In UTC: clocks of Berlin show 2:30 twice."""
OTHERS: dict[pa.DataType, list[object]] = {
    pa.date32(): [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    pa.time64("ns"): [1, 1_000, 2],
    pa.duration("ns"): [1, -1, 2**62],
    pa.timestamp("s"): [-(10**12), 10**12],
    pa.month_day_nano_interval(): [(1, 0, 0), (0, 30, 0), (0, 0, 1)],
    pa.float64(): [0.0, -0.0, float("nan"), float("inf"), 0.1],
    pa.float32(): [0.1, float("nan")],
    pa.decimal128(30, 2): [Decimal("1.10"), Decimal("-0.01"), Decimal(10**27)],
    pa.dictionary(pa.int8(), pa.string()): ["a", "b"],
    pa.binary(): [b"", b"\xff"],
    pa.bool_(): [True, False],
    pa.string_view(): ["a", "", "ä"],
    pa.list_(pa.int32()): [[1, 2], [], [None]],
    pa.struct([("a", pa.int32())]): [{"a": 1}, {"a": None}],
}
COLUMNS = [
    *(pa.array(MOMENTS, pa.timestamp("us", zone)) for zone in (None, "UTC", "Europe/Berlin")),
    pa.array(MOMENTS, pa.timestamp("ns", "America/New_York")),
    pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")).dictionary_encode(),
    *(pa.array(values, kind) for kind, values in OTHERS.items()),
]


@pytest.mark.parametrize("values", COLUMNS, ids=lambda values: str(values.type))
def test_keys_are_equal_where_values_are(values: pa.Array) -> None:
    column = pa.concat_arrays([values, pa.nulls(2, values.type), values])
    context = SessionContext()
    table = pa.table({"i": pa.array(range(len(column))), "v": column})
    context.register_record_batches("t", [table.to_batches()])
    groups = context.sql("SELECT array_agg(i ORDER BY i) AS i FROM t GROUP BY v").to_pydict()["i"]
    keyed: dict[object, list[int]] = {}
    for i, key in enumerate(row_keys([column], len(column))):
        keyed.setdefault(key, []).append(i)
    assert sorted(keyed.values()) == sorted(groups)
