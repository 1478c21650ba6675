"""Attached databases: SQLite, DuckDB, PostgreSQL and MariaDB as catalogs of a session."""

from __future__ import annotations

import datetime
import os
import sqlite3
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from mysql_server import connected, new_mysql_database
from postgres_server import new_database

import blendfusion as bf
from blendfusion.apps.cli.main import main
from blendfusion.services.sources import places

UTC = datetime.UTC


def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: "good" in str(call.values[0])), cache=None)


def sqlite_file(folder: Path, script: str, name: str = "shop.db") -> Path:
    connection = sqlite3.connect(folder / name)
    connection.executescript(script)
    connection.close()
    return folder / name


ORDERS = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT COLLATE NOCASE, price REAL);
INSERT INTO orders VALUES (1, 'good', 1.5), (2, 'GOOD', 2), (3, NULL, NULL), (4, 'bad', 4);
CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 3;
CREATE TABLE "or""der; DROP" ("a""b" INTEGER, "select" TEXT);
INSERT INTO "or""der; DROP" VALUES (1, 'x');
"""


@pytest.fixture
def shop(tmp_path: Path) -> bf.Session:
    found = session()
    assert found.attach(sqlite_file(tmp_path, ORDERS)) == "shop"
    return found


def test_tables_have_two_and_three_names_in_any_case(shop: bf.Session) -> None:
    rows = [{"id": 1}, {"id": 2}]
    assert shop.sql("SELECT id FROM shop.cheap ORDER BY id").to_pylist() == rows
    assert shop.sql("SELECT id FROM shop.main.cheap ORDER BY id").to_pylist() == rows
    assert shop.sql("SELECT ID AS id FROM Shop.CHEAP ORDER BY 1").to_pylist() == rows
    assert shop.table("shop.cheap").count() == 2
    listed = shop.sql(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'shop'"
    )
    assert {row["table_name"] for row in listed.to_pylist()} == {"orders", "cheap", 'or"der; DROP'}


def test_values_are_asked_as_over_files(shop: bf.Session) -> None:
    frame = shop.sql(
        "SELECT id, llm_filter('Good?', note) AS said FROM shop.orders "
        "WHERE price < 4 AND llm_filter('Good?', note)"
    )
    assert frame.to_pylist() == [{"id": 1, "said": True}]
    assert frame.trace.usage.values == 2


def test_explain_shows_the_query_that_is_sent(shop: bf.Session) -> None:
    sent = 'shop is sent: SELECT "id", "note" FROM "main"."orders" WHERE "price" < 4.0e0'
    asking = shop.sql(
        "EXPLAIN SELECT id FROM shop.orders WHERE price < 4 AND llm_filter('Good?', note)"
    )
    assert sent in [line.strip() for line in asking.to_pydict()["plan"]]
    plain = shop.sql("EXPLAIN SELECT id FROM shop.orders WHERE price < 4").to_pydict()
    found = dict(zip(plain["plan_type"], plain["plan"], strict=True))
    assert found["remote_query"] == sent.replace(', "note"', "")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("note = 'good'", [1]),
        ("note <> 'good'", [2, 4]),
        ("note > 'a'", [1, 4]),
        ("note IN ('good', 'x', 'y', 'z')", [1]),
        ("note NOT IN ('good', 'x', 'y', 'z')", [2, 4]),
        ("NOT (note = 'good')", [2, 4]),
        ("note IS NULL", [3]),
        ("note = 'good' OR price > 3", [1, 4]),
        ("note = 'good'' OR 1=1 --'", []),
        ("price = 2", [2]),
    ],
)
def test_texts_compare_by_their_bytes_whatever_the_collation(
    shop: bf.Session, where: str, ids: list[int]
) -> None:
    found = shop.sql(f"SELECT id FROM shop.orders WHERE {where} ORDER BY id")
    assert found.to_pydict()["id"] == ids


def test_names_are_names_whatever_they_hold(shop: bf.Session) -> None:
    query = 'SELECT "a""b", "select" FROM shop."or""der; DROP" WHERE "a""b" = 1'
    assert shop.sql(query).to_pylist() == [{'a"b': 1, "select": "x"}]


def test_columns_of_sqlite_have_the_types_of_what_they_hold(tmp_path: Path) -> None:
    script = """
    CREATE TABLE t (i INT, r NUMERIC(10,2), x VARCHAR(9), ok BOOLEAN, d DATE, at DATETIME, b BLOB,
                    m ANY, no_date DATE, no_truth BOOLEAN, none INTEGER, big INTEGER);
    INSERT INTO t VALUES (1, 1.5, 'a', 1, '2024-01-31', '2024-01-31 10:00:00.25', x'00ff', 7,
                          '31.1.2024', 2, NULL, 9007199254740993);
    INSERT INTO t VALUES (NULL, 2, NULL, 0, NULL, NULL, NULL, 'seven', '', 1, NULL, -1);
    """
    found = session()
    found.attach(sqlite_file(tmp_path, script))
    frame = found.sql("SELECT * FROM shop.t")
    assert {f.name: str(f.type) for f in frame.schema()} == {
        "i": "int64",
        "r": "double",
        "x": "string",
        "ok": "bool",
        "d": "date32[day]",
        "at": "timestamp[us]",
        "b": "binary",
        "m": "string",
        "no_date": "string",
        "no_truth": "int64",
        "none": "int64",
        "big": "int64",
    }
    first, second = frame.to_pylist()
    assert list(first.values()) == [
        *(1, 1.5, "a", True, datetime.date(2024, 1, 31)),
        *(datetime.datetime(2024, 1, 31, 10, 0, 0, 250000), b"\x00\xff", "7", "31.1.2024", 2),
        *(None, 9007199254740993),
    ]
    assert list(second.values()) == [None, 2.0, None, False, *[None] * 3, "seven", "", 1, None, -1]


def test_a_value_of_another_type_than_at_first_is_an_error_that_names_its_column(
    tmp_path: Path,
) -> None:
    file = sqlite_file(tmp_path, "CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1);")
    found = session()
    found.attach(file)
    assert found.sql("SELECT n FROM shop.t").to_pylist() == [{"n": 1}]
    sqlite_file(tmp_path, "INSERT INTO t VALUES ('many');")
    with pytest.raises(bf.QueryError, match="column 'n' holds a value of another type"):
        found.sql("SELECT n FROM shop.t").to_pylist()
    found.sql("DETACH shop")
    found.sql(f"ATTACH '{file}' AS shop")
    assert found.sql("SELECT n FROM shop.t").to_pylist() == [{"n": "1"}, {"n": "many"}]


def test_duckdb(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "w.duckdb")) as made:
        made.execute("""
        CREATE TABLE t AS SELECT true b, 1::TINYINT i1, 2::BIGINT i8, 3::HUGEINT h, 1.5::FLOAT f,
        1.25::DECIMAL(10,2) m, 'x' s, '\\x01'::BLOB bl, DATE '2024-01-31' d, TIME '10:00' tm,
        TIMESTAMP '2024-01-31 10:00' ts, TIMESTAMPTZ '2024-01-31 10:00+01' tz, INTERVAL 1 MONTH iv,
        '00000000-0000-0000-0000-000000000001'::UUID u, 'a'::ENUM ('a', 'b') e, [1, NULL] l,
        {'k': 1} st, '{}'::JSON j, '101'::BIT bt, NULL::INT n""")
        made.execute("CREATE SCHEMA s2; CREATE VIEW s2.v AS SELECT i8 FROM t")
    found = session()
    assert found.sql(f"ATTACH '{tmp_path / 'w.duckdb'}' (TYPE duckdb)").to_pylist() == [
        {"name": "w"}
    ]
    (row,) = found.sql("SELECT * FROM w.t").to_pylist()
    interval = row.pop("iv")
    assert (interval.months, interval.days, interval.nanoseconds) == (1, 0, 0)
    assert row == {
        "b": True,
        "i1": 1,
        "i8": 2,
        "h": Decimal(3),
        "f": 1.5,
        "m": Decimal("1.25"),
        "s": "x",
        "bl": b"\x01",
        "d": datetime.date(2024, 1, 31),
        "tm": datetime.time(10),
        "ts": datetime.datetime(2024, 1, 31, 10),
        "u": "00000000-0000-0000-0000-000000000001",
        "tz": datetime.datetime(2024, 1, 31, 9, tzinfo=UTC),
        "e": "a",
        "l": [1, None],
        "st": {"k": 1},
        "j": "{}",
        "bt": "101",
        "n": None,
    }
    where = "m = 1.25 AND f = 1.5 AND tz = TIMESTAMP '2024-01-31T09:00:00Z' AND d < '2024-02-01'"
    assert found.sql(f"SELECT i8 FROM w.t WHERE {where} AND b AND s = 'x'").to_pylist() == [
        {"i8": 2}
    ]
    assert found.sql("SELECT i8 FROM w.s2.v").to_pylist() == [{"i8": 2}]


POSTGRES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (b bool, i2 smallint, i4 int, i8 bigint, n numeric(10,2), nn numeric, f4 real,
  f8 double precision, s text, v varchar(10), c char(5), d date, tm time, ts timestamp,
  tz timestamptz, iv interval, bs bytea, u uuid, j jsonb, e mood, ia int[], ta text[], nan numeric);
INSERT INTO t VALUES (true, 1, 2, 3, 1.25, 12345.678901, 1.5, 2.5, 'it''s', 'v', 'ch', '2024-01-31',
  '10:00:01.5', '2024-01-31 10:00:00.123456', '2024-01-31 10:00+02', '1 month 2 days 3 seconds',
  '\\x01ff', '00000000-0000-0000-0000-000000000001', '{"b": 2}', 'ok', '{1,NULL,3}', '{a,NULL}',
  'NaN');
INSERT INTO t DEFAULT VALUES;
COMMENT ON COLUMN t.s IS 'what they wrote';
CREATE SCHEMA s2; CREATE VIEW s2.v AS SELECT i4, s FROM t;
"""


