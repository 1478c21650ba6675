"""SUMMARIZE and USING SAMPLE, against DuckDB where it says the same."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf

TABLE = pa.table({
    "n": pa.array([1, 2, 3, 4, None], pa.int64()),
    "Big x": pa.array([1.5, -2.5, None, None, 1.5], pa.float64()),
    "money": pa.array([decimal.Decimal("1.10"), None, None, None, decimal.Decimal("2.20")]),
    "text": ["b", "a", None, "a", ""],
    "day": pa.array([datetime.date(2024, 1, 2), None, None, None, datetime.date(2023, 1, 2)]),
    "yes": [True, False, None, None, True],
    "list": [[1], None, [2], [2], []],
    "nothing": pa.nulls(5),
})  # fmt: skip


@pytest.fixture
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: "a" in str(call.values[0])), cache=None)
    made.from_arrow(TABLE, "t")
    return made


def test_a_summary_has_a_row_for_each_column(session: bf.Session) -> None:
    rows = session.sql("SUMMARIZE t;").to_pylist()
    assert [row["column_name"] for row in rows] == TABLE.column_names
    assert [row["column_type"] for row in rows] == [str(kind) for kind in TABLE.schema.types]
    assert {row["count"] for row in rows} == {5}
    assert [row["null_percentage"] for row in rows] == [
        100.0 * column.null_count / 5 for column in TABLE.columns
    ]
    assert [(row["min"], row["max"]) for row in rows] == [
        ("1", "4"), ("-2.5", "1.5"), ("1.10", "2.20"), ("", "b"), ("2023-01-02", "2024-01-02"),
        ("false", "true"), (None, None), (None, None),
    ]  # fmt: skip
    assert [row["distinct_values"] for row in rows] == [4, 2, 2, 3, 2, 2, None, None]


def test_its_figures_are_those_of_duckdb(session: bf.Session) -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("t", TABLE.select(["n", "Big x", "money", "text", "day"]))
    theirs = connection.sql("SUMMARIZE t").to_arrow_table().to_pylist()
    for ours, other in zip(session.sql("SUMMARIZE t").to_pylist(), theirs, strict=False):
        assert ours["column_name"] == other["column_name"]
        for figure in ("avg", "std"):
            stated = other[figure]
            if ours[figure] is not None:
                assert ours[figure] == pytest.approx(float(stated))
        assert ours["null_percentage"] == pytest.approx(float(other["null_percentage"]))


@pytest.mark.parametrize(
    "source",
    ["t", "SELECT * FROM t", "WITH w AS (SELECT * FROM t) SELECT n FROM w", "'{}'",
     "SELECT n, llm_bool('Is it a?', text) AS a FROM t"],
)  # fmt: skip
def test_tables_files_and_queries_are_summed_up(source: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("n,x\n1,a\n2,b\n", "utf-8")
    session = bf.connect(
        bf.ScriptedModel(lambda call: "a" in str(call.values[0])), cache=None, read_files="local"
    )
    session.from_arrow(TABLE.select(["n", "text"]), "t")
    rows = session.sql(f"SUMMARIZE {source.format(tmp_path / 'f.csv')}").to_pylist()
    assert rows[0]["column_name"] == "n"
    assert rows[0]["min"] == "1"
    if "llm" in source:
        assert (rows[1]["min"], rows[1]["max"]) == ("false", "true")


def test_an_empty_table_and_a_read_only_session(session: bf.Session) -> None:
    rows = session.sql("SUMMARIZE SELECT * FROM t WHERE n > 9").to_pylist()
    assert {(row["count"], row["null_percentage"]) for row in rows} == {(0, None)}
    assert session.sql("SUMMARIZE t", read_only=True).count() == 8
    for text in ("SUMMARIZE", "SUMMARIZE nowhere"):
        with pytest.raises(bf.QueryError):
            session.sql(text)


@pytest.mark.parametrize(
    ("clause", "least", "most"),
    [
        ("USING SAMPLE 10", 10, 10),
        ("USING SAMPLE 10 ROWS;", 10, 10),
        ("using sample (10 rows)", 10, 10),
        ("USING SAMPLE 5000", 1000, 1000),
        ("USING SAMPLE 0", 0, 0),
        ("USING SAMPLE 10%", 40, 180),
        ("USING SAMPLE 10 PERCENT", 40, 180),
        ("USING SAMPLE 100 PERCENT", 1000, 1000),
    ],
)
@pytest.mark.parametrize("table", ["many", "many AS m", "many m"])
def test_a_sample_has_so_many_rows(clause: str, least: int, most: int, table: str) -> None:
    session = bf.connect(None, cache=None)
    session.from_pydict({"n": list(range(1000))}, "many")
    found = session.sql(f"SELECT n FROM {table} {clause}").to_pydict()["n"]
    assert least <= len(found) <= most
    assert len(set(found)) == len(found)


def test_a_sample_is_drawn_before_the_other_clauses(session: bf.Session) -> None:
    session.from_pydict({"n": list(range(1000))}, "many")
    counted = session.sql("SELECT count(*) AS c FROM many AS m WHERE m.n >= 0 USING SAMPLE 7")
    assert counted.to_pylist() == [{"c": 7}]
    first, second = (
        session.sql("SELECT n FROM many USING SAMPLE 20").to_pydict()["n"] for _ in range(2)
    )
    assert set(first) != set(second)
    kept: Any = session.sql(
        "SELECT text FROM t WHERE llm_filter('Is it a?', text) USING SAMPLE 5 ROWS"
    )
    assert sorted(kept.to_pydict()["text"]) == ["a", "a"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t JOIN t AS u ON t.n = u.n USING SAMPLE 5",
        "SELECT * FROM (SELECT * FROM t) AS u USING SAMPLE 5",
        "SELECT * FROM t USING SAMPLE reservoir(5)",
    ],
)
def test_other_samples_are_refused_with_a_way(query: str, session: bf.Session) -> None:
    with pytest.raises(bf.QueryError) as raised:
        session.sql(query)
    assert "USING SAMPLE 100 ROWS" in str(raised.value.hint)


def test_the_words_may_be_names(session: bf.Session) -> None:
    assert session.sql("SELECT 'USING SAMPLE 5' AS sample").to_pylist() == [
        {"sample": "USING SAMPLE 5"}
    ]
    session.from_pydict({"sample": [1]}, "a")
    session.from_pydict({"sample": [1]}, "b")
    assert session.sql("SELECT * FROM a JOIN b USING (sample)").count() == 1
