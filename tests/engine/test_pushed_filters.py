"""Random queries over attached tables: with filters left to the database, without, and by the
database itself. Names and values that try to be more than that."""

from __future__ import annotations

import random
import sqlite3
import string
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from postgres_server import new_database

import blendfusion as bf

Rows = list[tuple[Any, ...]]
Own = Callable[[str], Rows]

TEXTS = ["a", "A", "b", "", " ", "a ", "é", "z", "it's", 'q"q', "ab", "%", "\\", None]
NUMBERS = [-3, -1, 0, 1, 2, 7, None]
FRACTIONS = [-1.5, 0.1, 0.25, 1.0, 2.5, 1e10, None]
DAYS = ["2023-12-31", "2024-01-01", "2024-02-29", "1969-07-20", None]
TRUTHS = [True, False, None]
COLUMNS = "id i f s d b"
CREATE = "CREATE TABLE t (id INTEGER, i INTEGER, f DOUBLE PRECISION, s TEXT, d DATE, b BOOLEAN)"


def rows_of(rng: random.Random, count: int) -> list[tuple[Any, ...]]:
    choices = (NUMBERS, FRACTIONS, TEXTS, DAYS, TRUTHS)
    return [(n, *(rng.choice(values) for values in choices)) for n in range(count)]  # type: ignore[arg-type]


def text_of(value: object, *, day: bool = False) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, str):
        quoted = "'" + value.replace("'", "''") + "'"
        return f"DATE {quoted}" if day else quoted
    return repr(value)


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.5:
        word = rng.choice(("AND", "OR"))
        parts = [condition(rng, depth - 1) for _ in range(2)]
        text = f"({parts[0]} {word} {parts[1]})"
        return f"NOT {text}" if rng.random() < 0.2 else text
    column, values = rng.choice(
        [("i", NUMBERS), ("f", FRACTIONS), ("s", TEXTS), ("d", DAYS), ("id", range(30))]
    )
    known = [v for v in values if v is not None]
    day = column == "d"

    def literal() -> str:
        return text_of(rng.choice(known), day=day)

    kind = rng.random()
    if kind < 0.1:
        return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
    if kind < 0.2:
        return rng.choice(("b", "NOT b"))
    if kind < 0.4:
        members = ", ".join(literal() for _ in range(rng.randint(1, 6)))
        return f"{column} {rng.choice(('', 'NOT '))}IN ({members})"
    if kind < 0.5:
        return f"{column} BETWEEN {literal()} AND {literal()}"
    if kind < 0.55:
        return f"i + 1 > {rng.randint(-2, 3)}"
    return f"{column} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {literal()}"


def query(rng: random.Random) -> str:
    kind, where = rng.random(), condition(rng)
    if kind < 0.6:
        wanted = rng.sample(COLUMNS.split()[1:], rng.randint(0, 3))
        return f"SELECT {', '.join(['id', *wanted])} FROM {{t}} WHERE {where} ORDER BY id"
    if kind < 0.75:
        return f"SELECT count(*) AS n, sum(i) AS s FROM {{t}} WHERE {where}"
    if kind < 0.9:
        return (
            f"SELECT i, count(*) AS n FROM {{t}} WHERE {where} GROUP BY i ORDER BY coalesce(i, 99)"
        )
    other = condition(rng, 1)
    return (
        f"SELECT x.id, y.id AS other FROM (SELECT id, i FROM {{t}} WHERE {where}) x "
        f"JOIN (SELECT id, i FROM {{t}} WHERE {other}) y ON x.i = y.i ORDER BY x.id, y.id"
    )


def made_sqlite(folder: Path, rows: Sequence[tuple[Any, ...]]) -> tuple[str, Own]:
    place = folder / "t.db"
    connection = sqlite3.connect(place)
    connection.execute(CREATE)
    connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.commit()

    def own(sql: str) -> Rows:
        return connection.execute(sql.replace("DATE '", "'")).fetchall()

    return f"sqlite:///{place}", own


def made_duckdb(folder: Path, rows: Sequence[tuple[Any, ...]]) -> tuple[str, Own]:
    place = folder / "t.duckdb"
    for connection in (duckdb.connect(str(place)), oracle := duckdb.connect()):
        connection.execute(CREATE)
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
        if connection is not oracle:
            connection.close()
    return f"duckdb:///{place}", lambda sql: oracle.execute(sql).fetchall()


