"""Rows of frames in tables of attached databases: every mode, type and name, in all four."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attached import KINDS, opened

import blendfusion as bf

UTC = datetime.UTC


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(kind: str, tmp_path: Path) -> str:
    return KINDS[kind](tmp_path)


def rows_of(session: bf.Session, table: str = "d.t") -> list[dict[str, Any]]:
    return list(session.sql(f"SELECT * FROM {table} ORDER BY 1").to_pylist())


def test_every_mode(url: str) -> None:
    session = opened(url)

    def write(rows: dict[str, list[Any]], **options: Any) -> str:
        return str(session.from_pydict(rows).write_table("d.t", **options))

    assert write({"id": [1, 2], "note": ["a", None]}) == "2 rows were written to d.t"
    assert write({"note": ["c"], "id": [3]}, mode="append") == "1 row was written to d.t"
    assert rows_of(session) == [
        {"id": 1, "note": "a"},
        {"id": 2, "note": None},
        {"id": 3, "note": "c"},
    ]
    assert write({"id": [3, 4], "note": ["C", "D"]}, mode="upsert", key="id").startswith("2 rows")
    assert [row["note"] for row in rows_of(session)] == ["a", None, "C", "D"]
    write({"id": [1], "note": ["B"]}, mode="upsert", key=["id", "note"])
    assert [row["note"] for row in rows_of(session)].count("B") == 1
    write({"id": [9], "note": ["z"]}, mode="replace")
    assert rows_of(session) == [{"id": 9, "note": "z"}]
    write({"n": [1.5]}, mode="replace")
    assert rows_of(session) == [{"n": 1.5}]
    write({"n": []}, mode="replace")
    assert rows_of(session) == []
    session.close()


def test_a_table_that_is_made_by_a_key_has_it_as_its_primary_key(url: str) -> None:
    session = opened(url)
    session.from_pydict({"k": ["a", "b"], "n": [1, 2]}).write_table("d.t", mode="upsert", key="k")
    with pytest.raises(bf.BlendFusionError):
        session.from_pydict({"k": ["b"], "n": [3]}).write_table("d.t")
    assert [row["n"] for row in rows_of(session)] == [1, 2]
    session.close()


def test_statements(url: str) -> None:
    session = opened(url)
    session.from_pydict({"id": [1, 2, 3], "text": ["good", "bad", "a good one"]}, name="reviews")
    made = session.sql(
        "CREATE TABLE d.t AS SELECT id, llm_filter('Good?', text) AS good FROM reviews WHERE id < 3"
    )
    assert made.to_pylist() == [{"count": 2}]
    assert made.trace.usage.values == 2
    insert = session.sql(
        "INSERT INTO d.t (good, id) SELECT llm_filter('Good?', text), id FROM reviews WHERE id = 3"
    )
    assert len(rows_of(session)) == 2
    assert insert.to_pylist() == [{"count": 1}]
    assert insert.trace.usage.values == 1
    assert rows_of(session) == [
        {"id": 1, "good": True},
        {"id": 2, "good": False},
        {"id": 3, "good": True},
    ]
    assert session.sql("INSERT INTO d.t (id) VALUES (7), (8)").to_pylist() == [{"count": 2}]
    assert rows_of(session)[-1] == {"id": 8, "good": None}
    assert session.sql("CREATE TABLE IF NOT EXISTS d.t AS SELECT 1 AS x").to_pylist() == [
        {"count": 0}
    ]
    with pytest.raises(bf.QueryError, match=r"d\.t exists"):
        session.sql("CREATE TABLE d.t AS SELECT 1 AS x")
    session.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'x' AS id")
    assert rows_of(session) == [{"id": "x"}]
    session.sql("SELECT 5 AS five INTO d.other")
    assert rows_of(session, "d.other") == [{"five": 5}]
    session.close()


OTHER_STATEMENTS = {
    "DROP TABLE {t}": "DROP TABLE",
    "drop table if exists {t}": "DROP TABLE",
    "DROP VIEW IF EXISTS {t}": "DROP VIEW",
    "DROP SCHEMA IF EXISTS {t}": "DROP SCHEMA",
    "CREATE VIEW {t} AS SELECT 1 AS x": "CREATE VIEW",
    "CREATE OR REPLACE VIEW {t} AS SELECT 1 AS x": "CREATE VIEW",
    "CREATE SCHEMA {t}": "CREATE SCHEMA",
    "CREATE SCHEMA IF NOT EXISTS {t}": "CREATE SCHEMA",
    "CREATE TEMP TABLE {t} AS SELECT 1 AS x": "CREATE TEMP TABLE",
    "CREATE OR REPLACE TEMPORARY TABLE {t} AS SELECT 1 AS x": "CREATE TEMP TABLE",
    "CREATE EXTERNAL TABLE {t} STORED AS CSV LOCATION '{file}'": "CREATE EXTERNAL TABLE",
    "UPDATE {t} SET id = 2": "UPDATE",
    "UPDATE {t} SET id = 2 WHERE llm_filter('?', 'x')": "UPDATE",
    "DELETE FROM {t}": "DELETE",
    "-- all of them\n DELETE FROM {t} WHERE id = 1": "DELETE",
}


def test_what_is_left_to_the_database_is_an_error_that_says_so(url: str, tmp_path: Path) -> None:
    session = opened(url)
    (tmp_path / "x.csv").write_text("id\n1\n")
    session.from_pydict({"id": [1]}).write_table("d.t")
    schema = session.attached["d"].database.default_schema
    for statement, words in OTHER_STATEMENTS.items():
        for table in ("d.t", "D.t", '"d"."t"', "d.new", f'd."{schema}".t'):
            with pytest.raises(bf.QueryError) as refused:
                session.sql(statement.format(t=table, file=tmp_path / "x.csv"))
            assert refused.value.message == f"{words} is left to the tools of the database 'd'"
    assert rows_of(session) == [{"id": 1}]
    assert list(session.attached["d"].database.tables(schema)) == ["t"]
    for own in (
        "CREATE VIEW d AS SELECT * FROM d.t",
        "CREATE TABLE kept AS SELECT * FROM d.t",
        "DROP TABLE kept",
        "DROP VIEW d",
        "CREATE SCHEMA apart",
        "CREATE VIEW apart.t AS SELECT * FROM d.t",
        "DROP TABLE IF EXISTS nothing",
    ):
        session.sql(own)
    assert rows_of(session, "apart.t") == [{"id": 1}]
    session.close()


TYPED = pa.table(
    {
        "b": pa.array([True, False, None]),
        "i1": pa.array([-128, 127, None], pa.int8()),
        "i2": pa.array([-(2**15), 2**15 - 1, None], pa.int16()),
        "i4": pa.array([-(2**31), 2**31 - 1, None], pa.int32()),
        "i8": pa.array([-(2**63), 2**63 - 1, None], pa.int64()),
        "u4": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "f8": pa.array([1.5, -1e300, None], pa.float64()),
        "m": pa.array([Decimal("-12345.67"), Decimal("0.10"), None], pa.decimal128(10, 2)),
        "s": pa.array(['it\'s "q" \\ `x` %s ; --', "", None]),
        "uni": pa.array(["żółć 🎈", "\n\t", None]),
        "y": pa.array([b"\x00\xff'\\", b"", None], pa.binary()),
        "d": pa.array([datetime.date(1999, 12, 31), datetime.date(2024, 2, 29), None]),
        "ts": pa.array(
            [
                datetime.datetime(1969, 1, 1, 0, 0, 0, 1),
                datetime.datetime(2024, 3, 31, 2, 30),
                None,
            ],
            pa.timestamp("us"),
        ),
        "tz": pa.array(
            [
                datetime.datetime(1971, 1, 1, tzinfo=UTC),
                datetime.datetime(2024, 3, 31, 1, 30, 0, 5, tzinfo=UTC),
                None,
            ],
            pa.timestamp("us", "Europe/Warsaw"),
        ),
        "none": pa.nulls(3),
    }
)


def test_types_arrive_as_themselves(url: str, kind: str) -> None:
    session = opened(url)
    session.new_table(TYPED).write_table("d.t")
    session.sql("INSERT INTO d.t SELECT * FROM $rows", rows=TYPED).collect()
    session.close()
    session = opened(url, read_only=True)
    found = session.sql("SELECT * FROM d.t").to_arrow_table()
    expected = TYPED.set_column(
        TYPED.schema.get_field_index("tz"), "tz", TYPED["tz"].cast(pa.timestamp("us", "UTC"))
    ).to_pylist()
    assert found.to_pylist() == [*expected, *expected]
    types = {field.name: str(field.type) for field in found.schema}
    assert types["m"] == "decimal128(10, 2)"
    assert (types["ts"], types["tz"]) == ("timestamp[us]", "timestamp[us, tz=UTC]")
    assert types["d"] == "date32[day]"
    session.close()


def test_an_interval_with_nanoseconds_is_an_error(url: str, kind: str) -> None:
    session = opened(url)
    kinds = pa.month_day_nano_interval()
    whole = pa.table({"v": pa.array([(1, 2, 3_000), None, (-1, 0, -1_000)], kinds)})
    if kind in ("duckdb", "postgresql"):
        session.new_table(whole).write_table("d.t")
        assert session.table("d.t").to_pylist() == whole.to_pylist()
    with pytest.raises(bf.QueryError, match="column 'v'"):
        session.new_table(pa.table({"v": pa.array([(0, 0, 1_001)], kinds)})).write_table("d.t")
    session.close()


def test_lists_and_structs_arrive_or_are_errors_that_name_the_remedy(url: str, kind: str) -> None:
    session = opened(url)
    frame = session.new_table(pa.table({"l": pa.array([["a", None], [], None])}))
    if kind in ("duckdb", "postgresql"):
        frame.write_table("d.t")
        assert [row["l"] for row in session.table("d.t").to_pylist()] == [["a", None], [], None]
    else:
        with pytest.raises(bf.QueryError, match=r"no type for column 'l'(.|\n)*array_to_string"):
            frame.write_table("d.t")
    struct = session.new_table(pa.table({"x": [{"k": 1, "v": "w"}]}))
    if kind == "duckdb":
        struct.write_table("d.s")
        assert session.table("d.s").to_pylist() == [{"x": {"k": 1, "v": "w"}}]
    else:
        with pytest.raises(bf.QueryError, match=r"no type for column 'x'(.|\n)*Choose its fields"):
            struct.write_table("d.s")
    session.close()


NAMES = ['a"b', "a`b", "a'b", "select", "x; DROP TABLE t; --", "%s", "ż", "A b", "a.b"]


@pytest.mark.long
def test_names_are_names_whatever_they_hold(url: str) -> None:
    session = opened(url)
    for name in NAMES:
        quoted = '"' + name.replace('"', '""') + '"'
        frame = session.new_table(pa.table({"id": [1, 2], name: ["v", name]}))
        assert frame.write_table(f"d.{quoted}", mode="upsert", key="id").rows == 2
        frame.write_table(f"d.{quoted}", mode="upsert", key="id")
        frame.write_table(f"d.{quoted}", mode="replace")
        session.sql(f"INSERT INTO d.{quoted} (id, {quoted}) VALUES (3, 'n')").collect()
        assert [row[name] for row in rows_of(session, f"d.{quoted}")] == ["v", name, "n"]
    session.close()


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"id": [1], "nope": [1]}, {}, "d.t has no column 'nope'"),
    ({"id": ["one"]}, {}, "column 'id' of d.t is int"),
    ({"id": [1.5]}, {}, "column 'id' holds a value"),
    ({"id": [5, 5]}, {"mode": "upsert", "key": "id"}, "the same key, for example id = 5"),
    ({"id": [5, None]}, {"mode": "upsert", "key": "id"}, "the key 'id' is NULL in 1"),
    ({"id": [5]}, {"mode": "upsert", "key": "no"}, "the key 'no' is no column"),
    ({"id": [5]}, {"mode": "upsert"}, "needs the key"),
    ({"id": [5]}, {"mode": "overwrite"}, "no mode is called"),
    ({"id": [1, 5]}, {}, ""),
]


def test_what_cannot_be_written_leaves_the_table_as_it_was(url: str) -> None:
    session = opened(url)
    session.from_pydict({"id": [1, 2]}).write_table("d.t", mode="upsert", key="id")
    for rows, options, message in REFUSED:
        with pytest.raises(bf.BlendFusionError) as caught:
            session.from_pydict(rows).write_table("d.t", **options)
        assert message in str(caught.value)
        assert rows_of(session) == [{"id": 1}, {"id": 2}], rows
    with pytest.raises(bf.QueryError, match=r"there is no table d\.none"):
        session.sql("INSERT INTO d.none SELECT 1")
    with pytest.raises(bf.QueryError, match="the query has 2 columns, and 1"):
        session.sql("INSERT INTO d.t SELECT 1, 2")
    with pytest.raises(bf.QueryError, match="write_table"):
        session.sql("INSERT INTO d.t VALUES (1) ON CONFLICT DO NOTHING")
    with pytest.raises(bf.QueryError, match="no schema 'nowhere'"):
        session.sql("CREATE TABLE d.nowhere.t AS SELECT 1 AS x")
    session.close()


def test_nothing_is_written_through_an_attachment_for_reading(url: str) -> None:
    with opened(url) as writer:
        writer.from_pydict({"id": [1, 2]}).write_table("d.t")
    session = opened(url, read_only=True)
    frame = session.from_pydict({"id": [3], "x": ["good"]}, name="new")
    for write in (
        lambda: frame.select("id").write_table("d.t"),
        lambda: frame.write_table("d.other", mode="replace"),
        lambda: session.sql("INSERT INTO d.t SELECT id FROM new WHERE llm_filter('?', x)"),
        lambda: session.sql("CREATE TABLE d.u AS SELECT * FROM new"),
        lambda: session.sql("SELECT * INTO d.u FROM new"),
        lambda: session.sql("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS id"),
    ):
        with pytest.raises(bf.QueryError, match=r"attached for reading only(.|\n)*read_only=False"):
            write()
    assert rows_of(session) == [{"id": 1}, {"id": 2}]
    session.close()
    session = opened(url)
    for write in (
        lambda: session.sql("INSERT INTO d.t VALUES (1)", read_only=True),
        lambda: session.sql("CREATE TABLE d.u AS SELECT 1 AS x", read_only=True),
    ):
        with pytest.raises(bf.QueryError, match="read-only"):
            write()
    session.close()
