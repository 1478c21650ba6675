"""Views that lie in an attached database, and views over tables that only grow."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from attached import KINDS
from view_kinds import script

import blendfusion as bf
from blendfusion.services.views.database_tables import DatabaseTable
from blendfusion.services.views.folder import ViewFolder

TEXTS = [f"{word} {n % 5}" for n, word in enumerate(["red", "small", "torn"] * 4)]
TOPIC = "llm_classify(text, ['size', 'colour', 'price'])"


class Cut(Exception):
    """The end of a process in the middle of a refresh."""


class Shop:
    """A database with a table, and sessions whose views lie in a folder."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder, self.url = folder, KINDS[kind](folder)
        self.asked: list[str] = []
        self.append(list(enumerate(TEXTS)))

    def answer(self, request: bf.Request) -> object:
        self.asked.append(str(request.values[0]))
        return script(request)

    def open(self, *, read_only: bool = False) -> bf.Session:
        model = bf.ScriptedModel(self.answer, fingerprint="by digests")
        views = str(self.folder / "views")
        session = bf.connect(model, cache=None, progress="off", views_folder=views)
        session.attach(self.url, name="d", read_only=read_only)
        return session

    def append(self, rows: list[tuple[int, str]], **options: Any) -> None:
        """Write rows as another program would."""
        options = options or {"mode": "append"}
        with bf.connect(None, cache=None) as session:
            session.attach(self.url, name="d", read_only=False)
            kinds = pa.schema([("id", pa.int64()), ("text", pa.string())])
            new = pa.Table.from_pylist([{"id": n, "text": text} for n, text in rows], kinds)
            session.from_arrow(new).write_table("d.reviews", **options)

    def do(self, statement: str) -> tuple[int, bool, str]:
        with self.open() as session:
            row = session.sql(statement).to_pylist()[0]
            return row["asked"], row["rewritten"], row["why"]

    def rows(self, table: str = "d.v") -> list[dict[str, Any]]:
        """The rows of a table as another program sees them."""
        with bf.connect(None, cache=None) as session:
            session.attach(self.url, name="d")
            return list(session.sql(f"SELECT * FROM {table} ORDER BY 1").to_pylist())

    def view(self) -> list[dict[str, Any]]:
        """The rows of the view in the folder."""
        with self.open() as session:
            return list(session.sql("SELECT * FROM v").to_pylist())

    def full(self) -> list[dict[str, Any]]:
        with bf.connect(bf.ScriptedModel(script), cache=None) as session:
            session.attach(self.url, name="d")
            query = f"SELECT id, {TOPIC} AS topic FROM d.reviews ORDER BY id"
            return list(session.sql(query).to_pylist())