def test_postgresql() -> None:
    import psycopg

    url = new_database()
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(POSTGRES)  # type: ignore[arg-type,unused-ignore]
    found = session()
    found.attach(url, name="pg")
    row, empty = found.sql("SELECT * FROM pg.t").to_pylist()
    interval = row.pop("iv")
    assert (interval.months, interval.days, interval.nanoseconds) == (1, 2, 3 * 10**9)
    assert str(row.pop("nan")) == "nan"
    assert row == {
        "b": True,
        "i2": 1,
        "i4": 2,
        "i8": 3,
        "n": Decimal("1.25"),
        "f4": 1.5,
        "f8": 2.5,
        "nn": Decimal("12345.678901"),
        "s": "it's",
        "v": "v",
        "c": "ch",
        "d": datetime.date(2024, 1, 31),
        "tm": datetime.time(10, 0, 1, 500000),
        "ts": datetime.datetime(2024, 1, 31, 10, 0, 0, 123456),
        "bs": b"\x01\xff",
        "tz": datetime.datetime(2024, 1, 31, 8, tzinfo=UTC),
        "j": '{"b": 2}',
        "e": "ok",
        "u": "00000000-0000-0000-0000-000000000001",
        "ia": [1, None, 3],
        "ta": ["a", None],
    }
    assert set(empty.values()) == {None}
    where = "n = 1.25 AND tz = TIMESTAMP '2024-01-31T08:00:00Z' AND s = 'it''s' AND f4 = 1.5 AND s > 'a'"
    assert found.sql("SELECT i4 FROM pg.s2.v WHERE i4 = 2").to_pylist() == [{"i4": 2}]
    assert found.sql(f"SELECT i4 FROM pg.t WHERE {where} AND e = 'ok'").to_pylist() == [{"i4": 2}]
    assert found.sql("SELECT count(*) AS n FROM pg.t").to_pylist() == [{"n": 2}]


