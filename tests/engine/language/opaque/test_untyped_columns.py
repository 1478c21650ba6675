"""Columns of NULLs alone, which have no type, change nothing of what is beside them."""

from __future__ import annotations

import datetime
import itertools
import warnings
from decimal import Decimal

import pyarrow as pa
import pytest
from scripts import both_ways

import blendfusion as bf

VALUES = {
    "i": pa.array([9, 10, 100, None, -5]),
    "u": pa.array([9, 10, 2**63, None, 8], pa.uint64()),
    "f": pa.array([9.5, 10.0, 100.0, None, -5.0]),
    "dec": pa.array([*map(Decimal, ("9.50", "10.00", "100.00")), None, Decimal("-5.00")]),
    "d": pa.array([datetime.date(year, 1, 1) for year in (1, 900, 9999, 1970, 2024)]),
    "ts": pa.array([9, 10**12, -(10**12), None, 253402300799999999], pa.timestamp("us")),
    "b": pa.array([True, False, None, True, False]),
    "s": pa.array(["9", "10", "b", None, ""]),
}
MIXED = [
    *("coalesce(void, {c})", "coalesce({c}, void)", "nvl(void, {c})", "greatest({c}, void)"),
    *("CASE WHEN id > 2 THEN void ELSE {c} END", "CASE WHEN void IS NULL THEN {c} ELSE void END"),
    *("nullif({c}, void)", "coalesce((SELECT max(void) FROM t), {c})"),
]
QUERIES = [
    "SELECT id FROM t WHERE llm_filter('q', k) ORDER BY {e} DESC NULLS LAST, id LIMIT 2",
    "SELECT id, row_number() OVER (ORDER BY {e}, id) AS z, llm_text('q', k) AS v FROM t",
    "SELECT max({e}) AS z FROM t WHERE llm_filter('q', k)",
    "SELECT id, {e} AS z FROM t WHERE llm_filter('q', k)",
    "SELECT {c} AS z, llm_text('q', k) AS v FROM t UNION ALL SELECT void, k FROM t",
]


@pytest.mark.parametrize("column", VALUES)
def test_rows(column: str) -> None:
    keys = {"id": range(5), "k": list("abcde"), "void": pa.nulls(5)}
    planned, plain = both_ways(pa.table({**keys, **VALUES}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.PlanWarning)  # where nothing has a form, it runs plain
        for mixed, query in itertools.product(MIXED, QUERIES):
            sql = query.format(e=mixed.format(c=column), c=column)
            try:
                rows = sorted(plain.rows(sql), key=repr)
            except bf.BlendFusionError:
                continue  # DataFusion has no such operation
            assert sorted(planned.rows(sql), key=repr) == rows, sql
