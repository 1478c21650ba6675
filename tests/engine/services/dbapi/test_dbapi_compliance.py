"""Every attribute and error that PEP 249 requires, and pandas' to_sql."""

from __future__ import annotations

import datetime
import inspect
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

import blendfusion as bf
import blendfusion.dbapi as db

registry.register("blendfusion", "blendfusion.services.dbapi.dialect", "BlendFusionDialect")

ERRORS = {
    "Warning": Exception,
    "Error": Exception,
    "InterfaceError": "Error",
    "DatabaseError": "Error",
    "DataError": "DatabaseError",
    "OperationalError": "DatabaseError",
    "IntegrityError": "DatabaseError",
    "InternalError": "DatabaseError",
    "ProgrammingError": "DatabaseError",
    "NotSupportedError": "DatabaseError",
}


@pytest.fixture
def session() -> bf.Session:
    found = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    found.from_pydict({"n": [1, 2, 3, 4, 5], "s": ["a", "b", "c", "d", None]}, name="t")
    return found


@pytest.fixture
def connection(session: bf.Session) -> db.Connection:
    return db.connect(session)


def test_the_module() -> None:
    assert db.apilevel == "2.0"
    assert db.threadsafety in (0, 1, 2, 3)
    assert db.paramstyle in ("qmark", "numeric", "named", "format", "pyformat")
    assert callable(db.connect)
    for name in ("Date", "Time", "Timestamp", "DateFromTicks", "TimeFromTicks", "Binary"):
        assert callable(getattr(db, name))
    for name in ("STRING", "BINARY", "NUMBER", "DATETIME", "ROWID"):
        assert hasattr(db, name)


@pytest.mark.parametrize(("name", "base"), ERRORS.items())
def test_the_errors_are_those_of_the_module_and_the_connection(
    connection: db.Connection, name: str, base: Any
) -> None:
    error = getattr(db, name)
    assert issubclass(error, getattr(db, base) if isinstance(base, str) else base)
    assert getattr(connection, name) is error


def test_constructors() -> None:
    assert db.Date(2024, 1, 31) == datetime.date(2024, 1, 31)
    assert db.Time(1, 2, 3) == datetime.time(1, 2, 3)
    assert db.Timestamp(2024, 1, 31, 1, 2, 3) == datetime.datetime(2024, 1, 31, 1, 2, 3)
    ticks = datetime.datetime(2024, 1, 31, 1, 2, 3).timestamp()
    assert db.DateFromTicks(ticks) == db.Date(2024, 1, 31)
    assert db.TimeFromTicks(ticks) == db.Time(1, 2, 3)
    assert db.TimestampFromTicks(ticks) == db.Timestamp(2024, 1, 31, 1, 2, 3)
    assert db.Binary(b"\x00") == b"\x00"


def test_connections(connection: db.Connection) -> None:
    for name in ("close", "commit", "rollback", "cursor"):
        assert callable(getattr(connection, name))
    assert connection.commit() is None  # type: ignore[func-returns-value]
    assert connection.rollback() is None  # type: ignore[func-returns-value]
    cursor = connection.cursor()
    connection.close()
    connection.close()
    for use in (connection.cursor, connection.commit, connection.rollback):
        with pytest.raises(db.Error):
            use()
    with pytest.raises(db.Error):
        cursor.execute("SELECT 1")


