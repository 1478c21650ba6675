"""Materialised views: statements, names, sources, what is served, and errors."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from loopback import Body, Reply, said, serving

import blendfusion as bf
from blendfusion.services.views.folder import escape

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "text": ["good a", "bad", "good c"]}
QUERY = "SELECT id, text FROM reviews WHERE llm_filter('Is it good?', text)"
GOOD = [{"id": 1, "text": "good a"}, {"id": 3, "text": "good c"}]


def connect(folder: Path, fingerprint: str = "good", **options: Any) -> bf.Session:
    model = bf.ScriptedModel(lambda call: "good" in call.values[0], fingerprint=fingerprint)
    return bf.connect(model, cache=None, progress="off", views_folder=str(folder), **options)


@pytest.fixture
def session(tmp_path: Path) -> bf.Session:
    """A session with a view of two of three rows."""
    made = connect(tmp_path / "views")
    made.from_pydict(ROWS, name="reviews")
    made.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    return made


def report(session: bf.Session, statement: str) -> tuple[int, bool, str]:
    """(values asked, rewritten, why) of a statement."""
    row = session.sql(statement).to_pylist()[0]
    return row["asked"], row["rewritten"], row["why"]


def test_a_view_is_a_table_of_every_session_over_its_folder(
    session: bf.Session, tmp_path: Path
) -> None:
    assert session.sql("SELECT * FROM v").to_pylist() == GOOD
    other = connect(tmp_path / "views", read_only=True)
    assert other.sql("SELECT * FROM v").to_pylist() == GOOD
    assert other.table("v").to_pylist() == GOOD
    view = other.materialized_views["v"]
    assert (view.query, view.version, view.rows, view.values, view.failed) == (QUERY, 1, 2, 3, 0)
    session.sql("INSERT INTO reviews VALUES (4, 'good d')").collect()
    assert report(session, "REFRESH v") == (1, True, "the table reviews changed")
    assert len(other.sql("SELECT * FROM v").to_pylist()) == 3
    session.sql("DROP MATERIALIZED VIEW v")
    with pytest.raises(bf.QueryError, match="unknown table 'v'"):
        other.sql("SELECT * FROM v")
    assert [*(tmp_path / "views").iterdir()] == []


def test_another_session_asks_nothing_again(session: bf.Session, tmp_path: Path) -> None:
    other = connect(tmp_path / "views")
    other.from_pydict({**ROWS, "text": ["good a", "good z", "good c"]}, name="reviews")
    assert report(other, "REFRESH v") == (1, True, "the table reviews changed")
    assert report(session, "REFRESH v") == (0, True, "the table reviews changed")
    assert session.sql("SELECT * FROM v").to_pylist() == GOOD


def test_equal_rows_are_no_new_version(session: bf.Session) -> None:
    session.sql("INSERT INTO reviews VALUES (9, 'bad again')").collect()
    assert report(session, "REFRESH v") == (1, False, "the table reviews changed")
    assert session.materialized_views["v"].version == 1
    assert report(session, "REFRESH v") == (0, False, "nothing changed")


def test_explain_says_why_and_what_is_asked(session: bf.Session) -> None:
    def plan() -> str:
        return "\n".join(session.sql("EXPLAIN REFRESH v").to_pydict()["plan"])

    assert plan().endswith("nothing changed: 0 values are asked, and the rows stay")
    session.sql("INSERT INTO reviews VALUES (4, 'good d'), (5, 'good a')").collect()
    assert "  the table reviews changed\n" in plan()
    assert "expected: 1 value of 5 rows (exact), 3 cached" in plan()
    assert report(session, "REFRESH v")[0] == 1


REFUSED = {
    f"CREATE MATERIALIZED VIEW v AS {QUERY}": "a materialised view 'v' already.*\nHint: REFRESH v",
    f"CREATE MATERIALIZED VIEW reviews AS {QUERY}": "has a table 'reviews' already",
    "CREATE MATERIALIZED VIEW w": "this CREATE has no query",
    "CREATE MATERIALIZED VIEW w AS": "this CREATE has no query",
    "CREATE MATERIALIZED VIEW AS SELECT 1": "this CREATE has no query",
    "CREATE MATERIALIZED VIEW w AS DROP TABLE reviews": "is made of a query",
    "CREATE MATERIALIZED VIEW w AS COPY reviews TO 'x.csv'": "is made of a query",
    "CREATE MATERIALIZED VIEW w AS SELECT * INTO x FROM reviews": "is made of a query",
    "CREATE MATERIALIZED VIEW w AS SELECT nix FROM reviews": "unknown column 'nix'",
    "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT * FROM v": "cannot read itself",
    "REFRESH w": "no materialised view 'w'.*\nHint: Known: v",
    "REFRESH": "the name of a materialised view is missing",
    "REFRESH v w": "a REFRESH has the name of one view",
    "EXPLAIN REFRESH w": "no materialised view 'w'",
    "DROP MATERIALIZED VIEW w": "no materialised view 'w'",
    "DROP MATERIALIZED VIEW v CASCADE": "this DROP goes on",
}


@pytest.mark.parametrize("statement", REFUSED)
def test_a_wrong_statement_is_refused_and_changes_nothing(
    statement: str, session: bf.Session
) -> None:
    before = session.materialized_views
    with pytest.raises(bf.QueryError, match=f"(?s){REFUSED[statement]}"):
        session.sql(statement)
    assert session.materialized_views == before
    assert session.sql("SELECT * FROM v").to_pylist() == GOOD


@pytest.mark.parametrize(
    "statement",
    [f"CREATE MATERIALIZED VIEW w AS {QUERY}", "REFRESH v", "DROP MATERIALIZED VIEW v"],
)
def test_a_read_only_session_changes_no_view(statement: str, session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match="read-only"):
        session.sql(statement, read_only=True)
    assert [*session.materialized_views] == ["v"]


def test_forms_of_statements(session: bf.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1 AS one")
    assert session.materialized_views["v"].query == QUERY
    asked = report(session, f"create or replace materialized view V as {QUERY} AND id > 1 ;")
    assert asked == (0, True, "it is new")
    assert session.sql("SELECT id FROM v").to_pylist() == [{"id": 3}]
    assert report(session, "-- daily\nREFRESH MATERIALIZED VIEW v;")[0] == 0
    session.sql("DROP MATERIALIZED VIEW IF EXISTS w")
    session.sql("DROP MATERIALIZED VIEW IF EXISTS v")
    assert session.materialized_views == {}


NAMES = [
    "a b",
    "../up",
    "/etc",
    "A",
    "a",
    "..",
    ".",
    'with "quotes"',
    "ä",
    "a/b\\c",
    "x" * 300,
    "%41",
]


def test_no_name_is_a_path(session: bf.Session, tmp_path: Path) -> None:
    before = {*tmp_path.iterdir()}
    for number, name in enumerate(NAMES):
        quoted = name.replace('"', '""')
        session.sql(f'CREATE MATERIALIZED VIEW "{quoted}" AS SELECT {number} AS n')
    for number, name in enumerate(NAMES):
        quoted = name.replace('"', '""')
        assert session.sql(f'SELECT n FROM "{quoted}"').to_pylist() == [{"n": number}]
        assert session.sql(f'REFRESH "{quoted}"').to_pylist()[0]["view"] == name
    assert [*session.materialized_views] == sorted([*NAMES, "v"])
    assert {*tmp_path.iterdir()} == before
    assert len({escape(name) for name in NAMES}) == len(NAMES)


def test_files_are_for_their_owner(session: bf.Session, tmp_path: Path) -> None:
    for file in (tmp_path / "views" / "v").iterdir():
        assert file.name == "writing" or file.stat().st_mode & 0o077 == 0, file.name


def changed(folder: Path, how: str) -> None:
    """Write the table 'reviews' as another program would."""
    rows = pa.table({"id": [1, 2], "text": ["good a", how]})
    pq.write_table(rows, folder / "reviews.parquet")
    (folder / "reviews.csv").write_text(f"id,text\n1,good a\n2,{how}\n")
    (folder / "reviews.jsonl").write_text(
        '{"id":1,"text":"good a"}\n' + json.dumps({"id": 2, "text": how}) + "\n"
    )
    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    pq.write_table(rows, parts / "one.parquet")


@pytest.mark.parametrize("file", ["reviews.parquet", "reviews.csv", "reviews.jsonl", "parts"])
def test_files_that_change(file: str, tmp_path: Path) -> None:
    for round_, (how, asked) in enumerate([("bad", 2), ("bad", 0), ("good b", 1)]):
        changed(tmp_path, how)
        session = connect(tmp_path / "views")
        session.register_file(tmp_path / file, "reviews")
        statement = "REFRESH v" if round_ else f"CREATE MATERIALIZED VIEW v AS {QUERY}"
        assert report(session, statement)[:2] == (asked, how == "good b" or not round_)


def test_lakes_that_change(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    place = str(tmp_path / "lake")
    for round_, (text, asked) in enumerate([("good a", 1), ("good b", 1), (None, 0)]):
        if text is not None:
            deltalake.write_deltalake(place, pa.table({"id": [1], "text": [text]}), mode="append")
        session = connect(tmp_path / "views")
        session.register_lake("reviews", place)
        statement = "REFRESH v" if round_ else f"CREATE MATERIALIZED VIEW v AS {QUERY}"
        assert report(session, statement)[:2] == (asked, text is not None)


def test_a_table_that_takes_the_name_of_a_lake(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(str(tmp_path / "lake"), pa.table(ROWS))
    session = connect(tmp_path / "views")
    session.register_lake("reviews", tmp_path / "lake")
    session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    assert report(session, "REFRESH v") == (0, False, "nothing changed")
    session.deregister_table("reviews")
    session.from_pydict({"id": [1], "text": ["good a"]}, name="reviews")
    assert report(session, "REFRESH v") == (0, True, "the table reviews changed")
    assert session.sql("SELECT id FROM v").to_pylist() == [{"id": 1}]


def test_a_lance_table_that_changes(tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    place = str(tmp_path / "reviews.lance")
    lance.write_dataset(pa.table(ROWS), place)
    session = connect(tmp_path / "views")
    session.register_lance("reviews", place)
    session.sql(f"CREATE MATERIALIZED VIEW v AS {QUERY}")
    assert report(session, "REFRESH v") == (0, False, "nothing changed")
    lance.dataset(place).update({"text": "'good b'"}, where="id = 2")
    assert report(session, "REFRESH v") == (1, True, "the table reviews changed")
    assert len(session.sql("SELECT id FROM v").to_pylist()) == 3


def test_another_model_is_asked_again(session: bf.Session, tmp_path: Path) -> None:
    other = connect(tmp_path / "views", fingerprint="another")
    other.from_pydict(ROWS, name="reviews")
    assert report(other, "REFRESH v") == (3, False, "the model scripted changed")
    assert report(session, "REFRESH v") == (0, False, "the model scripted changed")


def test_a_failed_value_is_asked_again(tmp_path: Path) -> None:
    fails = [True]
    model = bf.ScriptedModel(
        lambda call: None if fails[0] and call.values[0] == "bad" else True, fingerprint="fails"
    )
    with bf.connect(model, cache=None, views_folder=str(tmp_path)) as session:
        session.from_pydict(ROWS, name="reviews")
        with pytest.warns(bf.AnswerWarning):
            assert report(session, f"CREATE MATERIALIZED VIEW v AS {QUERY}")[0] == 3
        assert session.materialized_views["v"].failed == 1
        fails[0] = False
        assert report(session, "REFRESH v") == (1, True, "1 values had no valid answer")
        assert report(session, "REFRESH v") == (0, False, "nothing changed")


@pytest.mark.parametrize("call", ["now()", "current_date", "random()"])
def test_a_query_that_is_another_one_each_time_runs_each_time(
    call: str, session: bf.Session
) -> None:
    session.sql(f"CREATE MATERIALIZED VIEW w AS SELECT id FROM reviews WHERE {call} IS NOT NULL")
    asked, rewritten, why = report(session, "REFRESH w")
    assert (asked, rewritten) == (0, False)
    assert "is another value in each run" in why


def test_a_view_of_a_view(session: bf.Session) -> None:
    session.sql("CREATE MATERIALIZED VIEW w AS SELECT max(id) AS id FROM v")
    session.sql("INSERT INTO reviews VALUES (4, 'good d')").collect()
    assert report(session, "REFRESH w")[1] is False
    session.sql("REFRESH v")
    assert report(session, "REFRESH w") == (0, True, "the table v changed")
    assert session.sql("SELECT id FROM w").to_pylist() == [{"id": 4}]


def test_a_damaged_view_hurts_no_other_query(session: bf.Session, tmp_path: Path) -> None:
    state = tmp_path / "views" / "v" / "view.json"
    whole = json.loads(state.read_text())
    state.write_text(json.dumps({**whole, "query": "SELECT 1"}))
    other = connect(tmp_path / "views")
    assert other.sql("SELECT 1 AS one").to_pylist() == [{"one": 1}]
    with pytest.raises(bf.QueryError, match=r"is no view that BlendFusion has made.*checksum"):
        other.sql("REFRESH v")
    other.from_pydict(ROWS, name="reviews")
    assert report(other, f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERY}")[0] == 0


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    session = connect(tmp_path / "file")
    with pytest.raises(bf.QueryError, match=r"no view can be kept in .*\nHint: .*views_folder"):
        session.sql("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one")


def test_a_table_of_the_session_keeps_its_name(session: bf.Session, tmp_path: Path) -> None:
    other = connect(tmp_path / "views")
    other.from_pydict({"one": [1]}, name="v")
    assert other.sql("SELECT * FROM v").to_pylist() == [{"one": 1}]


def test_a_table_that_takes_the_name_of_a_view_stays(session: bf.Session, tmp_path: Path) -> None:
    other = connect(tmp_path / "views")
    assert len(other.sql("SELECT * FROM v").to_pylist()) == 2
    other.deregister_table("v")
    other.from_pydict({"one": [1]}, name="v")
    session.sql("INSERT INTO reviews VALUES (4, 'good d')").collect()
    session.sql("REFRESH v")
    assert other.sql("SELECT * FROM v").to_pylist() == [{"one": 1}]


RUNNER = """
import os, sys
import blendfusion as bf