def made_postgres(folder: Path, rows: Sequence[tuple[Any, ...]]) -> tuple[str, Own]:
    import psycopg

    url = new_database()
    connection = psycopg.connect(url, autocommit=True)
    connection.execute(CREATE)  # type: ignore[arg-type,unused-ignore]
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", rows)
    connection.close()

    def own(sql: str) -> Rows:
        with closing(psycopg.connect(url)) as one:
            return one.execute(sql).fetchall()  # type: ignore[call-overload,no-any-return,unused-ignore]

    return url, own


@pytest.mark.parametrize("made", [made_sqlite, made_duckdb, made_postgres])
def test_random_queries(
    made: Callable[[Path, Any], tuple[str, Own]], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    cases = max(60, pytestconfig.getoption("cases") // 10)
    rng = random.Random(7)
    url, own = made(tmp_path, rows_of(rng, 60))
    session = bf.connect(None, cache=None)
    session.attach(url, name="db")
    whole: pa.Table = session.sql("SELECT * FROM db.t").to_arrow_table()
    session.from_arrow(whole, name="copied")
    for number in range(cases):
        text = query(random.Random(number))
        pushed = session.sql(text.format(t="db.t")).to_arrow_table()
        assert pushed.to_pylist() == session.sql(text.format(t="copied")).to_pylist(), text
        if "s " not in text or made is not made_postgres:
            expected = [tuple(str(v) for v in row) for row in own(text.format(t="t"))]
            found = [tuple(str(v) for v in row.values()) for row in pushed.to_pylist()]
            if made is made_sqlite:
                found = [tuple({"True": "1", "False": "0"}.get(v, v) for v in row) for row in found]
            assert found == expected, text


def hostile(rng: random.Random) -> str:
    parts = [
        *("'", '"', "`", ";", "--", "/*", "*/", "\\", "''", '""', ")", "(", "%s", "$1", "?", ":x"),
        *(
            "DROP TABLE kept",
            " OR 1=1",
            "UNION SELECT 1",
            "\n",
            "$$",
            "{t}",
            "é",
            "\u2019",
            "E'\\''",
        ),
        *("'; DELETE FROM kept; --", '"; DELETE FROM kept; --', "COPY kept TO PROGRAM 'id'"),
    ]
    return "".join(rng.choice(parts) for _ in range(rng.randint(1, 5)))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_hostile_names_and_values_stay_names_and_values(kind: str, tmp_path: Path) -> None:
    rng = random.Random(11)
    values = [hostile(rng) for _ in range(120)]
    names = list({hostile(rng)[:20] + rng.choice(string.ascii_lowercase) for _ in range(50)})
    statements = ["CREATE TABLE kept (id INTEGER, v TEXT)"]
    statements += [f"INSERT INTO kept VALUES ({n}, {text_of(v)})" for n, v in enumerate(values)]
    for name in names:
        statements.append(f"CREATE TABLE {quoted(name)} ({quoted(name)} INTEGER)")
        statements.append(f"INSERT INTO {quoted(name)} VALUES (1)")
    if kind == "postgresql":
        import psycopg

        url = new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload,unused-ignore]
    else:
        module: Any = sqlite3 if kind == "sqlite" else duckdb
        file = tmp_path / "h.db"
        made = module.connect(str(file))
        for statement in statements:
            made.execute(statement)
        made.commit()
        made.close()
        url = f"{kind}:///{file}"
    session = bf.connect(None, cache=None)
    session.attach(url, name="db")
    for value in values:
        text = text_of(value)
        for test in (f"v = {text}", f"v IN ({text}, 'x', 'y', 'z')"):
            found = session.sql(f"SELECT v FROM db.kept WHERE {test}").to_pydict()["v"]
            assert found == [v for v in values if v == value], value
        others = session.sql(f"SELECT count(*) AS n FROM db.kept WHERE v <> {text}").to_pylist()
        assert others == [{"n": sum(v != value for v in values)}], value
    for name in names:
        frame = session.sql(
            f"SELECT {quoted(name)} FROM db.{quoted(name)} WHERE {quoted(name)} = 1"
        )
        assert frame.to_pylist() == [{name: 1}]
    assert session.sql("SELECT count(*) AS n FROM db.kept").to_pylist() == [{"n": len(values)}]
