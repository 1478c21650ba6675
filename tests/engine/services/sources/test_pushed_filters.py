"""Random queries over attached tables: with filters left to the database, without, and by the
database itself. Names and values that try to be more than that."""

from __future__ import annotations

import math
import random
import re
import sqlite3
import string
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from attached import KINDS
from mysql_server import connected, new_mysql_database
from postgres_server import new_database

import blendfusion as bf
from blendfusion.services.sources import attached_run

Rows = list[tuple[Any, ...]]
Own = Callable[[str], Rows]

TEXTS = ["a", "A", "b", "", " ", "a ", "é", "z", "it's", 'q"q', "ab", "%", "\\", None]
TEXTS += [
    "É",
    "e",
    "5",
    "05",
    "-0",
    "a_b",
    "a%b",
    "ß",
    "ss",
    "\U0001f600",
    "\uffee",
    "a\tb",
    "ab  ",
]
NUMBERS = [-3, -1, 0, 1, 2, 7, None]
FRACTIONS = [-1.5, 0.1, 0.25, 1.0, 2.5, 1e10, None]
DAYS = ["2023-12-31", "2024-01-01", "2024-02-29", "1969-07-20", None]
TRUTHS = [True, False, None]
DECIMALS = ["-1.500", "0.000", "0.100", "0.333", "12345.125", None]
LARGE = [-(2**63), -1, 0, 2**31, 2**53 + 1, 2**63 - 1, None]
MOMENTS = ["2024-01-01 00:00:00", "2024-01-01 00:00:01", "1969-12-31 23:59:59", None]
COLUMNS = "id i f s d b n g z"
CREATE = (
    "CREATE TABLE t (id INTEGER, i INTEGER, f DOUBLE PRECISION, s TEXT, d DATE, b BOOLEAN, "
    "n DECIMAL(12,3), g BIGINT, z TIMESTAMP)"
)
NOT_FINITE = [float("inf"), float("-inf"), float("nan"), -float("nan"), -0.0]
"""Numbers that DuckDB and PostgreSQL keep; SQLite and MySQL keep none or some of them."""


def rows_of(
    rng: random.Random, count: int, fractions: Sequence[float | None] = FRACTIONS
) -> list[tuple[Any, ...]]:
    choices = (NUMBERS, fractions, TEXTS, DAYS, TRUTHS, DECIMALS, LARGE, MOMENTS)
    return [(n, *(rng.choice(values) for values in choices)) for n in range(count)]  # type: ignore[arg-type]


def text_of(value: object, kind: str = "") -> str:
    """A literal; ``kind`` is the word in front of a text that is none."""
    if isinstance(value, bool) or value is None:
        return str(value).upper() if value is not None else "NULL"
    if isinstance(value, str):
        quoted = "'" + value.replace("'", "''") + "'"
        return value if kind == "NUMBER" else f"{kind} {quoted}".strip()
    return repr(value)


def condition(rng: random.Random, depth: int = 2) -> str:
    if depth and rng.random() < 0.5:
        word = rng.choice(("AND", "OR"))
        parts = [condition(rng, depth - 1) for _ in range(2)]
        text = f"({parts[0]} {word} {parts[1]})"
        return f"NOT {text}" if rng.random() < 0.2 else text
    column, values = rng.choice(
        [
            *(("i", NUMBERS), ("f", FRACTIONS), ("s", TEXTS), ("s", TEXTS), ("d", DAYS)),
            *(("id", range(30)), ("n", DECIMALS), ("g", LARGE), ("z", MOMENTS)),
        ]
    )
    known = [v for v in values if v is not None]
    word = {"d": "DATE", "z": "TIMESTAMP", "n": "NUMBER"}.get(column, "")

    def literal() -> str:
        return text_of(rng.choice(known), word)

    kind = rng.random()
    if kind < 0.1:
        return f"{column} IS {rng.choice(('', 'NOT '))}NULL"
    if kind < 0.2:
        return rng.choice(("b", "NOT b"))
    if kind < 0.4:
        members = [literal() for _ in range(rng.randint(1, 6))]
        if rng.random() < 0.2:
            members.append("NULL")
        return f"{column} {rng.choice(('', 'NOT '))}IN ({', '.join(members)})"
    if kind < 0.5:
        return f"{column} BETWEEN {literal()} AND {literal()}"
    if kind < 0.55:
        whole = f"i / 2 > {rng.randint(-2, 3)}"
        return rng.choice((f"i + 1 > {rng.randint(-2, 3)}", whole, "TRY_CAST(s AS INTEGER) = 5"))
    if kind < 0.6:
        return f"CAST(i AS DOUBLE PRECISION) {rng.choice('<>')} {rng.choice(FRACTIONS[:4])}"
    if kind < 0.7:
        letters = [*"abAéz'% _", "%", "*", "[", "?", "!", "\\%", "\\_"]
        pattern = "".join(rng.choice(letters) for _ in range(3))
        return f"s {rng.choice(('', 'NOT '))}LIKE {text_of(pattern)}"
    return f"{column} {rng.choice(('=', '<>', '<', '<=', '>', '>='))} {literal()}"