@pytest.fixture(params=["sqlite", "duckdb", "postgresql", "mysql"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return Shop(request.param, tmp_path)


CREATE = f"CREATE MATERIALIZED VIEW d.v AS SELECT id, {TOPIC} AS topic FROM d.reviews"


def test_a_view_is_a_table_of_a_database(shop: Shop) -> None:
    assert shop.do(CREATE) == (len(set(TEXTS)), True, "it is new")
    assert shop.rows() == shop.full()
    assert shop.do("REFRESH d.v") == (0, False, "nothing changed")
    shop.append([(20, "new"), (21, TEXTS[0])])
    with shop.open() as session:
        plan = session.sql("EXPLAIN REFRESH d.v").to_pydict()["plan"]
        assert "  the table d.reviews changed" in plan
        assert session.sql("SELECT count(*) AS n FROM d.v").to_pylist() == [{"n": len(TEXTS)}]
    assert shop.do("REFRESH d.v") == (1, True, "the table d.reviews changed")
    assert shop.rows() == shop.full()
    with shop.open(read_only=True) as session:
        before = session.sql("SELECT count(*) AS n FROM d.v AS OF VERSION 1").to_pylist()
        assert before == [{"n": len(TEXTS)}]
        assert session.materialized_views["d.v"].version == 2
    with shop.open() as session:
        session.sql("DROP MATERIALIZED VIEW d.v")
        assert session.materialized_views == {}
        with pytest.raises(bf.QueryError, match="unknown table"):
            session.sql("SELECT * FROM d.v")


def test_what_stands_in_the_way_of_a_view_in_a_database(shop: Shop) -> None:
    with shop.open() as session:
        with pytest.raises(bf.QueryError, match=r"there is a table 'd\.reviews' already"):
            session.sql(CREATE.replace("d.v", "d.reviews"))
        with pytest.raises(bf.QueryError, match=r"no attached database has the name in front"):
            session.sql(CREATE.replace("d.v", "e.v"))
        with pytest.raises(bf.QueryError, match=r"cannot read itself|unknown table"):
            session.sql(CREATE.replace("FROM d.reviews", "FROM d.v"))
    with (
        shop.open(read_only=True) as session,
        pytest.raises(bf.QueryError, match="attached for reading only"),
    ):
        session.sql(CREATE)
    assert shop.asked == []


def test_a_table_that_somebody_dropped_comes_back(shop: Shop) -> None:
    shop.do(CREATE)
    with shop.open() as session:
        DatabaseTable(session, "d.v").drop()
    assert shop.do("REFRESH d.v") == (0, True, "the table d.v is not there")
    assert shop.rows() == shop.full()


@pytest.mark.parametrize("point", ["write", "serve"])
def test_a_refresh_that_ends_between_its_writes_is_finished(
    point: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table may be ahead of the folder, where the rows came back to what they were."""
    shop.do(CREATE)
    before = shop.rows()
    shop.append([(20, "new")])
    owner: Any = {"write": DatabaseTable, "serve": ViewFolder}[point]

    def cut(*_: Any) -> None:
        raise Cut

    with monkeypatch.context() as patch, shop.open() as session:
        patch.setattr(owner, point, cut)
        with pytest.raises(Cut):
            session.sql("REFRESH d.v")
    assert shop.rows() == (before if point == "write" else shop.full())
    shop.append(list(enumerate(TEXTS)), mode="replace")
    assert shop.do("REFRESH d.v")[2] == "its last refresh was not finished"
    assert shop.rows() == before == shop.full()


# --- tables that only grow -----------------------------------------------------------------------

GROWS = f"""CREATE MATERIALIZED VIEW v WITH (grows = 'd.reviews.id') AS
SELECT r.id, {TOPIC} AS topic FROM d.reviews r ORDER BY id"""


def test_a_refresh_reads_the_rows_above_the_mark_alone(shop: Shop) -> None:
    assert shop.do(GROWS)[0] == len(set(TEXTS))
    assert shop.view() == shop.full()
    assert shop.do("REFRESH v") == (0, False, "nothing changed")
    shop.append([(20, "new"), (21, TEXTS[0])])
    with shop.open() as session:
        attachment: Any = session.attached["d"]
        with attachment.hearing() as heard:
            assert session.sql("REFRESH v").to_pylist()[0]["asked"] == 1
        assert heard
        assert all(" > 11" in query or "LIMIT" in query.upper() for _, query in heard), heard
    assert shop.view() == shop.full()
    with shop.open() as session:
        assert not [name for name in session.catalog().schema().table_names() if "beside" in name]
    shop.append([(3, "corrected")], mode="upsert", key="id")  # against what was said
    assert shop.do("REFRESH v") == (0, False, "nothing changed")
    assert shop.do(GROWS.replace("CREATE", "CREATE OR REPLACE"))[0] == 1
    assert shop.view() == shop.full()


def opened(folder: Path) -> bf.Session:
    model = bf.ScriptedModel(script, fingerprint="by digests")
    return bf.connect(model, cache=None, progress="off", views_folder=str(folder))


MARKS: dict[str, Any] = {
    "numbers": [*range(12)],
    "texts": [f"it's {n:03}" for n in range(12)],
    "times": [datetime(2026, 11, 1) + timedelta(hours=n, microseconds=n) for n in range(12)],
    "floats": [n / 7 for n in range(12)],
}


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
def test_marks_of_each_type(marks: list[Any], tmp_path: Path) -> None:
    """Growing plain tables under joins and aggregates, in steps of random sizes."""
    rng, at = random.Random(f"{marks}"), 0
    queries = {
        "rows": f"SELECT at, {TOPIC} AS topic FROM t ORDER BY at",
        "groups": f"SELECT {TOPIC} AS topic, count(*) AS n FROM t GROUP BY 1 ORDER BY 1",
        "joined": f"SELECT a.at, b.topic FROM t a JOIN (SELECT at, {TOPIC} AS topic FROM t) b ON a.at = b.at ORDER BY 1",
        "last": f"WITH t2 AS (SELECT * FROM t WHERE {TOPIC} = 'size') SELECT * FROM t2 ORDER BY at DESC LIMIT 2",
    }
    while at < len(marks):
        first = at == 0
        at = min(at + rng.randint(0 if at else 1, 5), len(marks))
        with opened(tmp_path) as session, opened(tmp_path / "other") as other:
            for one in (session, other):
                one.from_pydict({"at": marks[:at], "text": TEXTS[:at]}, name="t")
            for name, query in queries.items():
                create = f"CREATE MATERIALIZED VIEW {name} WITH (grows = 't.at') AS {query}"
                session.sql(create if first else f"REFRESH {name}")
                found = session.sql(f"SELECT * FROM {name}").to_arrow_table()
                assert found.to_pylist() == other.sql(query).to_pylist(), (name, at)
                assert session.sql(f"REFRESH {name}").to_pylist()[0]["why"] == "nothing changed"


def test_another_column_reads_all_rows(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.from_pydict({"at": [1, 2], "text": ["a", "b"]}, name="t")
        session.sql("CREATE MATERIALIZED VIEW v WITH (grows = 't.at') AS SELECT * FROM t")
        session.deregister_table("t")
        session.from_pydict({"at": [1, 2], "text": ["a", "b"], "more": [5, 6]}, name="t")
        session.sql("REFRESH v")
        assert session.sql("SELECT more FROM v ORDER BY at").to_pylist() == [
            {"more": 5},
            {"more": 6},
        ]


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("WITH (grows = 'id')", "'id' names no column of a table"),
        ("WITH (grows = 'u.at')", "the query reads no table 'u'|unknown table 'u'"),
        ("WITH (grows = 't.when')", "the table t has no column 'when'"),
        ("WITH (grows = 't.empty')", "1 rows of t have no empty"),
        ("WITH (shrinks = 't.at')", "this is no option of a view"),
        ("WITH (grows = 5)", "this is no option of a view"),
        ("WITH ()", "this is no option of a view"),
    ],
)
def test_wrong_clauses_are_errors(clause: str, message: str, tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        session.from_pydict({"at": [1, 2], "text": ["a", "b"], "empty": [None, 1]}, name="t")
        with pytest.raises(bf.QueryError, match=message):
            session.sql(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT * FROM t")
        assert session.materialized_views == {}
