"""Random writes to attached databases against a table that Python keeps."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from amounts import long_after
from attached import KINDS, opened

import blendfusion as bf

TEXTS = ["a", "A", "", "é", "it's", 'q"q', "\\", "%s", "a\nb", "z" * 300, None]
NUMBERS = [-(2**62), -1, 0, 7, 2**62, None]
FRACTIONS = [-1.5, 0.1, 1e300, 5e-324, 2.0, None]
DAYS = [datetime.date(1969, 7, 20), datetime.date(2024, 2, 29), None]
SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "s": pa.string(),
        "n": pa.int64(),
        "f": pa.float64(),
        "d": pa.date32(),
    }.items()
)
VALUES: dict[str, list[Any]] = {"s": TEXTS, "n": NUMBERS, "f": FRACTIONS, "d": DAYS}
Row = dict[str, Any]


def rows_of(rng: random.Random, names: list[str], *, distinct: bool) -> list[Row]:
    keys = rng.sample(range(40), rng.randrange(12))
    if not distinct:
        keys += keys[:2]
    return [{"k": key, **{name: rng.choice(VALUES[name]) for name in names}} for key in keys]


def expected(table: list[Row], rows: list[Row], mode: str, names: list[str]) -> list[Row]:
    """What the table has after the write."""
    empty = dict.fromkeys(SCHEMA.names)
    if mode == "replace":
        return [{**empty, **row} for row in rows]
    if mode == "append":
        return table + [{**empty, **row} for row in rows]
    new = {row["k"]: row for row in rows}
    kept = [{**row, **new.get(row["k"], {})} for row in table]
    there = {row["k"] for row in table}
    return kept + [{**empty, **row} for row in rows if row["k"] not in there]


def in_order(rows: list[Row]) -> list[str]:
    return sorted(repr(row) for row in rows)


def write(session: bf.Session, rng: random.Random, table: list[Row]) -> list[Row]:
    """One random write; the rows that the table should have."""
    mode = rng.choice(("append", "replace", "upsert", "upsert"))
    names = list(VALUES) if mode == "replace" else rng.sample(list(VALUES), rng.randrange(5))
    rows = rows_of(rng, names, distinct=mode == "upsert")
    schema = pa.schema([SCHEMA.field(name) for name in rng.sample(["k", *names], 1 + len(names))])
    frame = session.new_table(pa.Table.from_pylist(rows, schema))
    if mode == "append" and rng.random() < 0.5:
        columns = ", ".join(schema.names)
        insert = f"INSERT INTO d.t ({columns}) SELECT * FROM $frame"
        assert session.sql(insert, frame=frame).to_pylist() == [{"count": len(rows)}]
    else:
        key = "k" if mode == "upsert" else None
        assert frame.write_table("d.t", mode=mode, key=key).rows == len(rows)
    return expected(table, rows, mode, names)


@pytest.mark.parametrize("kind", long_after(2, KINDS))
def test_random_writes(kind: str, tmp_path: Path, cases: int) -> None:
    session = opened(KINDS[kind](tmp_path))
    session.new_table(SCHEMA.empty_table()).write_table("d.t")
    table: list[Row] = []
    for number in range(max(8, cases // 100)):
        table = write(session, random.Random(number), table)
        found = session.table("d.t").to_pylist()
        assert in_order(found) == in_order(table), number
        if len(table) > 200:
            table = []
            session.new_table(SCHEMA.empty_table()).write_table("d.t", mode="replace")
    session.close()