MYSQL = """
CREATE TABLE t (ok BOOLEAN, odd TINYINT(1), i INT, u BIGINT UNSIGNED, n DECIMAL(10,2), f FLOAT,
  d DOUBLE, s VARCHAR(20), c CHAR(5), x TEXT, e ENUM('a','b'), day DATE, at DATETIME(6),
  ts TIMESTAMP NULL, tm TIME, y YEAR, b BLOB, j JSON, st SET('p','q'), none INT)
"""


@pytest.mark.long
def test_mysql() -> None:
    url = new_mysql_database()
    name = url.partition("?")[0].rpartition("/")[2]
    with connected(name) as made, made.cursor() as cursor:
        cursor.execute(MYSQL)
        cursor.execute(
            "INSERT INTO t VALUES (1, 2, -3, 18446744073709551615, 1.25, 1.5, 2.5, 'Good', 'ch', "
            "'it''s', 'a', '2024-01-31', '2024-01-31 10:00:00.25', '2024-01-31 10:00:00', "
            "'10:00:01', 2024, x'01ff', '{}', 'p,q', NULL)"
        )
        cursor.execute(f"INSERT INTO t VALUES ({', '.join(['NULL'] * 20)})")
        cursor.execute("SELECT UNIX_TIMESTAMP(ts) FROM t WHERE ok")
        ((seconds,),) = cursor.fetchall()
    found = session()
    assert found.attach(url) == name
    row, empty = found.sql(f"SELECT * FROM {name}.t").to_pylist()
    assert row == {
        "ok": True,
        "odd": 2,
        "i": -3,
        "u": 2**64 - 1,
        "n": Decimal("1.25"),
        "f": 1.5,
        "d": 2.5,
        "s": "Good",
        "c": "ch",
        "x": "it's",
        "e": "a",
        "day": datetime.date(2024, 1, 31),
        "at": datetime.datetime(2024, 1, 31, 10, 0, 0, 250000),
        "tm": datetime.time(10, 0, 1),
        "ts": datetime.datetime.fromtimestamp(seconds, UTC),
        "y": 2024,
        "b": b"\x01\xff",
        "j": "{}",
        "st": "p,q",
        "none": None,
    }
    assert set(empty.values()) == {None}
    for where, count in [("s = 'good'", 0), ("s = 'Good'", 1), ("s <> 'good'", 1), ("i < 0", 1)]:
        assert found.sql(f"SELECT i FROM {name}.t WHERE {where}").count() == count, where


