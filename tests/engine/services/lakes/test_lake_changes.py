"""Changes of a lake's table that its log states, and its files do not: deleted rows that are only
marked, columns with other names in files, and a schema that changes between two writes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True), cache=None, read_files="local")


def _marks(numbers: Sequence[int]) -> dict[str, Any]:
    """A deletion vector as the log holds it: one array of a Roaring bitmap in Z85."""
    head = struct.pack("<IQIIIHHI", 1681511377, 1, 0, 12346, 1, 0, len(numbers) - 1, 16)
    data = head + struct.pack(f"<{len(numbers)}H", *numbers)
    padded, text = data + b"\0" * (-len(data) % 4), ""
    for (number,) in struct.iter_unpack(">I", padded):
        text += "".join(_DIGITS[number // 85**place % 85] for place in range(4, -1, -1))
    return {
        "storageType": "i",
        "pathOrInlineDv": text,
        "sizeInBytes": len(data),
        "cardinality": len(numbers),
    }


def _write(place: Path, version: int, *actions: dict[str, Any]) -> None:
    lines = [json.dumps(action) + "\n" for action in actions]
    (place / "_delta_log" / f"{version:020}.json").write_text("".join(lines))


@pytest.mark.parametrize("by", [[], ["p"]])
def test_rows_that_are_marked_as_deleted(tmp_path: Path, by: list[str]) -> None:
    deltalake = pytest.importorskip("deltalake")
    rows = [{"id": n, "p": "a", "s": None if n % 5 == 0 else f"it's {n % 3}"} for n in range(40)]
    deltalake.write_deltalake(tmp_path, pa.Table.from_pylist(rows), partition_by=by)
    actions = [
        json.loads(line)
        for line in next(tmp_path.glob("_delta_log/*.json")).read_text().splitlines()
    ]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    for action in actions:
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    _write(tmp_path, 0, *actions)
    (added,) = (action["add"] for action in actions if "add" in action)
    gone = {name: added[name] for name in ("path", "partitionValues", "size")}
    deleted = [0, 2, 3, 17, 39]
    marked = {"add": {**added, "deletionVector": _marks(deleted)}}
    _write(tmp_path, 1, {"remove": {**gone, "deletionTimestamp": 1, "dataChange": True}}, marked)
    left = [row for row in rows if row["id"] not in deleted]
    tests: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
        ("TRUE", lambda row: True),
        ("id > 10", lambda row: row["id"] > 10),
        ("s = 'it''s 1'", lambda row: row["s"] == "it's 1"),
        ("s IN ('it''s 0', 'x') AND id <> 3", lambda row: row["s"] == "it's 0"),
        ("s IS NULL", lambda row: row["s"] is None),
        ("s IS NOT NULL AND p = 'a'", lambda row: row["s"]),
        ("id % 2 = 0 AND llm_filter('q', s)", lambda row: row["s"] and row["id"] % 2 == 0),
    ]
    found = session()
    found.register_lake("t", tmp_path)
    found.register_lake("before", tmp_path, version=0)
    table = deltalake.DeltaTable(tmp_path)  # noqa: F841 - a query reads it
    for name in ("t", "table"):
        for test, meets in tests:
            asked = found.sql(f"SELECT id, p, s FROM {name} WHERE {test} ORDER BY id")
            assert asked.to_pylist() == list(filter(meets, left)), test
        assert found.sql(f"SELECT count(*) AS n FROM {name}").to_pylist() == [{"n": len(left)}]
        ids = found.sql(f"SELECT id FROM {name} ORDER BY id DESC LIMIT 2").to_pydict()["id"]
        assert ids == [38, 37]
    assert found.table("before").count() == 40
    with pytest.raises(bf.QueryError, match="t cannot be written"):
        found.sql("ALTER TABLE t ADD COLUMN z AS (llm_text('q', s))")


@pytest.mark.parametrize("names", ["of the log", "their own"])
def test_columns_that_are_found_by_their_numbers(tmp_path: Path, names: str) -> None:
    """Files of another system keep its names, and the log says the numbers of columns: NULL for
    all values is the worst answer."""
    pytest.importorskip("deltalake")

    def column(name: str, number: int, kind: Any) -> dict[str, Any]:
        about = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
        return {"name": name, "type": kind, "nullable": True, "metadata": about}

    def field(number: int, kind: pa.DataType) -> pa.Field:
        name = f"c{number}" if names == "of the log" else f"other{number}"
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    inner = {"type": "struct", "fields": [column("y", 3, "long")]}
    schema = {"type": "struct", "fields": [column("x", 1, "long"), column("z", 2, inner)]}
    written = pa.schema([field(1, pa.int64()), field(2, pa.struct([field(3, pa.int64())]))])
    values = [{written.names[0]: 1, written.names[1]: {written.field(1).type.field(0).name: 5}}]
    file = tmp_path / "f.parquet"
    pq.write_table(pa.Table.from_pylist(values, written), file)
    (tmp_path / "_delta_log").mkdir()
    _write(
        tmp_path,
        0,
        {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}},
        {
            "metaData": {
                "id": "1",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": [],
                "configuration": {"delta.columnMapping.mode": "id"},
            }
        },
        {
            "add": {
                "path": file.name,
                "partitionValues": {},
                "size": file.stat().st_size,
                "modificationTime": 1,
                "dataChange": True,
            }
        },
    )
    found = session()
    if names == "their own":
        with pytest.raises(bf.QueryError, match="does not find the columns of"):
            found.register_lake("t", tmp_path)
        return
    found.register_lake("t", tmp_path)
    assert found.sql("SELECT x, z['y'] AS y FROM t").to_pylist() == [{"x": 1, "y": 5}]


def test_a_schema_that_changes_without_a_snapshot(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("n")
    written = pa.table({"x": [1, 2], "secret": ["s", "t"], "old": [3, None]})
    table = catalog.create_table("n.t", schema=written.schema)
    try:
        table.append(written)
        first = table.current_snapshot().snapshot_id
        found = session()
        found.register_lake("as_registered", table)
        from pyiceberg.types import LongType

        with table.update_schema() as update:
            update.delete_column("secret")
            update.rename_column("old", "new")
            update.add_column("added", LongType())
        found.register_lake("folder", tmp_path / "n" / "t")
        found.register_lake("object", table)
        found.register_lake("before", table, version=first)
        now = [{"x": 1, "new": 3, "added": None}, {"x": 2, "new": None, "added": None}]
        for name in ("folder", "object", "table"):
            assert found.sql(f"SELECT * FROM {name} ORDER BY x").to_pylist() == now
            kept = found.sql(f"SELECT x FROM {name} WHERE new = 3 AND added IS NULL").to_pylist()
            assert kept == [{"x": 1}]
        for name in ("before", "as_registered"):
            assert found.sql(f"SELECT * FROM {name} ORDER BY x").to_pylist() == written.to_pylist()
        versions = {found.version_of(name) for name in ("as_registered", "folder", "before")}
        assert len(versions) == 3
    finally:
        catalog.close()


def test_a_filter_of_a_snapshot_is_about_its_own_columns(tmp_path: Path) -> None:
    """Columns that were renamed since, exchanged their names, went, or came again."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    from pyiceberg.types import LongType

    catalog = sql.SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("n")
    rows = {"x": [1, 2, 3], "a": [10, 20, None], "b": [30, None, 10], "c": [1, 2, 2]}
    table = catalog.create_table("n.t", schema=pa.table(rows).schema)
    changes: list[list[Callable[[Any], object]]] = [
        [lambda u: u.rename_column("a", "z")],
        [lambda u: u.rename_column("b", "a"), lambda u: u.delete_column("c")],
        [lambda u: u.rename_column("z", "b"), lambda u: u.add_column("c", LongType())],
    ]
    try:
        snapshots = []
        for steps in [*changes, []]:
            table.append(
                pa.Table.from_pylist(pa.table(rows).to_pylist(), table.schema().as_arrow())
            )
            snapshots.append(table.current_snapshot().snapshot_id)
            for step in steps:
                with table.update_schema() as update:
                    step(update)
            rows = {f.name: rows.get(f.name, [7, 8, 9]) for f in table.schema().fields}
        found = session()
        found.register_table("now", table)
        for number, snapshot in enumerate(snapshots):
            found.register_lake(f"t{number}", table, version=snapshot)
        for name in ("now", *(f"t{number}" for number in range(len(snapshots)))):
            at = snapshots[-1] if name == "now" else snapshots[int(name[1:])]
            memory = table.scan(snapshot_id=at).to_arrow()
            found.from_arrow(memory, f"rows_{name}")
            for column in memory.schema.names:
                for test in (
                    "= 10",
                    "<> 10",
                    "< 20",
                    "IS NULL",
                    "IS NOT NULL",
                    "IN (20, 30)",
                    "IN (NULL)",
                ):
                    order = ", ".join(memory.schema.names)
                    query = f"SELECT * FROM {{}} WHERE {column} {test} ORDER BY {order}"
                    assert (
                        found.sql(query.format(name)).to_pylist()
                        == found.sql(query.format(f"rows_{name}")).to_pylist()
                    ), (name, column, test)
    finally:
        catalog.close()