def query(rng: random.Random) -> str:
    kind, where = rng.random(), condition(rng)
    if kind < 0.3:
        wanted = rng.sample(COLUMNS.split()[1:], rng.randint(0, 3))
        return f"SELECT {', '.join(['id', *wanted])} FROM {{t}} WHERE {where} ORDER BY id"
    if kind < 0.5:
        keys = [f"{c} {rng.choice(('ASC', 'DESC'))}" for c in rng.sample("ifsdbngz", 2)]
        nulls = " NULLS FIRST" if rng.random() < 0.3 else " NULLS LAST"
        order = ", ".join(f"{key}{nulls}" for key in keys)
        offset = f" OFFSET {rng.randint(0, 4)}" if rng.random() < 0.5 else ""
        clause = f" WHERE {where}" if rng.random() < 0.5 else ""
        return (
            f"SELECT id FROM {{t}}{clause} ORDER BY {order}, id LIMIT {rng.randint(0, 9)}{offset}"
        )
    if kind < 0.6:
        aggregates = rng.choice(
            (
                "count(*) AS c",
                "count(*) AS c, sum(i) AS total",
                "max(i) AS m",
                "min(d) AS m, max(i) AS x",
            )
        )
        return f"SELECT {aggregates} FROM {{t}} WHERE {where}"
    if kind < 0.75:
        key = rng.choice("isbngz")
        aggregate = rng.choice(
            ("count(*)", "max(id)", "min(i)", "count(i)", "max(d)", "min(g)", "max(n)", "max(z)")
        )
        return (
            f"SELECT {key}, {aggregate} AS c FROM {{t}} WHERE {where} GROUP BY {key} "
            f"ORDER BY {key} NULLS LAST"
        )
    if kind < 0.8:
        key = rng.choice("ifsdbngz")
        return f"SELECT DISTINCT {key} FROM {{t}} WHERE {where} ORDER BY {key} NULLS LAST"
    other = condition(rng, 1)
    join, key = rng.choice(("JOIN", "LEFT JOIN")), rng.choice("isdngz")
    if kind < 0.9:
        return (
            f"SELECT x.id, y.id AS other FROM (SELECT id, {key} AS k FROM {{t}} WHERE {where}) x "
            f"{join} (SELECT id, {key} AS k FROM {{t}} WHERE {other}) y ON x.k = y.k "
            "ORDER BY x.id, y.id NULLS LAST"
        )
    column = rng.choice("isng")
    return (
        f"SELECT id FROM {{t}} WHERE {column} {rng.choice(('', 'NOT '))}IN "
        f"(SELECT {column} FROM {{small}} WHERE {column} IS NOT NULL) ORDER BY id"
    )


MARKS = ", ".join("?" * len(COLUMNS.split()))


def made_sqlite(folder: Path, rng: random.Random) -> tuple[str, Own]:
    place = folder / "t.db"
    connection = sqlite3.connect(place)
    connection.execute(CREATE)
    connection.executemany(f"INSERT INTO t VALUES ({MARKS})", rows_of(rng, 60))
    connection.commit()
    connection.execute("PRAGMA case_sensitive_like = ON")

    def own(sql: str) -> Rows:
        plain = re.sub(r"(DATE|TIMESTAMP) '", "'", sql)
        return connection.execute(re.sub(LIKE, r"\1 ESCAPE '\\'", plain)).fetchall()

    return f"sqlite:///{place}", own