def run(statement):
    with bf.connect({spec!r}, cache=None, concurrency={concurrency}, progress="off",
                    views_folder={folder!r}) as session:
        session.from_pydict({{"x": [f"value {{i}}" for i in range({values})]}}, name="t")
        session.sql(statement)

print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(line.strip())
        os._exit(0)
    print(child, flush=True)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""
CONCURRENCY, KILLS = 4, 60
BATCH = 8 * CONCURRENCY


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_killed_refreshes_serve_the_old_version_and_go_on(tmp_path: Path) -> None:
    """kill −9 at random moments, during CREATE and REFRESH: whole versions alone are served, and
    all in all a kill costs a batch at most."""
    rng, asked, lock, last = random.Random(5), Counter[str](), threading.Lock(), [0]
    killed = threading.Event()

    def script(body: Body) -> Reply:
        text = said(body)
        value = text[text.rindex("value ") :].split("\n")[0].strip()
        with lock:
            asked[value] += 1
            held = asked.total() > last[0]
        return Reply(f"echo of {value}", wait=killed if held else None)

    folder, values = tmp_path / "views", 1_500
    with serving(script) as server:
        made = {"spec": f"openai:tiny@{server.url}", "folder": str(folder)}
        code = RUNNER.format(values=values, concurrency=CONCURRENCY, **made)
        runner = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert runner.stdin is not None
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
        create = (
            "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT x, llm_text('Echo', x) AS y FROM t"
        )
        served = {"version": 0}
        for number in range(KILLS + 1):
            killed.clear()
            ends = number in (KILLS // 2, KILLS)
            with lock:
                last[0] = sys.maxsize if ends else asked.total() + rng.randint(1, 2 * BATCH)
            limit = "" if number > KILLS // 2 else " LIMIT 700"
            runner.stdin.write(f"{create}{limit}\n")
            runner.stdin.flush()
            child = int(runner.stdout.readline())
            if not ends:
                time.sleep(0.15 + rng.random() * 0.15)
                os.kill(child, signal.SIGKILL)
            assert runner.stdout.readline() == "ended\n"
            killed.set()
            with bf.connect(None, cache=None, views_folder=str(folder)) as session:
                views = session.materialized_views
                version = views["v"].version if views else 0
                assert version in (served["version"], served["version"] + 1)
                served["version"] = version
                if version:
                    rows = session.sql("SELECT * FROM v").to_pylist()
                    assert len(rows) == views["v"].rows
                    assert all(row["y"] == f"echo of {row['x']}" for row in rows)
        runner.stdin.close()
        assert runner.wait(60) == 0
        runner.stdout.close()
    assert served["version"] == 2
    assert len(asked) == values
    assert asked.total() <= values + KILLS * BATCH


def test_tables_of_a_database_that_change(tmp_path: Path) -> None:
    place = tmp_path / "shop.db"
    with closing(sqlite3.connect(place)) as database:
        database.execute("CREATE TABLE reviews (id INTEGER, text TEXT)")
        database.execute("INSERT INTO reviews VALUES (1, 'good a'), (2, 'bad')")
        database.commit()
        session = connect(tmp_path / "views")
        session.attach(place, "shop")
        query = QUERY.replace("FROM reviews", "FROM shop.reviews")
        assert report(session, f"CREATE MATERIALIZED VIEW v AS {query}")[0] == 2
        assert report(session, "REFRESH v") == (0, False, "nothing changed")
        database.execute("UPDATE reviews SET text = 'good b' WHERE id = 2")
        database.commit()
        assert report(session, "REFRESH v") == (1, True, "the table shop.reviews changed")
        assert session.sql("SELECT id FROM v").to_pylist() == [{"id": 1}, {"id": 2}]


def test_a_search_has_no_digest_and_runs_each_time(session: bf.Session, tmp_path: Path) -> None:
    pytest.importorskip("lance")
    session.index("notes", "reviews", columns="text", path=tmp_path / "notes.index", vectors=False)
    query = "SELECT id, text FROM llm_search('notes', 'good', k => 5) WHERE llm_filter('Is it good?', text)"
    assert report(session, f"CREATE MATERIALIZED VIEW w AS {query} ORDER BY id")[0] == 0
    asked, rewritten, why = report(session, "REFRESH w")
    assert (asked, rewritten) == (0, False)
    assert "cannot be told" in why


def test_an_example_that_changes(tmp_path: Path) -> None:
    session = connect(tmp_path / "views")
    session.from_pydict(ROWS, name="reviews")
    session.from_pydict({"text": ["very good"], "label": ["true"]}, name="labelled")
    call = "llm_filter('Is it good?', text, examples => (SELECT text, label FROM labelled))"
    session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT id FROM reviews WHERE {call}")
    assert report(session, "REFRESH v") == (0, False, "nothing changed")
    session.sql("INSERT INTO labelled VALUES ('very bad', 'false')").collect()
    assert report(session, "REFRESH v") == (3, False, "the table labelled changed")


def test_two_refreshes_at_once_ask_once(tmp_path: Path) -> None:
    model = bf.ScriptedModel(lambda call: time.sleep(0.01) or True, fingerprint="slow")

    def opened() -> bf.Session:
        made = bf.connect(model, cache=None, progress="off", views_folder=str(tmp_path))
        made.from_pydict(
            {"id": list(range(40)), "text": [f"text {n}" for n in range(40)]}, "reviews"
        )
        return made

    opened().sql(f"CREATE MATERIALIZED VIEW v AS {QUERY} AND id < 1")
    sessions = [opened() for _ in range(3)]
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW v AS {QUERY}"
    threads = [threading.Thread(target=one.sql, args=(statement,)) for one in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(model.calls) == 40
    assert sessions[0].sql("SELECT count(*) AS n FROM v").to_pylist() == [{"n": 40}]
