"""What may change the rows of a view while one session goes on: files behind its back, tables of
the same name, views, functions and models made again."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from view_kinds import script

import blendfusion as bf

State = Iterator[tuple[str, list[int] | None]]
"""The query of the view in each state of the session, of which the first one makes it, and the
values of its first column; None: those that the session's own run gives."""
GOOD = "llm_filter('Is it good?', text)"


def opened(folder: Path, **options: Any) -> bf.Session:
    model = bf.ScriptedModel(script, fingerprint="by digests")
    views = str(folder / "views")
    return bf.connect(model, cache=None, progress="off", views_folder=views, **options)


def replace_table(session: bf.Session, name: str, *ids: int) -> None:
    if session.table_exist(name):
        session.deregister_table(name)
    session.from_pydict({"id": [*ids], "text": [f"text {n}" for n in ids]}, name=name)


def write(file: Path, *ids: int, mtime: int | None = None) -> None:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "text": [f"text {n}" for n in ids]})
    if file.suffix == ".parquet":
        pq.write_table(rows, file, compression="none", use_dictionary=False)
    elif file.suffix == ".json":
        file.write_text("".join(f'{{"id": {n}, "text": "text {n}"}}\n' for n in ids))
    else:
        pa.csv.write_csv(rows, file)
    if mtime is not None:
        os.utime(file, ns=(mtime, mtime))


# --- each: the state of the session before a change and after it --------------------------------


def rows_of_a_file(session: bf.Session, folder: Path) -> State:
    """Of equal size and time of change."""
    for ids in ((11, 12), (91, 92), (13, 93)):
        write(folder / "a.parquet", *ids, mtime=10**18)
        if not session.table_exist("p"):
            session.register_parquet("p", str(folder / "a.parquet"))
        good = [n for n in ids if n > 50]
        yield "SELECT id FROM p WHERE id > 50 ORDER BY id", good


def the_form_of_a_file(session: bf.Session, folder: Path) -> State:
    """Of equal size and time of change: its groups of rows lie in other places."""
    file, size = folder / "a.parquet", 20_000
    for first, groups in enumerate((100, 10, 50)):
        rows = pa.table({"id": pa.array(range(first, 100 + first), pa.int64())})
        blanks = size // 2
        for _ in range(3):
            with pq.ParquetWriter(file, rows.schema) as writer:
                writer.write_table(rows, row_group_size=groups)
                writer.add_key_value_metadata({"blanks": " " * blanks})
            blanks += size - file.stat().st_size
        assert file.stat().st_size == size
        os.utime(file, ns=(10**18, 10**18))
        if not session.table_exist("p"):
            session.register_parquet("p", str(file))
        yield "SELECT sum(id) AS n, max(id) AS m FROM p", [sum(range(first, 100 + first))]


def files_of_a_folder(suffix: str) -> Callable[[bf.Session, Path], State]:
    def states(session: bf.Session, folder: Path) -> State:
        place = folder / "t"
        place.mkdir()
        query = "SELECT id FROM p ORDER BY id"
        write(place / f"b.{suffix}", 1, 2, 3)
        register = {"parquet": session.register_parquet, "csv": session.register_csv}
        register.get(suffix, session.register_json)("p", str(place))
        yield query, [1, 2, 3]
        write(place / f"c.{suffix}", 4, 5, 6, 7)
        yield query, [1, 2, 3, 4, 5, 6, 7]
        (place / f"c.{suffix}").rename(place / f"a.{suffix}")
        yield query, [1, 2, 3, 4, 5, 6, 7]
        (place / f"b.{suffix}").unlink()
        yield query, [4, 5, 6, 7]

    states.__name__ = f"files_of_a_folder_{suffix}"
    return states


def folders_of_partitions(session: bf.Session, folder: Path) -> State:
    place = folder / "t" / "year=2023"
    place.mkdir(parents=True)
    write(place / "a.parquet", 1, 2)
    session.register_parquet("p", str(folder / "t"))
    yield "SELECT id, year FROM p ORDER BY id", None
    place.rename(place.with_name("year=2024"))
    yield "SELECT id, year FROM p ORDER BY id", None


def registered_files(session: bf.Session, folder: Path) -> State:
    place = folder / "t"
    place.mkdir()
    write(place / "a.csv", 1, 2)
    session.register_file(place, name="p")
    yield "SELECT id FROM p ORDER BY id", [1, 2]
    write(place / "b.csv", 3, 4)
    yield "SELECT id FROM p ORDER BY id", [1, 2, 3, 4]


def external_tables(session: bf.Session, folder: Path) -> State:
    place = folder / "t"
    place.mkdir()
    write(place / "a.parquet", 1, 2)
    session.sql(f"CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{place}/'").collect()
    yield "SELECT id FROM p ORDER BY id", [1, 2]
    write(place / "b.parquet", 3, 4)
    yield "SELECT id FROM p ORDER BY id", [1, 2, 3, 4]


