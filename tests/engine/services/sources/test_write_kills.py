"""Programs that are killed while they write: the table is the old one or the new one."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attached import KINDS, opened

ROWS = 4_000
PROGRAM = f"""
import sys, time
import pyarrow as pa
import blendfusion as bf

session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
session.attach(sys.argv[1], name="d", read_only=False)
ids, writes = pa.array(range({ROWS})), [
    lambda frame: frame.write_table("d.t", mode="replace"),
    lambda frame: frame.write_table("d.t", mode="upsert", key="id"),
    lambda frame: session.sql("CREATE OR REPLACE TABLE d.t AS SELECT * FROM $frame", frame=frame),
]
for number in range(10**6):
    versions = pa.array([time.time_ns()] * {ROWS})
    writes[number % len(writes)](session.new_table(pa.table({{"id": ids, "v": versions}})))
    print("wrote", flush=True)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_program_leaves_the_old_table_or_the_new_one(
    kind: str, tmp_path: Path, cases: int
) -> None:
    url = KINDS[kind](tmp_path)
    rng = random.Random(7)
    for _ in range(max(3, cases // 1000)):
        writer = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, cwd=tmp_path
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"wrote\n"
        time.sleep(rng.random() * 0.4)
        writer.kill()
        writer.communicate()
        session = opened(url)
        query = "SELECT count(*) AS n, count(DISTINCT id) AS ids, count(DISTINCT v) AS v FROM d.t"
        assert session.sql(query).to_pylist() == [{"n": ROWS, "ids": ROWS, "v": 1}]
        session.close()