def test_an_attached_database_is_not_written_to(tmp_path: Path, shop: bf.Session) -> None:
    for statement in (
        "INSERT INTO shop.orders VALUES (9, 'x', 1)",
        "DROP TABLE shop.orders",
        "DELETE FROM shop.orders",
        "UPDATE shop.orders SET price = 1",
        "CREATE TABLE shop.more AS SELECT 1 AS a",
    ):
        with pytest.raises(bf.BlendFusionError):
            shop.sql(statement).collect()
    assert shop.sql("SELECT id FROM shop.orders").count() == 4
    with pytest.raises(bf.QueryError, match="read-only"):
        shop.sql(f"ATTACH '{tmp_path / 'shop.db'}' AS other", read_only=True)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nowhere.db", "there is no database 'nowhere.db'"),
        ("sqlite://shop.db", "names a host"),
        ("oracle://x/y", "no kind of database is called 'oracle'"),
        ("postgresql://me:secret@127.0.0.1:1/x", "Connection refused"),
        ("mysql://me:secret@127.0.0.1:1/x", "connect"),
        ("mysql://me:secret@127.0.0.1:1/x?a=secret", "connect"),
    ],
)
def test_a_place_without_a_database_is_an_error_without_credentials(url: str, message: str) -> None:
    with pytest.raises(bf.QueryError, match=message) as caught:
        session().attach(url)
    assert "secret" not in str(caught.value)
    assert "secret" not in str(caught.value.__cause__)


