"""DB-API 2.0, SQLAlchemy's dialect and pandas.read_sql over a session."""

from __future__ import annotations

import datetime
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import registry

import blendfusion as bf
import blendfusion.dbapi as db

registry.register("blendfusion", "blendfusion.services.dbapi.dialect", "BlendFusionDialect")


@pytest.fixture
def session() -> bf.Session:
    found = bf.connect(bf.ScriptedModel(lambda call: "good" in str(call.values[0])), cache=None)
    found.from_pydict({"id": [1, 2, 3], "x": ["good", "bad", None]}, name="t")
    return found


def test_the_module_is_that_of_pep_249() -> None:
    assert (db.apilevel, db.threadsafety, db.paramstyle) == ("2.0", 2, "qmark")
    assert bf.dbapi is db
    assert issubclass(db.ProgrammingError, db.DatabaseError)
    assert issubclass(db.InterfaceError, db.Error)
    assert db.Date(2024, 1, 31) == datetime.date(2024, 1, 31)
    assert db.TimestampFromTicks(0).year in (1969, 1970)
    assert db.Binary(b"x") == b"x"


def test_a_cursor(session: bf.Session) -> None:
    with db.connect(session) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, x FROM t WHERE id >= ? ORDER BY id", (1,))
        assert [(c[0], c[1]) for c in cursor.description or ()] == [
            ("id", "int64"),
            ("x", "string"),
        ]
        assert [c[1] == db.NUMBER for c in cursor.description or ()] == [True, False]
        assert [c[1] == db.STRING for c in cursor.description or ()] == [False, True]
        assert cursor.rowcount == -1
        assert cursor.fetchone() == (1, "good")
        assert cursor.fetchmany(1) == [(2, "bad")]
        assert cursor.fetchall() == [(3, None)]
        assert cursor.fetchone() is None
        assert cursor.rowcount == 3
        assert list(cursor.execute("SELECT '?' AS a, ? AS b", ["it's ?"])) == [("?", "it's ?")]
        assert cursor.execute("SELECT $n + 1", {"n": 2}).fetchall() == [(3,)]
        table = cursor.execute("SELECT id FROM t ORDER BY id").fetch_arrow_table()
        assert table == pa.table({"id": [1, 2, 3]})
        reader = cursor.execute("SELECT id FROM t ORDER BY id").fetch_record_batch()
        assert reader.read_all().num_rows == 3
        assert len(cursor.execute("SELECT id FROM t").fetch_df()) == 3
    assert session.sql("SELECT 1 AS a").count() == 1  # the session is not the connection's


def test_only_fetched_rows_are_asked(session: bf.Session) -> None:
    cursor = db.connect(session).execute(
        "SELECT id, llm_filter('Good?', x) AS g FROM t WHERE id < ? ORDER BY id LIMIT 5", [3]
    )
    assert cursor.fetchall() == [(1, True), (2, False)]
    assert cursor.trace.usage.values == 2


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, None),
        (True, "bool"),
        (7, "int64"),
        (1.5, "double"),
        ("a'b", "string"),
        (b"\x00\xff", "binary"),
        (datetime.date(2024, 1, 31), "date32[day]"),
        (datetime.datetime(2024, 1, 31, 10, 0, 0, 5), "timestamp[us]"),
        (Decimal("1.25"), "decimal128(3, 2)"),
    ],
)
def test_values_come_back_as_they_went(session: bf.Session, value: Any, kind: str | None) -> None:
    cursor = db.connect(session).execute("SELECT ? AS v", [value])
    assert cursor.fetchall() == [(value,)]
    assert kind is None or (cursor.description or [])[0][1] == kind