def files_in_from(session: bf.Session, folder: Path) -> State:
    for ids in ((1, 2), (3, 4)):
        write(folder / "a.csv", *ids, mtime=10**18)
        yield f"SELECT id FROM '{folder / 'a.csv'}'", [*ids]


def the_table_of_a_view(session: bf.Session, folder: Path) -> State:
    """A view reads the table of its time, also when another one has the name."""
    replace_table(session, "t", 1, 2)
    session.sql("CREATE VIEW w AS SELECT * FROM t").collect()
    replace_table(session, "t", 3, 4)
    yield "SELECT id FROM w ORDER BY id", None
    session.sql("CREATE OR REPLACE VIEW w AS SELECT * FROM t").collect()
    yield "SELECT id FROM w ORDER BY id", None


def the_table_of_a_view_of_a_view(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", 1, 2)
    session.sql("CREATE VIEW w AS SELECT * FROM t").collect()
    session.sql("CREATE VIEW ww AS SELECT * FROM w WHERE id IN (SELECT id FROM w)").collect()
    replace_table(session, "t", 3, 4)
    yield f"SELECT id FROM t UNION ALL SELECT id FROM ww WHERE {GOOD} ORDER BY id", None
    session.sql("CREATE OR REPLACE VIEW w AS SELECT * FROM t").collect()
    session.sql("CREATE OR REPLACE VIEW ww AS SELECT * FROM w WHERE id IN (SELECT id FROM w)")
    yield f"SELECT id FROM t UNION ALL SELECT id FROM ww WHERE {GOOD} ORDER BY id", None


def the_table_of_a_view_in_a_subquery(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", 1, 2)
    session.sql("CREATE VIEW w AS SELECT * FROM t").collect()
    replace_table(session, "t", 2, 3)
    query = "SELECT id FROM t WHERE id NOT IN (SELECT id FROM w) OR id < (SELECT max(id) FROM w)"
    yield query, None
    session.sql("CREATE OR REPLACE VIEW w AS SELECT * FROM t").collect()
    yield query, None


def the_file_of_a_view(session: bf.Session, folder: Path) -> State:
    write(folder / "a.parquet", 1, 2)
    session.register_parquet("p", str(folder / "a.parquet"))
    session.sql(f"CREATE VIEW w AS SELECT * FROM p WHERE {GOOD} OR id > 1").collect()
    yield "SELECT id FROM w ORDER BY id", None
    write(folder / "a.parquet", 3, 4)
    yield "SELECT id FROM w ORDER BY id", None


def the_frame_of_a_view(session: bf.Session, folder: Path) -> State:
    for ids in ((1, 2), (3, 4)):
        if session.table_exist("w"):
            session.deregister_table("w")
        session.register_view("w", session.from_pydict({"id": [*ids]}))
        yield "SELECT id FROM w ORDER BY id", None


def a_database_behind_its_name(session: bf.Session, folder: Path) -> State:
    for n in (1, 2):
        with closing(sqlite3.connect(folder / f"{n}.db")) as database:
            database.execute("CREATE TABLE t AS SELECT ? AS id", (n,))
            database.commit()
        if n == 2:
            session.detach("shop")
        session.attach(str(folder / f"{n}.db"), "shop")
        yield "SELECT id FROM shop.t", None


def a_table_of_a_database(session: bf.Session, folder: Path) -> State:
    for n in (1, 2, 3):
        with closing(sqlite3.connect(folder / "d.db")) as database:
            if n < 3:
                database.execute("DROP TABLE IF EXISTS t")
                database.execute("CREATE TABLE t AS SELECT ? AS id, 'x' AS text", (n,))
            else:
                database.execute("UPDATE t SET id = 3")
            database.commit()
        if n == 1:
            session.attach(str(folder / "d.db"), "shop")
        yield f"SELECT id, {GOOD} AS y FROM shop.t", None


def a_view_of_a_database(session: bf.Session, folder: Path) -> State:
    for n in (1, 2):
        with closing(sqlite3.connect(folder / "d.db")) as database:
            database.execute("DROP VIEW IF EXISTS w")
            database.execute(f"CREATE VIEW w AS SELECT {n} AS id")
            database.commit()
        if n == 1:
            session.attach(str(folder / "d.db"), "shop")
        yield "SELECT id FROM shop.w", None


def a_lance_table(session: bf.Session, folder: Path) -> State:
    lance = pytest.importorskip("lance")
    place = str(folder / "r.lance")
    lance.write_dataset(pa.table({"id": [1]}), place)
    session.register_lance("r", place)
    yield "SELECT id FROM r ORDER BY id", None
    lance.write_dataset(pa.table({"id": [2]}), place, mode="append")
    yield "SELECT id FROM r ORDER BY id", None
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"id": [3]}), place)
    lance.write_dataset(pa.table({"id": [4]}), place, mode="append")
    yield "SELECT id FROM r ORDER BY id", None


