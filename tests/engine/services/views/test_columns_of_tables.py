"""Columns of answers in tables of Delta Lake and of attached databases: whole or not at all,
resumed, refreshed."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attached import KINDS
from view_kinds import script

import blendfusion as bf

deltalake = pytest.importorskip("deltalake")

TEXTS = [f"{word} {n % 5}" for n, word in enumerate(["red", "small", "torn"] * 4)]
COLUMN = "llm_classify(text, ['size', 'colour', 'price'])"
PLACES = ("delta", "partitions", "sqlite", "duckdb", "postgresql")


class Cut(bf.BlendFusionError):
    """The end of a model in the middle of a backfill."""


class Shop:
    """A table of a kind, and a model that may end. ``name`` is that of the table in queries."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.left = kind, folder, None
        self.is_lake = kind in ("delta", "partitions")
        self.name = "reviews" if self.is_lake else "d.reviews"
        self.url = "" if self.is_lake else KINDS[kind](folder)
        rows = {
            "id": list(range(len(TEXTS))),
            "text": TEXTS,
            "stars": [n % 3 or None for n in range(len(TEXTS))],
        }
        self.left: int | None = None
        self.model = bf.ScriptedModel(self.answer, fingerprint="by digests", batch_size=2)
        self.append(pa.table(rows))

    def answer(self, request: bf.Request) -> object:
        if self.left == 0:
            raise Cut("cut")
        self.left = None if self.left is None else self.left - 1
        return script(request)

    @property
    def lake(self) -> str:
        return str(self.folder / "lake")

    def append(self, rows: pa.Table) -> None:
        """Append rows as another program would."""
        if self.is_lake:
            by = ["stars"] if self.kind == "partitions" else None
            merge = (
                {"schema_mode": "merge"} if deltalake.DeltaTable.is_deltatable(self.lake) else {}
            )
            deltalake.write_deltalake(self.lake, rows, mode="append", partition_by=by, **merge)
            return
        with bf.connect(None, cache=None) as session:
            session.attach(self.url, name="d", read_only=False)
            session.from_arrow(rows).write_table("d.reviews", mode="append")

    def correct(self, number: int, text: str) -> None:
        """Correct a text as another program would."""
        if self.is_lake:
            table = deltalake.DeltaTable(self.lake)
            table.update(predicate=f"id = {number}", updates={"text": f"'{text}'"})
            return
        with bf.connect(None, cache=None) as session:
            session.attach(self.url, name="d", read_only=False)
            new = pa.table({"id": [number], "text": [text]})
            session.from_arrow(new).write_table("d.reviews", mode="upsert", key="id")

    def open(self, *, read_only: bool = False) -> bf.Session:
        views = str(self.folder / "views")
        session = bf.connect(self.model, cache=None, progress="off", views_folder=views)
        if self.is_lake:
            session.register_lake("reviews", self.lake)
        else:
            session.attach(self.url, name="d", read_only=read_only)
        return session

    def rows(self) -> list[dict[str, Any]]:
        """The rows as another program sees them."""
        with bf.connect(None, cache=None) as session:
            if self.is_lake:
                session.register_lake("reviews", self.lake)
            else:
                session.attach(self.url, name="d")
            return list(session.sql(f"SELECT * FROM {self.name} ORDER BY id").to_pylist())

    def full(self, column: str = COLUMN) -> list[dict[str, Any]]:
        """The rows with the column as a query without stored answers gives it."""
        with bf.connect(bf.ScriptedModel(script), cache=None) as session:
            plain = [{n: row[n] for n in ("id", "text", "stars")} for row in self.rows()]
            kinds = pa.schema([("id", pa.int64()), ("text", pa.string()), ("stars", pa.int64())])
            session.from_arrow(pa.Table.from_pylist(plain, kinds), name="reviews")
            query = f"SELECT id, text, stars, {column} AS topic FROM reviews ORDER BY id"
            return list(session.sql(query).to_pylist())

    def versions(self) -> int:
        return deltalake.DeltaTable(self.lake).version() if self.is_lake else 0

    def do(self, statement: str) -> dict[str, Any]:
        with self.open() as session:
            return dict(session.sql(statement).to_pylist()[0])

    def add(self, column: str = COLUMN) -> dict[str, Any]:
        return self.do(f"ALTER TABLE {self.name} ADD COLUMN topic AS ({column})")


@pytest.fixture(params=PLACES)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(request.param, tmp_path)


VALUES = len(set(TEXTS))


