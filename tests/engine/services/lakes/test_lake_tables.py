"""Tables of Delta Lake and Iceberg, read by their logs."""

from __future__ import annotations

import datetime
import sys
import types
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import blendfusion as bf


def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True), cache=None, read_files="local")


def ids(found: bf.Session, sql: str) -> list[Any]:
    return sorted(found.sql(sql).to_pydict()["x"])


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    deltalake = pytest.importorskip("deltalake")
    place = tmp_path / "orders"
    rows = pa.table({"p": ["a", "a", "b"], "x": [1, 2, 3]})
    deltalake.write_deltalake(place, rows, partition_by=["p"])
    deltalake.write_deltalake(place, pa.table({"p": ["c"], "x": [4]}), mode="append")
    deltalake.DeltaTable(place).delete("x = 2")
    return place


def test_delta_has_versions_and_no_deleted_rows(delta: Path) -> None:
    found = session()
    found.register_lake("now", delta)
    found.register_lake("first", delta, version=0)
    found.register_lake("later", str(delta), at=datetime.datetime.now(datetime.UTC))
    assert ids(found, "SELECT x FROM now") == [1, 3, 4]
    assert ids(found, "SELECT x FROM first") == [1, 2, 3]
    assert ids(found, "SELECT x FROM later WHERE p = 'a'") == [1]
    asked = found.sql("SELECT x FROM now WHERE p IN ('a', 'b') AND llm_filter('Good?', p)")
    assert sorted(asked.to_pydict()["x"]) == [1, 3]
    assert asked.trace.usage.values == 2
    assert found.register_file(delta, "file").count() == 3
    assert ids(found, f"SELECT x FROM '{delta}'") == [1, 3, 4]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("by", [["p"], ["p", "q"], ["n", "p"]], ids="-".join)
def test_an_empty_text_of_a_partition_is_null(
    by: list[str], kind: pa.DataType, tmp_path: Path
) -> None:
    """The protocol has it so, as have all readers; in a column of rows it stays empty."""
    deltalake = pytest.importorskip("deltalake")
    texts = ["", None, "a", " ", "", "NULL"]
    columns = {"p": pa.array(texts, kind), "q": pa.array(texts[::-1], kind)}
    rows = pa.table({"x": range(6), "n": [1, None, 1, 2, 2, 3], **columns})
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=by)
    expected = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().sort_by("x")
    found = session()
    if by == ["p"]:
        found.register_table("t", deltalake.DeltaTable(tmp_path / "t"))
    else:
        found.register_lake("t", tmp_path / "t")
    assert found.sql("SELECT * FROM t ORDER BY x").to_pylist() == expected.to_pylist()
    for where in ("IS NULL", "= ''", "IS NOT NULL", "<> 'a'", "IN ('', 'a')", "< 'b'"):
        for name in ("p", "q"):
            kept = duckdb.sql(f"SELECT x FROM expected WHERE {name} {where} ORDER BY x").fetchall()
            assert ids(found, f"SELECT x FROM t WHERE {name} {where}") == [x for (x,) in kept]
    asked = found.sql("SELECT p FROM t WHERE llm_filter('Good?', p) ORDER BY p").to_pydict()
    assert asked["p"] == ["NULL", "a"]


def test_a_partition_by_binary_values_is_refused(tmp_path: Path) -> None:
    """The library reads b"a" as b"\\u0061", the spelling of the log."""
    deltalake = pytest.importorskip("deltalake")
    rows = pa.table({"x": [1, 2], "p": pa.array([b"a", None], pa.binary())})
    deltalake.write_deltalake(tmp_path / "t", rows, partition_by=["p"])
    with pytest.raises(bf.QueryError, match="is partitioned by 'p', whose binary values"):
        session().register_lake("t", tmp_path / "t")
    with pytest.raises(bf.QueryError, match="is partitioned by 'p', whose binary values"):
        session().register_table("t", deltalake.DeltaTable(tmp_path / "t"))


def test_what_pyiceberg_does_not_read_is_an_error_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    place = f"sqlite:///{tmp_path / 'c.db'}"
    catalog = sql.SqlCatalog("c", uri=place, warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=pa.schema([("x", pa.int64())]))
    try:

        def refuse(scan: object) -> None:
            raise ValueError("PyIceberg does not yet support equality deletes: https://x.example")

        monkeypatch.setattr("pyiceberg.table.DataScan.to_arrow_batch_reader", refuse)
        found = session()
        found.register_lake("t", table)
        with pytest.raises(bf.QueryError, match=r"support equality deletes\s") as raised:
            found.sql("SELECT x FROM t WHERE x > 1").collect()
        assert "rewrite the files" in str(raised.value.hint)
    finally:
        catalog.close()


def test_a_version_that_is_not_there(delta: Path) -> None:
    with pytest.raises(bf.QueryError, match="no table of Delta Lake at"):
        session().register_lake("t", delta, version=99)
    with pytest.raises(bf.ArgumentError, match="not both"):
        session().register_lake("t", delta, version=1, at="2024-01-31")
    with pytest.raises(bf.ArgumentError, match="is not a time"):
        session().register_lake("t", delta, at="yesterday")
    with pytest.raises(bf.ArgumentError, match="is no table of a lake"):
        session().register_lake("t", 5)