def a_lance_table_of_a_view(session: bf.Session, folder: Path) -> State:
    lance = pytest.importorskip("lance")
    for n in (1, 2):
        lance.write_dataset(pa.table({"id": [n]}), str(folder / f"{n}.lance"))
        if n == 2:
            session.deregister_table("r")
        session.register_lance("r", str(folder / f"{n}.lance"))
        if n == 1:
            session.sql("CREATE VIEW w AS SELECT * FROM r").collect()
    yield "SELECT id FROM w", None
    session.sql("CREATE OR REPLACE VIEW w AS SELECT * FROM r").collect()
    yield "SELECT id FROM w", None


def a_delta_table(session: bf.Session, folder: Path) -> State:
    deltalake = pytest.importorskip("deltalake")
    place = str(folder / "lake")
    for n, mode in ((1, "overwrite"), (2, "append"), (3, "overwrite")):
        deltalake.write_deltalake(place, pa.table({"id": [n]}), mode=mode)
        if n > 1:
            session.deregister_table("r")
        session.register_lake("r", place)
        yield "SELECT id FROM r ORDER BY id", None


def a_function_declared_again(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", *range(20))
    for number in (1, 2):
        text = f"def late(model, text: pa.StringArray) -> pa.Int64Array: return pa.array([{number}] * len(text))"
        names: dict[str, Any] = {"pa": pa}
        exec(text, names)
        bf.ingredient(names["late"], deterministic=str(number))
        yield "SELECT late(text) AS y FROM t", [number] * 20


def a_model_behind_its_name(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", 1, 2)
    for answer in (True, False):
        session.register_model(
            "m", bf.ScriptedModel(lambda call, a=answer: a, fingerprint=str(answer))
        )
        yield "SELECT id, llm_filter('Is it?', text, model => 'm') AS y FROM t ORDER BY id", None


def examples_of_a_question(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", 1, 2)
    for label in ("a", "b"):
        if session.table_exist("e"):
            session.deregister_table("e")
        session.from_pydict({"text": ["text 9"], "label": [label]}, name="e")
        examples = "examples => (SELECT text, label FROM e)"
        query = f"SELECT id, llm_classify(text, ['a', 'b'], {examples}) AS y FROM t ORDER BY id"
        yield query, None


def a_stored_question(session: bf.Session, folder: Path) -> State:
    replace_table(session, "t", *range(20))
    for text in ("Is it loud?", "Is it late?"):
        call = f"llm_filter('{text}', text)"
        session.register_question(bf.StoredQuestion("q", call))
        yield "SELECT id, llm_ask('q', text) AS y FROM t ORDER BY id", None


def the_order_of_rows(session: bf.Session, folder: Path) -> State:
    for ids in ((1, 2, 3), (3, 2, 1)):
        replace_table(session, "t", *ids)
        yield "SELECT id FROM t", None


def the_type_of_a_column(session: bf.Session, folder: Path) -> State:
    for kind in (pa.int64(), pa.int32(), pa.float64()):
        if session.table_exist("t"):
            session.deregister_table("t")
        session.from_arrow(pa.table({"id": pa.array([1, 2], kind)}), name="t")
        yield "SELECT id FROM t", None


def a_column_more(session: bf.Session, folder: Path) -> State:
    for names in (("id",), ("id", "more"), ("more", "id")):
        if session.table_exist("t"):
            session.deregister_table("t")
        session.from_pydict({name: [1] for name in names}, name="t")
        yield "SELECT * FROM t", None


def changed_rows(session: bf.Session, folder: Path) -> State:
    session.sql("CREATE TABLE t AS SELECT 1 AS id, 'text 1' AS text").collect()
    yield f"SELECT id, {GOOD} AS y FROM t ORDER BY id", None
    for change in (
        "INSERT INTO t VALUES (2, 'text 2')",
        "UPDATE t SET text = 'text 3'",
        "DELETE FROM t WHERE id = 1",
    ):
        session.sql(change).collect()
        yield f"SELECT id, {GOOD} AS y FROM t ORDER BY id", None


KINDS = (
    rows_of_a_file,
    the_form_of_a_file,
    *map(files_of_a_folder, ("parquet", "csv", "json")),
    folders_of_partitions,
    registered_files,
    external_tables,
    files_in_from,
    the_table_of_a_view,
    the_table_of_a_view_of_a_view,
    the_table_of_a_view_in_a_subquery,
    the_file_of_a_view,
    the_frame_of_a_view,
    a_database_behind_its_name,
    a_table_of_a_database,
    a_view_of_a_database,
    a_lance_table,
    a_lance_table_of_a_view,
    a_delta_table,
    a_function_declared_again,
    a_model_behind_its_name,
    examples_of_a_question,
    a_stored_question,
    the_order_of_rows,
    the_type_of_a_column,
    a_column_more,
    changed_rows,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
def test_what_changes_within_a_session_is_seen(
    kind: Callable[[bf.Session, Path], State], tmp_path: Path
) -> None:
    session = opened(tmp_path, read_files="local")
    for query, expected in kind(session, tmp_path):
        is_new = "v" not in session.materialized_views
        text = f"CREATE MATERIALIZED VIEW v AS {query}" if is_new else "REFRESH v"
        report = session.sql(text).to_pylist()[0]
        served = session.sql("SELECT * FROM v").to_arrow_table()
        assert served.to_pylist() == session.sql(query).to_pylist()
        assert expected is None or served.column(0).to_pylist() == expected
        assert report["why"] != "nothing changed"
        assert session.sql("REFRESH v").to_pylist()[0]["rewritten"] is False
    session.close()


def a_frame_of_a_file(session: bf.Session, folder: Path) -> State:
    for ids in ((11, 12), (91, 92), (13, 93)):
        write(folder / "a.parquet", *ids, mtime=10**18)
        frame = session.read_parquet(str(folder / "a.parquet"))
        if session.table_exist("p"):
            session.deregister_table("p")
        session.register_view("p", frame)
        yield "SELECT id FROM p WHERE id > 50", [n for n in ids if n > 50]


def another_file_of_the_name(session: bf.Session, folder: Path) -> State:
    for file in ("a.parquet", "b.parquet"):
        for ids in ((11, 12), (91, 92)):
            write(folder / file, *ids, mtime=10**18)
            if ids[0] == 11:
                if session.table_exist("p"):
                    session.deregister_table("p")
                session.register_parquet("p", str(folder / file))
            yield "SELECT id FROM p WHERE id > 50", [n for n in ids if n > 50]


def a_file_in_from(session: bf.Session, folder: Path) -> State:
    for ids in ((11, 12), (91, 92), (13, 93)):
        write(folder / "a.parquet", *ids, mtime=10**18)
        yield f"SELECT id FROM '{folder / 'a.parquet'}' WHERE id > 50", [n for n in ids if n > 50]


def a_file_behind_a_view(session: bf.Session, folder: Path) -> State:
    for query, ids in rows_of_a_file(session, folder):
        if not session.table_exist("w"):
            session.sql("CREATE VIEW w AS SELECT * FROM p").collect()
        yield query.replace(" p ", " w "), ids


READ = (
    rows_of_a_file,
    the_form_of_a_file,
    *map(files_of_a_folder, ("parquet", "json")),  # one of CSV has the files of its registration
    files_in_from,
    external_tables,
    a_frame_of_a_file,
    another_file_of_the_name,
    a_file_in_from,
    a_file_behind_a_view,
)
RUNS: dict[str, Callable[[bf.Frame], list[Any]]] = {
    "table": lambda frame: frame.to_arrow_table().column(0).to_pylist(),
    "stream": lambda frame: [r.as_py() for b in frame for r in b.to_pyarrow().column(0)],
    "parts": lambda frame: [
        row for part in frame.collect_partitioned() for b in part for row in b.column(0).to_pylist()
    ],
    "kept": lambda frame: frame.cache().to_arrow_table().column(0).to_pylist(),
    "asked": lambda frame: (
        frame.with_column("is_it", bf.llm_filter("Is it?", bf.lit("text")))
        .to_arrow_table()
        .column(0)
        .to_pylist()
    ),
}


@pytest.mark.parametrize("way", RUNS)
@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.__name__)
def test_a_query_reads_files_as_they_are(
    kind: Callable[[bf.Session, Path], State], way: str, tmp_path: Path
) -> None:
    session = opened(tmp_path, read_files="local")
    for query, expected in kind(session, tmp_path):
        assert RUNS[way](session.sql(query)) == expected
    session.close()


def test_a_frame_reads_its_file_as_it_is(tmp_path: Path) -> None:
    session, file = opened(tmp_path), tmp_path / "a.parquet"
    write(file, 11, 12, mtime=10**18)
    session.register_parquet("p", str(file))
    frames = (session.read_parquet(str(file)), session.table("p"))
    few = [frame.filter(bf.col("id") > 50) for frame in frames]
    assert [frame.to_pylist() for frame in few] == [[], []]
    write(file, 91, 12, mtime=10**18)
    assert [frame.count() for frame in few] == [1, 1]
    session.close()
