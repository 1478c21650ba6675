"""Folders of Parquet files that a session registers as DataFusion does: rows and columns as DuckDB
and ``register_file`` read them."""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import cluster_scripts
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blendfusion as bf

WIDTHS = (
    *(pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint32(), pa.float32(), pa.float64()),
    pa.decimal128(12, 2),
)
KEYS = {
    "year": [2023, 2024],
    "day": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 29)],
    "city": ["Oslo", "Rome"],
    "code": ["01", "2"],
}


def written(folder: Path, rng: random.Random) -> bool:
    """Files in ``folder``, by up to two keys, of up to three schemas. Whether widths differ."""
    keys = rng.sample([*KEYS], rng.randint(0, 2))
    kinds = rng.sample(WIDTHS, rng.choice([1, 1, 2]))
    for number in range(rng.randint(2, 5)):
        below = folder.joinpath(*(f"{key}={rng.choice(KEYS[key])}" for key in keys))
        below.mkdir(parents=True, exist_ok=True)
        n = pa.array([1, None, number], pa.int8()).cast(kinds[number % len(kinds)])
        columns = {"id": [number * 3 + i for i in range(3)], "n": n, "x": ["a", "b", None]}
        if number and rng.random() < 0.3:
            columns["more"] = ["new"] * 3
        pq.write_table(pa.table(columns), below / f"{number}.parquet")
    return len(kinds) > 1


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    names = sorted(table.column_names)
    found = zip(*(table[name].to_pylist() for name in names), strict=True)
    return sorted((tuple(map(_plain, row)) for row in found), key=repr)


def types(table: pa.Table) -> dict[str, pa.DataType]:
    """The types by name; those of texts count as one."""
    text = (pa.string_view(), pa.large_string())
    return {f.name: pa.string() if f.type in text else f.type for f in table.schema}


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str) else str(_number(value))


def _number(value: object) -> object:
    return value if isinstance(value, datetime.date) else float(value)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::blendfusion.FileWarning")
def test_random_folders(cases: int, tmp_path: Path) -> None:
    for number in range(cases // 50):
        folder = tmp_path / str(number)
        differ = written(folder, random.Random(number))
        session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
        session.register_parquet("raw", f"{folder}/")
        session.register_file(folder, "named")
        named = session.sql("SELECT * FROM named").to_arrow_table()
        read = session.sql("SELECT * FROM raw").to_arrow_table()
        assert rows(read) == rows(named), number
        assert types(named) == types(read)
        frame = session.read_parquet(folder)
        assert rows(frame.to_arrow_table()) == rows(named), number
        asked = session.sql("SELECT * FROM raw WHERE llm_filter('q', x)").to_arrow_table()
        plain = session.sql("SELECT * FROM raw WHERE x IS NOT NULL").to_arrow_table()
        assert rows(asked) == rows(plain)
        other = duckdb.sql(
            f"FROM read_parquet('{folder}/**/*.parquet', union_by_name=true, "
            "hive_partitioning=true, hive_types_autocast=true)"
        ).to_arrow_table()
        assert sorted(other.column_names) == sorted(read.column_names)
        if not differ and "code" not in other.column_names:  # DuckDB takes 01 for a number
            assert rows(other) == rows(read), number


def test_what_the_caller_says_stays(tmp_path: Path) -> None:
    folder = tmp_path / "year=2024"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.register_parquet("t", tmp_path, table_partition_cols=[("year", pa.string())])
    assert session.sql("SELECT * FROM t").to_pylist() == [{"id": 1, "year": "2024"}]
    session.register_parquet("f", folder)  # the files of one year
    assert session.sql("SELECT * FROM f").to_pylist() == [{"id": 1}]
    session.register_parquet("s", tmp_path, schema=pa.schema({"id": pa.int8()}))
    assert session.sql("SELECT * FROM s").to_arrow_table().schema.types == [pa.int8()]


def test_types_without_a_common_one_are_an_error(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": ["b"]}), tmp_path / "b.parquet")
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    with pytest.raises(bf.BlendFusionError, match="id"):
        session.register_parquet("t", tmp_path)


def test_workers_of_a_cluster_read_the_same_columns(tmp_path: Path) -> None:
    for year, kind in ((2023, pa.int32()), (2024, pa.int64())):
        folder = tmp_path / f"year={year}"
        folder.mkdir()
        for n in range(2):
            rows = pa.table({"id": pa.array([n, n + 2], kind), "x": [f"a{n}", f"b{year}"]})
            pq.write_table(rows, folder / f"{n}.parquet")
    wide, query = tmp_path / "wide", "SELECT * FROM {} WHERE llm_filter('q', x)"
    wide.mkdir()
    for kind in (pa.int32(), pa.int64()):
        pq.write_table(pa.table({"id": pa.array([1], kind), "x": ["a"]}), wide / f"{kind}.parquet")
    with bf.connect(bf.ScriptedModel(cluster_scripts.hashed), cache=None, cluster="local:2") as one:
        for name, folder in (("years", tmp_path), ("wide", wide)):
            one.register_parquet(name, folder)
            here = bf.connect(bf.ScriptedModel(cluster_scripts.hashed), cache=None)
            here.register_parquet(name, folder)
            text = query.format(name)
            found = [sorted(map(repr, s.sql(text).to_pylist())) for s in (one, here)]
            assert found[0] == found[1]