def made_duckdb(folder: Path, rng: random.Random) -> tuple[str, Own]:
    place = folder / "t.duckdb"
    rows = rows_of(rng, 60, [*FRACTIONS, *NOT_FINITE])
    collated = CREATE.replace("TEXT", "TEXT COLLATE NOCASE")
    for connection in (duckdb.connect(str(place)), oracle := duckdb.connect()):
        connection.execute(CREATE if connection is oracle else collated)
        connection.executemany(f"INSERT INTO t VALUES ({MARKS})", rows)
        if connection is not oracle:
            connection.close()

    def own(sql: str) -> Rows:
        return oracle.execute(re.sub(LIKE, r"\1 ESCAPE '\\'", sql)).fetchall()

    return f"duckdb:///{place}", own


def made_postgres(folder: Path, rng: random.Random) -> tuple[str, Own]:
    import psycopg

    url = new_database()
    rows = rows_of(rng, 60, [*FRACTIONS, *NOT_FINITE])
    connection = psycopg.connect(url, autocommit=True)
    by_language = CREATE.replace("TEXT", 'TEXT COLLATE "en-x-icu"')
    by_bytes = CREATE.replace("TEXT", 'TEXT COLLATE "C"').replace(" t ", " own ")
    for statement, name in ((by_language, "t"), (by_bytes, "own")):
        connection.execute(statement)  # type: ignore[arg-type,unused-ignore]
        with connection.cursor() as cursor:
            marks = MARKS.replace("?", "%s")
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)  # type: ignore[arg-type,unused-ignore]
    connection.close()

    def own(sql: str) -> Rows:
        with closing(psycopg.connect(url)) as one:
            return one.execute(sql.replace(" t ", " own ")).fetchall()  # type: ignore[call-overload,no-any-return,unused-ignore]

    return url, own


def made_mysql(folder: Path, rng: random.Random) -> tuple[str, Own]:
    url = new_mysql_database()
    name = url.partition("?")[0].rpartition("/")[2]
    rows = rows_of(rng, 60)
    by_letters = CREATE.replace("TIMESTAMP", "DATETIME")
    own_text = "TEXT COLLATE utf8mb4_nopad_bin"
    by_bytes = by_letters.replace("TEXT", own_text).replace(" t ", " own ")
    with connected(name) as made, made.cursor() as cursor:
        for statement, table in ((by_letters, "t"), (by_bytes, "own")):
            cursor.execute(statement)
            marks = MARKS.replace("?", "%s")
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        made.commit()

    def own(sql: str) -> Rows:
        with connected(name) as one, one.cursor() as cursor:
            text = sql.replace("DOUBLE PRECISION", "DOUBLE").replace(" t ", " own ")
            cursor.execute(ORDERED_NULLS.sub(_order_nulls, text).replace("\\", "\\\\"))
            return list(cursor.fetchall())

    return url, own


LIKE = re.compile(r"(LIKE '(?:[^']|'')*')")
ORDERED_NULLS = re.compile(r"([a-z.]+)( ASC| DESC)? NULLS (FIRST|LAST)")


def _order_nulls(found: re.Match[str]) -> str:
    key, way, place = found.groups()
    return f"{key} IS NULL{' DESC' if place == 'FIRST' else ''}, {key}{way or ''}"


def _plain(value: object) -> str:
    """A value as text, which is the same for numbers that are equal."""
    if isinstance(value, (int, float, Decimal)) and math.isfinite(value):
        return str(int(value)) if value == int(value) else str(float(value))
    return str(value)


MADE = {
    "sqlite": made_sqlite,
    "duckdb": made_duckdb,
    "postgresql": made_postgres,
    "mysql": made_mysql,
}
OTHERWISE = {
    "sqlite": re.compile(r"TRY_CAST|MESSY"),
    "duckdb": re.compile(r"/"),
    "postgresql": re.compile(r"TRY_CAST"),
    "mysql": re.compile(r"TRY_CAST|/"),
}
"""What means another thing in the database's own words."""


