"""All scans of a query read one state of a database, whatever is written meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from attached import KINDS, opened
from mysql_server import connected

import blendfusion as bf

MADE = ("CREATE TABLE a (id INTEGER)", "CREATE TABLE b (id INTEGER)")
WRITTEN = ("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
QUERIES = (
    "SELECT count(id) AS n FROM d.a UNION ALL SELECT count(id) AS n FROM d.b",
    "SELECT count(a.id) AS n FROM d.a JOIN d.b ON a.id = b.id",
    "SELECT count(*) AS n FROM d.a WHERE id IN (SELECT id FROM d.b) OR id > 5",
    "SELECT llm_filter('Good?', CAST(id AS TEXT)) AS n FROM d.a WHERE id IN (SELECT id FROM d.b)",
)


def writer(kind: str, url: str, database: Any) -> Callable[[tuple[str, ...]], None]:
    """A function that carries out statements beside the session."""

    def write(statements: tuple[str, ...]) -> None:
        if kind == "sqlite":
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as one, one:
                for statement in statements:
                    one.execute(statement)
        elif kind == "duckdb":  # one process has it
            with database.transaction() as one:
                for statement in statements:
                    one.execute(statement)
        elif kind == "postgresql":
            import psycopg

            with psycopg.connect(url) as pg:
                for statement in statements:
                    pg.execute(statement)  # type: ignore[call-overload,unused-ignore]
        else:
            name = url.partition("?")[0].rpartition("/")[2]
            with connected(name) as one, one.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                one.commit()

    return write


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("query", QUERIES)
def test_two_scans_see_one_state(kind: str, query: str, tmp_path: Path) -> None:
    url = KINDS[kind](tmp_path)
    if kind == "sqlite":  # where writers need not wait for readers
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as one:
            one.execute("PRAGMA journal_mode = WAL")
    session = opened(url)
    database: Any = session.attached["d"].database
    write = writer(kind, url, database)
    write((*MADE, "INSERT INTO a VALUES (7)", "INSERT INTO b VALUES (7)"))
    before = session.sql(query).to_pylist()
    whole, lock, scans = type(database).batches, Lock(), [0]

    def batches(*arguments: Any) -> Any:
        found = whole(database, *arguments)
        first = next(found, None)
        with lock:
            scans[0] += 1
            if scans[0] == 1:
                write(WRITTEN)
        if first is not None:
            yield first
        yield from found

    database.batches = batches
    assert session.sql(query).to_pylist() == before
    assert scans[0] == 2
    del database.batches
    session.close()
    again = opened(url)
    assert again.sql("SELECT count(*) AS n FROM d.a").to_pylist() == [{"n": 2}]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_state_ends_with_its_query(kind: str, tmp_path: Path) -> None:
    session = opened(KINDS[kind](tmp_path))
    session.from_pydict({"id": [1, 2, 3]}, "here").write_table("d.t")
    assert session.sql("SELECT id FROM d.t LIMIT 1").count() == 1
    stream = session.sql("SELECT id FROM d.t").execute_stream()
    next(stream)
    stream.close()
    session.sql("SELECT id FROM d.t").write_table("d.u", mode="replace")
    session.sql("INSERT INTO d.t SELECT id + 10 FROM d.t").collect()
    assert session.sql("SELECT count(*) AS n FROM d.t, d.u").to_pylist() == [{"n": 18}]


def test_a_model_is_asked_while_others_write_to_sqlite(tmp_path: Path) -> None:
    """A file outside WAL mode has one state for a reading, and no lock while a model is asked."""
    file = tmp_path / "shop.db"
    with closing(sqlite3.connect(file)) as one, one:
        one.execute("CREATE TABLE a (id INTEGER, text TEXT)")
        one.execute("CREATE TABLE b (id INTEGER)")
        one.execute("INSERT INTO a VALUES (1, 'good'), (2, 'bad')")
        one.execute("INSERT INTO b VALUES (1), (2)")

    def answer(call: bf.Request) -> bool:
        with closing(sqlite3.connect(file, timeout=0)) as one, one:
            one.execute("INSERT INTO b VALUES (3)")
        return call.values[0] == "good"

    session = bf.connect(bf.ScriptedModel(answer), cache=None)
    session.attach(file, name="d")
    query = "SELECT a.id FROM d.a JOIN d.b ON a.id = b.id WHERE llm_filter('Good?', a.text)"
    assert session.sql(query).to_pylist() == [{"id": 1}]
    assert session.sql("SELECT count(*) AS n FROM d.b").to_pylist() == [{"n": 4}]