def test_iceberg(tmp_path: Path) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog(
        "c", uri=f"sqlite:///{tmp_path / 'c.db'}", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("n")
    schema = pa.schema([("p", pa.string()), ("x", pa.int64()), ("f", pa.float64())])
    table = catalog.create_table("n.t", schema=schema)
    try:
        table.append(pa.table({"p": ["a", None], "x": [1, 2], "f": [1.5, None]}, schema=schema))
        first = table.current_snapshot().snapshot_id
        table.append(pa.table({"p": ["c"], "x": [3], "f": [2.5]}, schema=schema))
        table.delete("x = 1")
        found = session()
        found.register_lake("now", tmp_path / "n" / "t")
        found.register_lake("first", table, version=first)
        assert ids(found, "SELECT x FROM now") == [2, 3]
        assert ids(found, "SELECT x FROM first") == [1, 2]
        for asof, expected in [
            (f"VERSION AS OF {first}", [1, 2]),
            (f"FOR SYSTEM_VERSION AS OF {first} AS o WHERE o.x > 1", [2]),
            ("TIMESTAMP AS OF '2999-01-01'", [2, 3]),
        ]:
            assert ids(found, f"SELECT x FROM now {asof}") == expected, asof
        for asof in ("VERSION AS OF 7", "TIMESTAMP AS OF '1999-01-01'"):
            with pytest.raises(bf.QueryError, match="no such version"):
                found.sql(f"SELECT x FROM now {asof}")
        for where, expected in [
            ("x > 1", [2, 3]),
            ("p = 'c'", [3]),
            ("p <> 'c'", []),
            ("p NOT IN ('c', 'd', 'e', 'f')", []),
            ("p IS NULL", [2]),
            ("x IN (3, 4, 5, 6) OR f > 1", [3]),
            ("f > 2 AND x < 9", [3]),
        ]:
            assert ids(found, f"SELECT x FROM now WHERE {where}") == expected, where
        assert found.sql("SELECT count(*) AS n FROM now").to_pylist() == [{"n": 2}]
        assert sorted(found.sql("SELECT x FROM table").to_pydict()["x"]) == [2, 3]
        assert found.register_file(tmp_path / "n" / "t", "file").count() == 2
        with pytest.raises(bf.QueryError, match="no such version"):
            found.register_lake("none", table, version=7)
    finally:
        catalog.close()


def test_variables_of_other_libraries(delta: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import deltalake

    orders = deltalake.DeltaTable(delta)
    relation = duckdb.sql("SELECT 7 AS x")

    class Dataset:
        def with_format(self, kind: str) -> dict[slice, pa.Table]:
            assert kind == "arrow"
            return _Whole()

    class _Whole(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: object) -> pa.Table:
            return pa.table({"x": [8]})

    module = types.ModuleType("datasets.arrow_dataset")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    Dataset.__module__ = module.__name__
    reviews = Dataset()
    found = session()
    query = "SELECT x FROM orders UNION ALL SELECT x FROM relation UNION ALL SELECT x FROM reviews"
    assert sorted(found.sql(query).to_pydict()["x"]) == [1, 3, 4, 7, 8]
    assert orders.version() == 2
    assert relation.columns == ["x"]
    assert reviews is not None


@pytest.mark.parametrize(
    ("tables", "rows"),
    [
        ("orders VERSION AS OF 0", [1, 2, 3]),
        ("orders FOR VERSION AS OF 1", [1, 2, 3, 4]),
        ("orders FOR SYSTEM_VERSION AS OF 0 o WHERE o.p = 'a'", [1, 2]),
        ("orders VERSION AS OF 0\n AS o WHERE o.p = 'a'", [1, 2]),
        ("orders VERSION AS OF 0 WHERE orders.p = 'a'", [1, 2]),
        ("orders TIMESTAMP AS OF '2999-01-01'", [1, 3, 4]),
        ("orders", [1, 3, 4]),
        ("(SELECT n.x FROM orders n JOIN orders VERSION AS OF 0 b ON n.x = b.x)", [1, 3]),
    ],
)
def test_a_query_names_a_version(delta: Path, tables: str, rows: list[int]) -> None:
    found = session()
    found.register_lake("orders", delta)
    assert ids(found, f"SELECT x FROM {tables}") == rows
    assert sorted(found.sql(f"SELECT x FROM {tables}", read_only=True).to_pydict()["x"]) == rows


def test_versions_that_cannot_be_read(delta: Path) -> None:
    found = session()
    found.register_lake("orders", delta)
    found.from_pydict({"x": [1]}, name="t")
    for text, message in (
        ("t VERSION AS OF 0", "t has no versions"),
        ("orders VERSION AS OF 99", "no table of Delta Lake"),
        ("orders VERSION AS OF '1'", "a version is a whole number"),
        ("orders TIMESTAMP AS OF 1", "a version is a whole number"),
        ("orders TIMESTAMP AS OF 'soon'", "is not a time"),
    ):
        with pytest.raises(bf.BlendFusionError, match=message):
            found.sql(f"SELECT x FROM {text}")
    assert found.sql("SELECT 'as of' AS t").to_pylist() == [{"t": "as of"}]
