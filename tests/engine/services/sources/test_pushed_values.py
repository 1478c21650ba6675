"""Columns whose comparisons mean another thing in a database: each test and order over them finds
the rows that it finds in a copy."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from mysql_server import connected, new_mysql_database
from postgres_server import new_database

import blendfusion as bf

LONG = "p" * 1100
TEXTS = ["a", "a ", "A", "aB", "ab", "é", "e", "É", "", " ", "!x", "5", "05", "5.0", "5x", "Ā", "ā"]
TEXTS += ["\U0001f600", "\uffee", "ж", "\\", "%", "a_b", LONG + "b", LONG + "a", LONG]
NUMBERS = ["0", "1", "2", "24", "70", "1.5", "0.1", "-0.0", "-1", "2000", "2024"]
NUMBERS += ["9223372036854775807", "9223372036854775808", "CAST(0.1 AS REAL)"]
FLOATS = [
    *NUMBERS,
    "1e308",
    *(f"CAST('{word}' AS DOUBLE)" for word in ("NaN", "Infinity", "-Infinity")),
]
MOMENTS = [
    "'2024-01-01 00:00:00'",
    "TIMESTAMP '2024-01-01T00:00:00'",
    "DATE '2024-01-01'",
    "TIMESTAMP '2024-01-01 00:00:00+02:00'",
    "'2024-06-01 12:00:00.123456789'",
    "'2024-06-01 12:00:00.123456'",
]


def literals_of(column: str) -> list[str]:
    """Literals for a column, whose first letter says what it holds."""
    if column[0] == "t":
        return ["'" + text + "'" for text in TEXTS]
    return {"z": MOMENTS, "f": FLOATS, "n": NUMBERS}[column[0]]


def clauses_of(columns: Sequence[str]) -> Iterator[str]:
    """The clauses of queries over columns."""
    for column in columns:
        literals = literals_of(column)
        for literal in literals:
            for operator in ("=", "<>", "<", "<=", ">", ">="):
                yield f"WHERE {column} {operator} {literal} ORDER BY id"
        for start in range(0, len(literals), 5):
            some = ", ".join(literals[start : start + 5])
            for members in (some, f"{some}, NULL"):
                yield f"WHERE {column} IN ({members}) ORDER BY id"
                yield f"WHERE {column} NOT IN ({members}) ORDER BY id"
        for pattern in (
            "a",
            "a_",
            "A%",
            "_",
            "\\%",
            "\\_",
            "",
            "%b",
            "é%",
            "ж",
            "[a]%",
            "*",
            "a!%",
        ):
            if column[0] == "t":
                yield f"WHERE {column} LIKE '{pattern}' ORDER BY id"
                yield f"WHERE {column} NOT LIKE '{pattern}' ORDER BY id"
        for way in ("ASC NULLS FIRST", "DESC NULLS LAST"):
            yield f"ORDER BY {column} {way}, id LIMIT 3"
        yield f"WHERE {column} IN (SELECT {column} FROM {{t}} WHERE id < 4) ORDER BY id"
        for test in ("IS NULL", "IS NOT NULL"):
            yield f"WHERE {column} {test} ORDER BY id"


def _sqlite(folder: Path, definitions: str, *more: str) -> str:
    place = folder / "d.db"
    rows = [(n, *[text] * (definitions.count(",") + 1)) for n, text in enumerate([*TEXTS, None])]
    with closing(sqlite3.connect(place)) as made:
        for statement in more[:1]:
            made.execute(statement)
        made.execute(f"CREATE TABLE t (id INTEGER, {definitions})")
        made.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        for statement in more[1:]:
            made.execute(statement)
        made.commit()
    return f"sqlite:///{place}"


def sqlite_types(folder: Path) -> str:
    """Types by which SQLite reads a compared text as a number. A text that is one would be kept as
    one: such columns have other texts here."""
    url = _sqlite(
        folder, "t1 TEXT, t2 STRING, t3 UUID, t4 VARCHAR COLLATE NOCASE, t5, t6 TEXT COLLATE RTRIM"
    )
    with closing(sqlite3.connect(folder / "d.db")) as made:
        made.execute("UPDATE t SET t2 = t2 || 'x', t3 = t3 || '!'")
        made.commit()
    return url


def sqlite_utf16(folder: Path) -> str:
    """A file whose texts have bytes of another order."""
    return _sqlite(folder, "t1 TEXT, t2 VARCHAR COLLATE NOCASE", "PRAGMA encoding = 'UTF-16le'")


def sqlite_view(folder: Path) -> str:
    """A view whose columns have the type of one of its parts, and the values of another."""
    return _sqlite(
        folder,
        "t1 TEXT, t2 TEXT",
        "CREATE TABLE n (id INTEGER, n NUMERIC, x TEXT)",
        "INSERT INTO n VALUES (1, 5, 'z'), (2, 24, 'z'), (3, 0, 'z')",
        "ALTER TABLE t RENAME TO texts",
        "CREATE VIEW t AS SELECT id, n AS t1, t2, 1 AS n3 FROM n JOIN texts USING (id) WHERE 0 "
        "UNION SELECT id, t1, t2, id FROM texts "
        "UNION SELECT id + 100, NULL, NULL, n FROM n",
    )


def sqlite_view_of_numbers(folder: Path) -> str:
    return _sqlite(
        folder,
        "t1 TEXT",
        "CREATE TABLE n (id INTEGER, n NUMERIC, f REAL)",
        "INSERT INTO n VALUES (1, 5, 1.5), (2, 24, 2.5), (3, 0, 0.1), (4, NULL, NULL)",
        "ALTER TABLE t RENAME TO texts",
        "CREATE VIEW t AS SELECT id, t1 AS n1, t1 AS f1 FROM texts WHERE 0 "
        "UNION SELECT id, n, f FROM n",
    )


def duckdb_types(folder: Path) -> str:
    place = folder / "d.duckdb"
    with closing(duckdb.connect(str(place))) as made:
        made.execute(
            "CREATE TABLE t (id INTEGER, t1 VARCHAR, t2 VARCHAR COLLATE NOCASE, "
            "t3 VARCHAR COLLATE NOACCENT)"
        )
        made.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?)",
            [(n, x, x, x) for n, x in enumerate([*TEXTS, None])],
        )
        made.execute(
            "ALTER TABLE t ADD COLUMN f1 DOUBLE; ALTER TABLE t ADD COLUMN f2 FLOAT;"
            "ALTER TABLE t ADD COLUMN n1 HUGEINT; ALTER TABLE t ADD COLUMN n2 UBIGINT;"
            "ALTER TABLE t ADD COLUMN n3 DECIMAL(30, 10); ALTER TABLE t ADD COLUMN z1 TIMESTAMPTZ;"
            "ALTER TABLE t ADD COLUMN z2 TIMESTAMP; ALTER TABLE t ADD COLUMN z3 TIMESTAMP_NS;"
            "UPDATE t SET f1 = 'inf'::DOUBLE - 'inf'::DOUBLE, f2 = 'nan', n1 = -(2::HUGEINT ** 100),"
            " n2 = 18446744073709551615, n3 = 1.5, z1 = '2024-01-01 00:00:00+02', "
            " z2 = '2024-01-01', z3 = '2024-06-01 12:00:00.123456789' WHERE id < 2;"
            "UPDATE t SET f1 = 'nan', f2 = '-inf', n1 = 24, n2 = 24, n3 = 24, z2 = "
            "'2024-06-01 12:00:00.123456', z1 = '1890-01-01' WHERE id = 2;"
            "UPDATE t SET f1 = '-0.0', f2 = '0.1', n1 = 0, n2 = 0, n3 = 0.1 WHERE id = 3;"
            "UPDATE t SET f1 = 0, f2 = '-0.0', n1 = 0, n2 = 0, n3 = -1 WHERE id = 4;"
        )
    return f"duckdb:///{place}"


def postgres_types(folder: Path) -> str:
    import psycopg

    url = new_database()
    with closing(psycopg.connect(url, autocommit=True)) as made:
        made.execute(
            'CREATE TABLE t (id int, t1 text, t2 text COLLATE "en-x-icu", t3 varchar(2000), '
            "f1 float8, f2 real, n1 numeric, n2 numeric(10,2), n3 smallint, z1 timestamptz, "
            "z2 timestamp, z3 date)"
        )
        made.execute(
            "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        made.execute("ALTER TABLE t ADD COLUMN t4 text COLLATE any_case, ADD COLUMN t5 char(2000)")
        with made.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO t (id, t1, t2, t3, t4, t5) VALUES (%s, %s, %s, %s, %s, %s)",
                [(n, x, x, x, x, x) for n, x in enumerate([*TEXTS, None])],
            )
        made.execute(
            "UPDATE t SET f1 = 'inf'::float8 - 'inf'::float8, f2 = 'nan', n1 = 123456789012, n2 = 1.5, "
            "n3 = 24, z1 = '2024-01-01 00:00+02', z2 = '2024-01-01', z3 = '2024-01-01' WHERE id < 2"
        )
        made.execute(
            "UPDATE t SET f1 = 'nan', f2 = '-inf', n1 = 24, n2 = 24, n3 = 0, "
            "z1 = '1890-01-01', z2 = '2024-06-01 12:00:00.123456' WHERE id = 2"
        )
        made.execute("UPDATE t SET f1 = '-0', f2 = 0.1, n1 = 0, n2 = 0 WHERE id = 3")
        made.execute("UPDATE t SET f1 = 0, f2 = '-0', n1 = 0.1, n2 = -1 WHERE id = 4")
    return url


def postgres_collations(folder: Path) -> str:
    """Small tables, whose keys PostgreSQL makes distinct before it joins them."""
    import psycopg

    url = new_database()
    with closing(psycopg.connect(url, autocommit=True)) as made:
        for name, locale in (("any_case", "und-u-ks-level2"), ("any_accent", "und-u-ks-level1")):
            made.execute(
                f"CREATE COLLATION {name} (provider = icu, locale = '{locale}', "  # type: ignore[arg-type,unused-ignore]
                "deterministic = false)"
            )
        made.execute(
            "CREATE TABLE t (id int, t1 text COLLATE any_case, t2 text COLLATE any_accent)"
        )
        with made.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO t VALUES (%s, %s, %s)",
                [(n, x, x) for n, x in enumerate([*TEXTS, None])],
            )
    return url


def mysql_types(folder: Path) -> str:
    url = new_mysql_database()
    name = url.partition("?")[0].rpartition("/")[2]
    with connected(name) as made, made.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE t (id int, t1 varchar(2000), t2 longtext COLLATE utf8mb4_unicode_ci, "
            "t3 varchar(2000) COLLATE utf8mb4_bin, t4 text CHARACTER SET latin1, "
            "t5 text CHARACTER SET utf8mb3, t6 text CHARACTER SET utf16, t7 varchar(40), t8 char(40),"
            "f1 double, f2 float, n1 decimal(30, 10), n2 bigint unsigned, n3 year, n4 bigint, "
            "z1 timestamp(6) NULL, z2 datetime(6), z3 date)"
        )
        for number, text in enumerate([*TEXTS, None]):
            short = None if text is None else text[:40].rstrip("p")
            latin = None if text is None else text.encode("latin1", "ignore").decode("latin1")
            basic = None if text is None else text.replace("\U0001f600", "")
            cursor.execute(
                "INSERT INTO t (id, t1, t2, t3, t4, t5, t6, t7, t8) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (number, text, text, text, latin, basic, text, short, short),
            )
        cursor.execute(
            "UPDATE t SET f1 = 1e300, f2 = 0.1, n1 = 1.5, n2 = 18446744073709551615, n3 = 2024, "
            "n4 = -1, z1 = '2024-01-01', z2 = '2024-01-01', z3 = '2024-01-01' WHERE id < 2"
        )
        cursor.execute(
            "UPDATE t SET f1 = -0e0, f2 = 24, n1 = 24, n2 = 24, n3 = 1970, n4 = 24, "
            "z1 = '2024-06-01 12:00:00.123456', z2 = '2024-06-01 12:00:00.123456' WHERE id = 2"
        )
        cursor.execute("UPDATE t SET f1 = 0, f2 = -0e0, n1 = 0, n2 = 0, n3 = 0 WHERE id = 3")
    return url


MADE = [
    *(sqlite_types, sqlite_utf16, sqlite_view, sqlite_view_of_numbers),
    *(duckdb_types, postgres_types, postgres_collations, mysql_types),
]


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE)
def test_each_clause_finds_what_it_finds_in_a_copy(
    made: Callable[[Path], str], tmp_path: Path, cases: int
) -> None:
    session = bf.connect(None, cache=None)
    session.attach(made(tmp_path), name="db")
    whole = session.sql("SELECT * FROM db.t").to_arrow_table()
    session.from_arrow(whole, name="copied")
    clauses = list(clauses_of(whole.column_names[1:]))
    for test in random.Random(3).sample(clauses, min(len(clauses), max(40, cases // 10))):
        text = f"SELECT * FROM {{t}} {test}"
        found, expected = (
            session.sql(text.format(t=place)).to_pylist() for place in ("db.t", "copied")
        )
        assert repr(found) == repr(expected), test


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE)
def test_keys_of_another_query_are_those_of_a_copy(
    made: Callable[[Path], str], tmp_path: Path
) -> None:
    """Equal keys of a collation are several keys here."""
    session = bf.connect(None, cache=None)
    session.attach(made(tmp_path), name="db")
    whole = session.sql("SELECT * FROM db.t").to_arrow_table()
    session.from_arrow(whole, name="copied")
    for column in whole.column_names[1:]:
        for least in (1, 4, 20):
            keys = f"SELECT {column} AS key FROM {{t}} WHERE id > {least}"
            text = f"SELECT x.id FROM {{t}} x JOIN ({keys}) y ON x.{column} = y.key ORDER BY x.id"
            found, expected = (
                session.sql(text.format(t=place)).to_pylist() for place in ("db.t", "copied")
            )
            assert found == expected, text