def read_rows(session: bf.Session, query: str) -> tuple[list[dict[str, Any]], int]:
    """The result of a query, and the rows that came from the database ``db``."""
    database: Any = session.attached["db"].database
    moved, whole = [0], type(database).batches

    def counted(*arguments: Any) -> Any:
        for batch in whole(database, *arguments):
            moved[0] += batch.num_rows
            yield batch

    database.batches = counted
    try:
        return session.sql(query).to_pylist(), moved[0]
    finally:
        del database.batches


@pytest.mark.parametrize("kind", list(MADE))
def test_random_queries(
    kind: str, tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = max(30, pytestconfig.getoption("cases") // 10)
    url, own = MADE[kind](tmp_path, random.Random(7))
    session = bf.connect(None, cache=None)
    session.attach(url, name="db")
    whole: pa.Table = session.sql("SELECT * FROM db.t").to_arrow_table()
    session.from_arrow(whole, name="copied")
    session.from_arrow(whole.slice(0, 5), name="small")
    in_all = [0, 0]
    for number in range(cases):
        text = query(random.Random(number))
        pushed = text.format(t="db.t", small="small")
        found, moved = read_rows(session, pushed)
        with monkeypatch.context() as patch:
            patch.setattr(attached_run, "advice_of", lambda *_: {})
            plain, most = read_rows(session, pushed)
        assert repr(found) == repr(plain), text
        assert moved <= max(most, 1), text  # one row says that there is none
        in_all = [in_all[0] + moved, in_all[1] + most]
        copied = session.sql(text.format(t="copied", small="small")).to_pylist()
        assert repr(found) == repr(copied), text
        otherwise = OTHERWISE.get(kind)
        if "{small}" not in text and (otherwise is None or not otherwise.search(text)):
            expected = [tuple(map(_plain, row)) for row in own(text.format(t="t"))]
            rows = [tuple(map(_plain, row.values())) for row in found]
            assert rows == expected, text
    assert in_all[0] < 0.9 * in_all[1]


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


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql", "mysql"])
def test_hostile_names_and_values_stay_names_and_values(
    kind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    rng = random.Random(11)
    count = max(15, pytestconfig.getoption("cases") // 20)
    values = [hostile(rng) for _ in range(count)]
    names = list(
        {hostile(rng)[:20] + rng.choice(string.ascii_lowercase) for _ in range(count // 3)}
    )
    url = KINDS[kind](tmp_path)
    session = bf.connect(None, cache=None)
    session.attach(url, name="db", read_only=False)
    session.from_pydict({"id": list(range(len(values))), "v": values}, "hostile")
    session.table("hostile").write_table("db.kept")
    for name in names:
        session.from_pydict({name: [1]}).write_table(f"db.{quoted(name)}")
    for value in values:
        text = text_of(value)
        for test in (f"v = {text}", f"v IN ({text}, 'x', 'y', 'z')"):
            found = session.sql(f"SELECT v FROM db.kept WHERE {test}").to_pydict()["v"]
            assert found == [v for v in values if v == value], value
        liked = value.replace("\\", "\\\\").replace("%", "\\%")
        tests = (
            f"v LIKE {text_of(liked)}",
            f"v IN (SELECT v FROM hostile WHERE v = {text})",
            f"v >= {text} AND v <= {text} ORDER BY v, id LIMIT 99",
        )
        for test in tests:
            found = session.sql(f"SELECT v FROM db.kept WHERE {test}").to_pydict()["v"]
            assert found == [v for v in values if v == value], test
        others = session.sql(f"SELECT count(*) AS n FROM db.kept WHERE v <> {text}").to_pylist()
        assert others == [{"n": sum(v != value for v in values)}], value
    for name in names:
        frame = session.sql(
            f"SELECT {quoted(name)} FROM db.{quoted(name)} WHERE {quoted(name)} = 1"
        )
        assert frame.to_pylist() == [{name: 1}]
    assert session.sql("SELECT count(*) AS n FROM db.kept").to_pylist() == [{"n": len(values)}]