def test_a_column_is_added_in_one_step_and_refreshed(shop: Shop) -> None:
    before = shop.versions()
    row = shop.add()
    assert (row["rows"], row["asked"]) == (len(TEXTS), VALUES)
    assert row["version"] == shop.versions() == (before + 1 if shop.is_lake else 0)
    assert shop.rows() == shop.full()
    refresh = f"REFRESH COLUMN {shop.name}.topic"
    again = shop.do(refresh)
    assert (again["rows"], again["asked"], again["version"]) == (0, 0, row["version"])
    shop.append(pa.table({"id": [20, 21, 22], "text": ["new", TEXTS[0], None], "stars": [1, 2, 1]}))
    shop.correct(3, "corrected")
    shop.correct(4, TEXTS[0])
    assert [one["topic"] for one in shop.rows() if one["id"] in (20, 21)] == [None, None]
    before = shop.versions()
    row = shop.do(refresh)
    assert row["asked"] == 2
    assert shop.versions() == (before + 1 if shop.is_lake else 0)
    assert shop.rows() == shop.full()
    answers = {
        one["values"][0]: one["answer"] for one in pq.read_table(row["provenance"]).to_pylist()
    }
    assert all(answers[one["text"]] == one["topic"] for one in shop.rows() if one["text"])


EXPRESSIONS = {
    "text and number": "llm_text('In one word', text) || coalesce(CAST(stars AS TEXT), '-')",
    "number": "llm_int('How many?', text) + coalesce(stars, 0)",
    "boolean": "llm_filter('Is it good?', text)",
    "double": "CAST(llm_int('How many?', text) AS DOUBLE) / 7",
    "case": f"CASE WHEN stars = 1 THEN {COLUMN} WHEN stars IS NULL THEN 'none' END",
    "without a call": "upper(text)",
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_types_of_columns(expression: str, shop: Shop) -> None:
    column = EXPRESSIONS[expression]
    shop.add(column)
    assert shop.rows() == shop.full(column)
    assert shop.do(f"REFRESH COLUMN {shop.name}.topic")["rows"] == 0
    shop.append(
        pa.table(
            {"id": [20], "text": ["new"], "stars": [None]},
            schema=pa.schema([("id", pa.int64()), ("text", pa.string()), ("stars", pa.int64())]),
        )
    )
    assert shop.do(f"REFRESH COLUMN {shop.name}.topic")["rows"] == 1
    assert shop.rows() == shop.full(column)


@pytest.mark.parametrize("left", [0, 1, VALUES // 2, VALUES - 1])
def test_a_backfill_that_was_cut_off_goes_on(shop: Shop, left: int) -> None:
    before = shop.versions()
    shop.left = left
    with pytest.raises(Cut):
        shop.add()
    assert shop.versions() == before
    assert [*shop.rows()[0]] == ["id", "text", "stars"]
    shop.left = None
    assert shop.add()["asked"] == VALUES - left
    assert shop.rows() == shop.full()
    shop.append(pa.table({"id": [20], "text": ["new"], "stars": [1]}))
    shop.left = 0
    with pytest.raises(Cut):
        shop.do(f"REFRESH COLUMN {shop.name}.topic")
    assert shop.rows()[-1]["topic"] is None
    shop.left = None
    assert shop.do(f"REFRESH COLUMN {shop.name}.topic")["rows"] == 1


@pytest.mark.parametrize("what", ["append", "correct"])
def test_somebody_else_writes_meanwhile(what: str, shop: Shop) -> None:
    """Rows that come or change during a backfill stay; the next refresh answers them."""
    begun = []

    def answer(request: bf.Request) -> object:
        if not begun:
            begun.append(True)
            if what == "append":
                shop.append(pa.table({"id": [20], "text": ["new"], "stars": [1]}))
            else:
                shop.correct(3, "corrected")
        return script(request)

    shop.model = bf.ScriptedModel(answer, fingerprint="by digests", batch_size=2)
    with suppress(bf.QueryError):  # of Delta Lake: the answers are kept
        shop.add()
    assert len(shop.model.calls) == VALUES
    if "topic" not in shop.rows()[0]:
        shop.add()
    shop.do(f"REFRESH COLUMN {shop.name}.topic")
    assert shop.rows() == shop.full()
    assert len(shop.rows()) == len(TEXTS) + (what == "append")
    assert ("corrected" in {row["text"] for row in shop.rows()}) == (what == "correct")
    assert len(shop.model.calls) == VALUES + 1


def test_what_is_refused(shop: Shop) -> None:
    rows = shop.rows()
    refused = {
        f"ALTER TABLE {shop.name} ADD COLUMN text AS (1)": "has a column 'text' already",
        f"ALTER TABLE {shop.name} ADD COLUMN n AS (row_number() OVER (ORDER BY id))": "row by row",
        f"ALTER TABLE {shop.name} ADD COLUMN n AS (nix)": "unknown column 'nix'",
        f"REFRESH COLUMN {shop.name}.text": "no column of answers that was added here",
        f"REFRESH COLUMN {shop.name}.": "takes a table and a column",
        f"ALTER TABLE {shop.name}. ADD COLUMN n AS (1)": "this ALTER TABLE is not possible",
    }
    with shop.open() as session:
        for statement, message in refused.items():
            with pytest.raises(bf.BlendFusionError, match=message):
                session.sql(statement)
    assert shop.rows() == rows
    if not shop.is_lake:
        with (
            shop.open(read_only=True) as session,
            pytest.raises(bf.QueryError, match="for reading"),
        ):
            session.sql(f"ALTER TABLE {shop.name} ADD COLUMN topic AS ({COLUMN})")
        assert shop.model.calls == []


def test_a_database_that_shows_a_column_before_it_is_filled_is_refused(tmp_path: Path) -> None:
    shop = Shop("mysql", tmp_path)
    with pytest.raises(bf.QueryError, match="MySQL shows a new column before it is filled"):
        shop.add()
    assert shop.model.calls == []


def test_texts_that_a_collation_takes_as_equal(tmp_path: Path) -> None:
    import sqlite3

    shop = Shop("sqlite", tmp_path)
    with sqlite3.connect(tmp_path / "d.db") as database:
        database.execute("DROP TABLE reviews")
        database.execute(
            "CREATE TABLE reviews (id INTEGER, text TEXT COLLATE NOCASE, stars INTEGER)"
        )
        rows = [(n, text, 1) for n, text in enumerate(["Red", "red", "RED", "rEd"])]
        database.executemany("INSERT INTO reviews VALUES (?, ?, ?)", rows)
    database.close()
    column = "llm_text('In one word', text)"
    shop.add(column)
    assert len({row["topic"] for row in shop.full(column)}) > 1
    assert shop.rows() == shop.full(column)


RUNNER = """
import sys, time
import blendfusion as bf
from view_kinds import script

folder, url, seconds, statement = sys.argv[1:]

def answer(request):
    with open(f"{folder}/asked.txt", "a") as file:
        file.write(request.values[0].replace(" ", "_") + "\\n")
    time.sleep(float(seconds))
    return script(request)

model = bf.ScriptedModel(answer, fingerprint="by digests", batch_size=2)
with bf.connect(model, cache=None, progress="off", views_folder=f"{folder}/views") as session:
    if url:
        session.attach(url, name="d", read_only=False)
    else:
        session.register_lake("reviews", f"{folder}/lake")
    print("ready", flush=True)
    session.sql(statement)
"""
KILLS = 12


@pytest.mark.long
def test_a_killed_backfill_goes_on(shop: Shop) -> None:
    """kill −9 at random moments of a backfill, also of its end: readers see the table without the
    column or with all of it, and a kill costs a batch of two values at most."""
    rng = random.Random(f"kills {shop.kind}")
    support = str(Path(__file__).parents[3] / "support")
    code = f"import sys; sys.path.insert(0, {support!r})\n{RUNNER}"
    asked = shop.folder / "asked.txt"
    asked.touch()
    add = f"ALTER TABLE {shop.name} ADD COLUMN topic AS ({COLUMN})"
    kills = 0
    while True:
        words = [str(shop.folder), shop.url, "0" if kills == KILLS else "0.1", add]
        child = subprocess.Popen(
            [sys.executable, "-c", code, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        if kills < KILLS:
            before, until = len(asked.read_text().split()), time.monotonic() + 60
            while child.poll() is None and len(asked.read_text().split()) <= before:
                assert time.monotonic() < until
                if before >= VALUES:
                    break
                time.sleep(0.005)
            time.sleep(rng.random() * 0.3)
            child.kill()
        ended = child.wait(60)
        child.stdout.close()
        rows = shop.rows()
        if "topic" in rows[0]:
            assert rows == shop.full()
            break
        assert ended != 0
        kills += 1
    asked_twice = len(asked.read_text().split()) - VALUES
    assert asked_twice <= 2 * kills


def test_a_table_that_took_the_name_of_a_lake_gets_no_column(tmp_path: Path) -> None:
    shop = Shop("delta", tmp_path)
    with shop.open() as session:
        session.deregister_table("reviews")
        session.from_pydict({"text": ["red"]}, name="reviews")
        with pytest.raises(bf.QueryError, match="no column can be added to reviews"):
            session.sql(f"ALTER TABLE reviews ADD COLUMN topic AS ({COLUMN})")
    assert shop.versions() == 0
