"""NaN in Parquet files, whose statistics leave it out: every test, order and extreme over a file
finds the rows that it finds in memory, with a call and without."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from s3_server import ENVIRONMENT, serving

import blendfusion as bf
from blendfusion.datafusion import parquet_statistics
from blendfusion.places.remote import open_store

COLUMNS = ("double", "float", "half", "a.b", "constant")


def rows(seed: int) -> pa.Table:
    rng = random.Random(seed)
    numbers = [rng.choice([math.nan, n / 100]) if n % 9 == 0 else n / 100 for n in range(600)]
    numbers[100:110] = [None] * 10
    numbers[200:300] = [math.nan] * 100
    kinds = dict(
        zip(COLUMNS, (pa.float64(), pa.float32(), pa.float16(), pa.float64()), strict=False)
    )
    columns = {name: pa.array(numbers, kind) for name, kind in kinds.items()}
    constant = [math.nan if rng.random() < 0.1 else 1.5 for _ in numbers]
    return pa.table({"id": range(600), **columns, "constant": constant, "other": [0.5] * 600})


def queries(column: str) -> Iterator[str]:
    nan = "CAST('NaN' AS DOUBLE)"
    tests = [f"{{c}} {sign} {{v}}" for sign in ("=", "<>", "<", "<=", ">", ">=")]
    tests += [
        "NOT ({c} < {v})",
        "{c} BETWEEN {v} AND 1e9",
        "{c} IN ({v}, 3)",
        "{c} NOT IN ({v}, 3)",
    ]
    for test in tests:
        for value in ("1.5", "5.5", "50", nan):
            yield f"SELECT id FROM t WHERE {test.format(c=column, v=value)} ORDER BY id"
    yield f"SELECT min({column}) AS low, max({column}) AS high, count({column}) AS n FROM t"
    for way in ("ASC", "DESC NULLS LAST", "DESC NULLS FIRST"):
        yield f"SELECT {column} AS x FROM t ORDER BY {column} {way} LIMIT 4"
    yield f"SELECT count(*) AS n FROM t JOIN (VALUES ({nan}), (5.5)) AS v(x) ON v.x = {column}"
    yield f"SELECT id FROM t WHERE {column} > 5.5 AND llm_filter('q', CAST(id AS TEXT)) ORDER BY id"
    yield (
        "SELECT id FROM t WHERE llm_filter('q', CAST(id AS TEXT)) "
        f"ORDER BY {column} DESC NULLS LAST, id LIMIT 3"
    )


def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True), cache=None)


def found(session: bf.Session, sql: str) -> list[Any]:
    return [tuple(map(str, row.values())) for row in session.sql(sql).to_pylist()]


def check(
    read: bf.Session, memory: bf.Session, columns: Iterable[str] = COLUMNS, step: int = 1
) -> None:
    for column in columns:
        for sql in [*queries(f'"{column}"')][::step]:
            assert found(read, sql) == found(memory, sql), sql
    assert read.table("t").schema() == memory.table("t").schema()


# A column of half precision has no plan of Substrait.
@pytest.mark.filterwarnings("ignore::blendfusion.PlanWarning")
@pytest.mark.parametrize(
    "door",
    ["register_parquet", "register_listing_table", "register_file", "read_parquet", "a folder"],
)
def test_rows_with_nan_are_found(tmp_path: Path, door: str) -> None:
    table = rows(1)
    file = tmp_path / "part.parquet"
    pq.write_table(table, file, row_group_size=50, write_page_index=True)
    read, memory = session(), session()
    memory.from_arrow(table, "t")
    if door == "register_parquet":
        read.register_parquet("t", file)
    elif door == "register_listing_table":
        read.register_listing_table("t", str(tmp_path))
    elif door == "read_parquet":
        read.register_view("t", read.read_parquet(str(file)))
    else:
        read.register_file(tmp_path if door == "a folder" else file, "t")
    check(read, memory)


EXTERNAL = "CREATE {}EXTERNAL TABLE {}t STORED AS PARQUET LOCATION 's3://bucket/t/{}'"


@pytest.mark.filterwarnings("ignore::blendfusion.PlanWarning")
@pytest.mark.parametrize(
    "door",
    [
        "register_parquet",
        "register_listing_table",
        "register_file",
        EXTERNAL.format("", "", ""),
        EXTERNAL.format("", "IF NOT EXISTS ", "part.parquet"),
        EXTERNAL.format("OR REPLACE ", "public.", "") + " OPTIONS ('format.pruning' 'true')",
    ],
)
def test_rows_with_nan_are_found_in_an_object_store(
    door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, content = rows(1), io.BytesIO()
    pq.write_table(table, content, row_group_size=50, write_page_index=True)
    read, memory = session(), session()
    memory.from_arrow(table, "t")
    with serving({"bucket": {"t/part.parquet": content.getvalue()}}, frozenset(["secret"])) as url:
        for key, value in {**ENVIRONMENT, "AWS_ENDPOINT": url}.items():
            monkeypatch.setenv(key, value)
        open_store(read, "s3://bucket/t/")
        if door.startswith("CREATE"):
            read.sql(door)
            assert read.sql(EXTERNAL.format("", "IF NOT EXISTS ", "")).to_pylist() == []
        else:
            getattr(read, door)(*("t", "s3://bucket/t/")[:: 1 if door != "register_file" else -1])
        check(read, memory, ["double"], step=3)


@pytest.mark.filterwarnings("ignore::blendfusion.PlanWarning")
def test_columns_too_large_to_be_read_may_have_nan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_statistics, "_MOST", 10)
    table, file = rows(2), tmp_path / "t.parquet"
    pq.write_table(table, file, row_group_size=50)
    read, memory = session(), session()
    memory.from_arrow(table, "t")
    read.register_parquet("t", file)
    check(read, memory, ["float"])


def test_a_table_of_sql_over_files_with_nan_is_refused(tmp_path: Path) -> None:
    pq.write_table(rows(3), tmp_path / "t.parquet")
    read, statement = session(), "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION"
    with pytest.raises(
        bf.QueryError, match=r"^a\.b, constant, double, float, half in .* may have NaN"
    ):
        read.sql(f"{statement} '{tmp_path}/t.parquet'")
    pq.write_table(pa.table({"x": [1.5]}), tmp_path / "u.parquet")
    read.sql(f"{statement} '{tmp_path}/u.parquet'")
    assert read.sql("SELECT x FROM t").to_pylist() == [{"x": 1.5}]


def test_files_without_nan_keep_their_statistics(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [1.5, 2.5, None], "y": ["a", "b", "c"]}), file)
    read = session()
    read.register_parquet("t", file)
    assert "ProjectionExec" not in read.sql("SELECT x FROM t").execution_plan().display_indent()