def test_cursors_before_a_query(connection: db.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.arraysize == 1
    assert cursor.connection is connection
    for fetch in (cursor.fetchone, cursor.fetchmany, cursor.fetchall):
        with pytest.raises(db.Error):
            fetch()
    cursor.execute("CREATE TABLE made (a BIGINT)")
    assert cursor.description is None
    with pytest.raises(db.Error):
        cursor.fetchall()


def test_description_and_fetching(connection: db.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT n, s FROM t ORDER BY n")
    description = cursor.description
    assert description is not None
    assert [len(column) for column in description] == [7, 7]
    assert [column[0] for column in description] == ["n", "s"]
    assert [
        column[1] == kind for column, kind in zip(description, (db.NUMBER, db.STRING), strict=True)
    ] == [
        True,
        True,
    ]
    assert description[0][1] != db.STRING
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchmany() == [(2, "b")]
    cursor.arraysize = 2
    assert cursor.fetchmany() == [(3, "c"), (4, "d")]
    assert cursor.fetchmany(10) == [(5, None)]
    assert cursor.fetchmany(10) == []
    assert cursor.fetchall() == []
    assert cursor.fetchone() is None
    assert cursor.rowcount in (-1, 5)
    assert list(cursor.execute("SELECT n FROM t WHERE n < 3 ORDER BY n")) == [(1,), (2,)]
    cursor.close()
    for use in (cursor.fetchone, cursor.fetchall, lambda: cursor.execute("SELECT 1")):
        with pytest.raises(db.Error):
            use()


def test_parameters(connection: db.Connection) -> None:
    cursor = connection.cursor()
    query = "SELECT n FROM t WHERE s = ? AND n < ?"
    for parameters in (("a", 2), ["a", 2]):
        assert cursor.execute(query, parameters).fetchall() == [(1,)]
    assert cursor.execute("SELECT '?' AS a, ? AS b", ["'; --"]).fetchall() == [("?", "'; --")]
    for wrong in ([], ["a"], ["a", 2, 3]):
        with pytest.raises(db.Error):
            cursor.execute(query, wrong)


def test_rowcount_of_changes(connection: db.Connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE u (a BIGINT, b VARCHAR)")
    cursor.executemany("INSERT INTO u VALUES (?, ?)", [(1, "x"), (2, None), (3, "z")])
    assert cursor.rowcount == 3
    cursor.execute("UPDATE u SET b = 'y' WHERE a > 1")
    assert cursor.rowcount == 2
    cursor.execute("DELETE FROM u WHERE a = 1")
    assert cursor.rowcount == 1
    cursor.executemany("INSERT INTO u VALUES (?, ?)", [])
    assert connection.execute("SELECT a, b FROM u ORDER BY a").fetchall() == [(2, "y"), (3, "y")]


def test_optional_methods_are_there_or_say_so(connection: db.Connection) -> None:
    cursor = connection.cursor()
    cursor.setinputsizes([10])
    cursor.setoutputsize(10)
    cursor.setoutputsize(10, 0)
    for use in (cursor.nextset, lambda: cursor.callproc("p")):
        with pytest.raises(db.NotSupportedError):
            use()


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELEC 1", "ProgrammingError"),
        ("SELECT * FROM nowhere", "ProgrammingError"),
        ("SELECT nothing FROM t", "ProgrammingError"),
        ("SELECT CAST(s AS BIGINT) FROM t", "DataError"),
        ("SELECT 1 / (n - n) FROM t", "DataError"),
    ],
)
def test_errors_of_queries(connection: db.Connection, sql: str, error: str) -> None:
    with pytest.raises(getattr(db, error)):
        connection.cursor().execute(sql).fetchall()


def test_no_method_of_a_cursor_raises_what_is_no_error_of_the_module(
    connection: db.Connection,
) -> None:
    for name, method in inspect.getmembers(connection.cursor(), callable):
        if name.startswith("fetch"):
            with pytest.raises(db.Error):
                method()


FRAME = pd.DataFrame({"n": [1.5, None], "s": ["it's", None], "b": [True, False]})


@pytest.mark.parametrize("method", [None, "multi"])
def test_to_sql(session: bf.Session, method: Any) -> None:
    engine = sa.create_engine("blendfusion://", creator=lambda: db.connect(session))
    assert FRAME.to_sql("made", engine, index=False, method=method) == 2
    assert FRAME.to_sql("made", engine, index=False, if_exists="append", chunksize=1) == 2
    rows = [(1.5, "it's", True), (None, None, False)]
    found = [tuple(row.values()) for row in session.table("made").to_pylist()]
    assert found == rows * 2
    FRAME.to_sql("made", engine, if_exists="replace", method=method)
    assert session.table("made").to_pydict()["index"] == [0, 1]
    with pytest.raises(ValueError, match="already exists"):
        FRAME.to_sql("made", engine)
    assert pd.read_sql_table("made", engine, columns=["s"])["s"].dropna().tolist() == ["it's"]
