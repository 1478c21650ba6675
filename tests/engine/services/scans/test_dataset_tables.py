"""Datasets of pyarrow and other scans in Python: rows as SQL means them, and a process that ends
while they run."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
import textwrap
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import blendfusion as bf

NAN = "CAST('NaN' AS DOUBLE)"
TESTS = [
    *(f"f {sign} {value}" for sign in ("=", "<>", "<", "<=", ">", ">=") for value in (0.0, 1, 5)),
    *(f"f {sign} {NAN}" for sign in ("=", "<>", "<", "<=", ">", ">=")),
    *("NOT (f < 5)", "f IN (0.0, 1)", "f NOT IN (0.0, 1)", f"f BETWEEN -1 AND {NAN}", "f IS NULL"),
    *("i = 1 OR f > 2", "i > 1 AND f > 2", "f > i", "i NOT IN (1, 2)", "i NOT IN (1, NULL)"),
    *("s > 'a'", "s NOT IN ('a')", "s LIKE 'a%'", "b", "NOT b", "b IS NOT TRUE", "m IN (1.1, 2)"),
    *("i = 1 AND i = 2", "i IN (NULL)", "s = 'a' AND s = 'b' AND f > 1", "p IN ('x') AND p = 'y'"),
    *("d >= DATE '1970-01-02'", "p = 'x'", "p IS NULL", "p <> 'x' AND f >= 5", "p IN ('x', 'y')"),
]
ROWS = pa.table(
    {
        "id": range(6),
        "i": [1, 2, None, 3, 4, None],
        "f": [1.0, math.nan, None, -0.0, 0.0, 5.0],
        "s": ["a", None, "b", "", "é", "A"],
        "b": [True, False, None, True, False, None],
        "m": [Decimal("1.1"), None, Decimal("2.2")] * 2,
        "d": [datetime.date(1970, 1, 1 + day) for day in range(6)],
        "p": ["x", "y", None] * 2,
    }
)


@pytest.fixture(params=["file", "folders", "memory"])
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> pads.Dataset:
    if request.param == "memory":
        return pads.dataset(ROWS)
    if request.param == "file":
        pq.write_table(ROWS, tmp_path / "f.parquet", row_group_size=2)
        return pads.dataset(tmp_path / "f.parquet")
    parts = pads.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    pads.write_dataset(ROWS, tmp_path, format="parquet", partitioning=parts)
    return pads.dataset(tmp_path, partitioning="hive")


def test_rows_are_those_of_memory(dataset: pads.Dataset) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.register_dataset("t", dataset)
    session.from_arrow(ROWS, "memory")
    call = "llm_filter('q', CAST(id AS TEXT))"
    for test in TESTS:
        for where in (test, f"({test}) AND {call}"):
            sql = f"SELECT id, s FROM {{}} WHERE {where} ORDER BY id"
            found, right = (session.sql(sql.format(t)).to_pylist() for t in ("t", "memory"))
            assert found == right, where
    assert session.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 6}]


def test_a_process_ends_while_a_limit_leaves_scans() -> None:
    """The second part is still read when the first has given the row that the limit wants."""
    program = """
        import time
        import pyarrow as pa
        import blendfusion as bf
        from blendfusion.services.scans.python_table import FilteredRows, ScannedTable

        class Slow(ScannedTable):
            schema = pa.schema([("x", pa.int64())])

            def scans(self):
                return [lambda *wanted, wait=wait: self.read(wait) for wait in (0, 0.4)]

            def read(self, wait):
                def batches():
                    time.sleep(wait)
                    yield pa.RecordBatch.from_pydict({"x": [1]})

                return FilteredRows(batches(), self.schema, ["x"], None)

        session = bf.connect(None, cache=None)
        session.register_dataset("t", Slow())
        print(session.sql("SELECT x FROM t LIMIT 1").to_pylist())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "[{'x': 1}]\n"), ended.stderr