@pytest.mark.parametrize(
    ("sql", "values", "error"),
    [
        ("SELEC 1", (), db.ProgrammingError),
        ("SELECT nothing FROM t", (), db.ProgrammingError),
        ("SELECT ? , ?", (1,), db.ProgrammingError),
        ("SELECT 1 / (id - 1) FROM t", (), db.DataError),
    ],
)
def test_errors(session: bf.Session, sql: str, values: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        db.connect(session).execute(sql, values).fetchall()
    assert isinstance(caught.value, db.DatabaseError)


def test_a_spent_budget_and_closed_things(session: bf.Session) -> None:
    session.budget = bf.Budget(values=0)
    connection = db.connect(session)
    cursor = connection.execute("SELECT llm_filter('Good?', x) FROM t")
    with pytest.raises(db.OperationalError):
        cursor.fetchall()
    connection.commit()
    connection.rollback()
    connection.close()
    for work in (cursor.fetchall, connection.cursor, connection.commit):
        with pytest.raises(db.InterfaceError):
            work()
    with pytest.raises(db.InterfaceError):
        db.connect(nonsense=1)
    with pytest.raises(db.ProgrammingError, match="no result"):
        db.connect(session).cursor().fetchall()


def test_a_session_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    made = sqlite3.connect(tmp_path / "s.db")
    made.execute("CREATE TABLE o AS SELECT 7 AS a")
    made.commit()
    made.close()
    with db.connect(
        model=None,
        cache=None,
        tables={"t": tmp_path / "t.csv"},
        attach={"shop": f"sqlite:///{tmp_path / 's.db'}"},
    ) as connection:
        rows = connection.execute("SELECT a FROM t UNION ALL SELECT a FROM shop.o ORDER BY 1")
        assert rows.fetchall() == [(1,), (2,), (7,)]
        connection.execute("CREATE TABLE u (a BIGINT)")
        cursor = connection.cursor().executemany("INSERT INTO u VALUES (?)", [[1], [2]])
        assert cursor.execute("INSERT INTO u VALUES (3), (4)").rowcount == 2
        assert cursor.execute("SELECT sum(a) FROM u").fetchall() == [(10,)]


@pytest.fixture
def engine(tmp_path: Path) -> sa.Engine:
    (tmp_path / "t.csv").write_text("Id,note,day\n1,good,2024-01-31\n2,bad,\n3,,2024-02-01\n")
    made = sqlite3.connect(tmp_path / "s.db")
    made.execute("CREATE TABLE orders (id INTEGER, price REAL)")
    made.execute("INSERT INTO orders VALUES (1, 2.5), (2, 3)")
    made.execute("CREATE VIEW cheap AS SELECT id FROM orders WHERE price < 3")
    made.commit()
    made.close()
    return sa.create_engine(
        f"blendfusion://?cache=off&table.t={tmp_path / 't.csv'}"
        f"&attach.shop=sqlite:///{tmp_path / 's.db'}&read_files=off"
    )


def test_reflection(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert found.get_schema_names() == ["main", "public", "shop"]
    assert found.get_table_names() == ["t"]
    assert found.get_table_names(schema="shop") == ["cheap", "orders"]
    assert found.has_table("t")
    assert not found.has_table("nothing")
    assert [(c["name"], str(c["type"])) for c in found.get_columns("t")] == [
        ("Id", "BIGINT"),
        ("note", "VARCHAR"),
        ("day", "DATE"),
    ]
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_columns("nothing")
    meta = sa.MetaData()
    table = sa.Table("t", meta, autoload_with=engine)
    orders = sa.Table("orders", meta, schema="shop", autoload_with=engine)
    with engine.connect() as connection:
        query = (
            sa.select(table.c.Id, table.c.day, orders.c.price)
            .join(orders, orders.c.id == table.c.Id)
            .where(table.c.note == "good", table.c.Id.in_([1, 2, 3]))
            .order_by(table.c.Id)
            .limit(5)
            .offset(0)
        )
        assert connection.execute(query).all() == [(1, datetime.date(2024, 1, 31), 2.5)]
        counted = sa.select(sa.func.count()).select_from(table)
        assert connection.execute(counted).scalar_one() == 3


def test_pandas_read_sql(engine: sa.Engine, session: bf.Session) -> None:
    frame = pd.read_sql(sa.text('SELECT "Id" FROM t WHERE note = :n'), engine, params={"n": "bad"})
    assert frame.to_dict("records") == [{"Id": 2}]
    assert len(pd.read_sql_table("orders", engine, schema="shop")) == 2
    assert sum(len(part) for part in pd.read_sql("SELECT * FROM t", engine, chunksize=2)) == 3
    with pytest.warns(UserWarning, match="SQLAlchemy"):
        plain = pd.read_sql("SELECT id FROM t WHERE id > ?", db.connect(session), params=(1,))
    assert list(plain["id"]) == [2, 3]


def test_made_and_filled_tables(engine: sa.Engine) -> None:
    meta = sa.MetaData()
    made = sa.Table(
        "made",
        meta,
        sa.Column("a", sa.Integer),
        sa.Column("b", sa.String),
        sa.Column("c", sa.Float),
    )
    meta.create_all(engine)
    with engine.begin() as connection:
        connection.execute(
            sa.insert(made), [{"a": 1, "b": "x", "c": 1.5}, {"a": 2, "b": None, "c": 2}]
        )
        assert connection.execute(sa.select(made).order_by(made.c.a)).all() == [
            (1, "x", 1.5),
            (2, None, 2.0),
        ]
    meta.drop_all(engine)
    assert not sa.inspect(engine).has_table("made")