def test_a_file_whose_writer_was_killed_says_what_to_do(tmp_path: Path) -> None:
    script = (
        "CREATE TABLE t (a, b); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
    )
    script += "WHERE i < 5000) INSERT INTO t SELECT i, printf('%.400c', 'x') FROM n;"
    file = sqlite_file(tmp_path, script)
    writer = (
        "import os, signal, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); "
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN IMMEDIATE'); "
        "c.execute('UPDATE t SET b = 1'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", writer, str(file)], check=False)
    with pytest.raises(bf.ExecutionError, match="read_only=False"):
        session().attach(file)
    found = session()
    found.attach(file, read_only=False)
    rows = found.sql("SELECT count(*) AS n, min(length(b)) AS b FROM shop.t").to_pylist()
    assert rows == [{"n": 5000, "b": 400}]
    assert session().attach(file) == "shop"


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"SQLite format 3\x00" + b"?" * 200)
    (tmp_path / "y.txt").write_text("hello")
    with pytest.raises(bf.BlendFusionError, match="SQLite, "):
        session().attach(tmp_path / "x.db")
    with pytest.raises(bf.QueryError, match="no database that can be told"):
        session().attach(tmp_path / "y.txt")


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_attaching_keeps_the_locks_of_the_program(kind: str, tmp_path: Path) -> None:
    """POSIX gives back all locks of a process on a file when one of its descriptors is closed."""
    file = tmp_path / "shop.db"
    own: Any = duckdb.connect(file) if kind == "duckdb" else sqlite3.connect(file)
    own.execute("CREATE TABLE t (n INTEGER)")
    own.commit()
    if kind == "sqlite":
        own.execute("BEGIN EXCLUSIVE")
    for _ in range(2):
        assert places.place_of(str(file)).kind == kind
    other = {
        "sqlite": "sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')",
        "duckdb": "duckdb.connect(sys.argv[1])",
    }[kind]
    code = f"import sqlite3, duckdb, sys; {other}"
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True)
    assert done.returncode == 1
    assert "lock" in done.stderr
    own.close()


def test_names_that_are_taken(tmp_path: Path, shop: bf.Session) -> None:
    for name in ("shop", "public", "a b", ""):
        with pytest.raises(bf.QueryError):
            shop.attach(tmp_path / "shop.db", name=name)
    shop.detach("shop")
    with pytest.raises(bf.QueryError):
        shop.sql("SELECT * FROM shop.orders")
    with pytest.raises(bf.QueryError, match="no database 'shop' is attached"):
        shop.sql("DETACH shop")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = sqlite_file(tmp_path, ORDERS)
    query = ["query", "SELECT count(*) AS n FROM s.orders", "--cache", "off", "--format", "csv"]
    assert main([*query, "--attach", f"s={file}"]) == 0
    assert capsys.readouterr().out.split() == ['"n"', "4"]


def test_a_limit_reads_no_more_than_it_needs(tmp_path: Path) -> None:
    script = "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000) SELECT i FROM n;"
    found = session()
    found.attach(sqlite_file(tmp_path, script))
    database: Any = found.attached["shop"].database
    read, whole = [], database.batches

    def counted(*arguments: Any) -> Any:
        for batch in whole(*arguments):
            read.append(batch.num_rows)
            yield batch

    database.batches = counted
    assert found.sql("SELECT i FROM shop.t WHERE i > 10 LIMIT 3").count() == 3
    assert sum(read) < 100_000
    assert isinstance(found.sql("SELECT i FROM shop.t").to_arrow_table(), pa.Table)


def test_the_database_of_connect_has_its_tables_without_a_name_in_front(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path, ORDERS)
    found = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, db=file)
    assert found.sql("SELECT id FROM orders WHERE price < 2").to_pylist() == [{"id": 1}]
    assert found.sql("SELECT id FROM shop.cheap").count() == 2
    assert found.sql('SELECT * FROM "or""der; DROP"').count() == 1
    (sent,) = found.sql("EXPLAIN SELECT id FROM orders WHERE price < 2").to_pydict()["plan"][-1:]
    assert sent == 'shop is sent: SELECT "id" FROM "main"."orders" WHERE "price" < 2.0e0'
    found.detach("shop")
    with pytest.raises(bf.QueryError, match="orders"):
        found.sql("SELECT id FROM orders")


def test_a_query_behind_the_options_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(sqlite_file(tmp_path, ORDERS))
    query = "SELECT count(*) AS n FROM shop.orders"
    assert main(["--attach", file, query, "--cache", "off", "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ['"n"', "4"]
    assert main(["--attach", file, "orders"]) == 2
    assert "has no place for 'orders'" in capsys.readouterr().err
