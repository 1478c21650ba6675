"""What may change the rows of a view beside the rows of its tables: after each change, a refresh
gives the rows of a full run, and without one it finds nothing."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from view_kinds import script
from word_groups import ByWord

import blendfusion as bf
from blendfusion.models.embedders.embedder import Vectors
from blendfusion.services.views.folder import ViewFolder
from blendfusion.services.views.kept_rows import KeptRows

ROWS: dict[str, list[Any]] = {"id": [1, 2, 3], "text": ["good a", "bad", "good c"]}
TOPIC = "SELECT id, llm_classify(text, (SELECT l FROM {} ORDER BY l)) AS k FROM t ORDER BY id"
WHEN = "CAST('2026-01-01T00:00:00' AS TIMESTAMP WITH TIME ZONE)"
Change = Callable[[], None]
State = Iterator[tuple[bf.Session, str]]


class Unsure(bf.ScriptedModel):
    """Answers as ``script``, with a probability that it tells."""

    def __init__(self, fingerprint: str = "by digests") -> None:
        super().__init__(lambda call: self._answer(call), fingerprint=fingerprint)

    def _answer(self, call: bf.Request) -> object:
        found = script(call)
        return {found: 0.75, not found: 0.25} if isinstance(found, bool) else found


class Other(ByWord):
    """Another embedder behind the same name."""

    fingerprint = "another"

    def embed(self, texts: list[str]) -> Vectors:
        return super().embed([f"late {text}" for text in texts])


def opened(folder: Path, **options: Any) -> bf.Session:
    options.setdefault("embedder", ByWord())
    session = bf.connect(
        Unsure(), cache=None, progress="off", views_folder=str(folder / "views"), **options
    )
    session.from_pydict(ROWS, name="t")
    return session


def replace_table(session: bf.Session, name: str, rows: dict[str, list[Any]]) -> None:
    if session.table_exist(name):
        session.deregister_table(name)
    session.from_pydict(rows, name=name)


# --- each: the state of a session before a change and after it, with the query of the view --------


def the_view_of_a_session(folder: Path) -> State:
    for where in ("id > 1", "id < 3"):
        session = opened(folder)
        session.sql(f"CREATE OR REPLACE VIEW w AS SELECT * FROM t WHERE {where}").collect()
        yield session, "SELECT id FROM w WHERE llm_filter('Is it good?', text)"


def the_options_of_csv(folder: Path) -> State:
    (folder / "a.csv").write_text("1;2,3\n4;5,6\n")
    columns = pa.schema([("a", pa.string()), ("b", pa.string())])
    for delimiter in ",;":
        session, file = opened(folder), str(folder / "a.csv")
        session.register_csv("c", file, has_header=False, schema=columns, delimiter=delimiter)
        yield session, "SELECT * FROM c"


def the_types_of_a_file(folder: Path) -> State:
    pq.write_table(pa.table({"a": [1, 2]}), folder / "a.parquet")
    for kind in (pa.int64(), pa.string()):
        session = opened(folder)
        session.register_parquet("p", str(folder / "a.parquet"), schema=pa.schema([("a", kind)]))
        yield session, "SELECT * FROM p"


def a_file_of_equal_size_and_time(folder: Path) -> State:
    file = folder / "a.parquet"
    for ids in ([1, 2], [91, 92]):
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        pq.write_table(rows, file, compression="none", use_dictionary=False)
        os.utime(file, ns=(10**18, 10**18))
        session = opened(folder)
        session.register_parquet("p", str(file))
        yield session, "SELECT id FROM p WHERE id > 50 ORDER BY id"


def a_lance_table_made_anew(folder: Path) -> State:
    lance = pytest.importorskip("lance")
    for text in ("good a", "good z"):
        shutil.rmtree(folder / "r.lance", ignore_errors=True)
        lance.write_dataset(pa.table({"id": [9], "text": [text]}), str(folder / "r.lance"))
        session = opened(folder)
        session.register_lance("r", str(folder / "r.lance"))
        yield session, "SELECT * FROM r"


def a_delta_table_made_anew(folder: Path) -> State:
    deltalake = pytest.importorskip("deltalake")
    for text in ("good a", "good z"):
        shutil.rmtree(folder / "lake", ignore_errors=True)
        deltalake.write_deltalake(str(folder / "lake"), pa.table({"text": [text]}))
        session = opened(folder)
        session.register_lake("r", str(folder / "lake"))
        yield session, "SELECT * FROM r"


def labels_of_a_database(folder: Path) -> State:
    for labels in (["a", "b"], ["c"]):
        with closing(sqlite3.connect(folder / "d.db")) as database:
            database.execute("CREATE TABLE IF NOT EXISTS labels (l TEXT)")
            database.executemany("INSERT INTO labels VALUES (?)", [(one,) for one in labels])
            database.commit()
        session = opened(folder)
        session.attach(str(folder / "d.db"), "shop")
        yield session, TOPIC.format("shop.labels")


def labels_behind_a_view(folder: Path) -> State:
    for labels in (["a", "b"], ["a", "c"]):
        session = opened(folder)
        replace_table(session, "labels", {"l": labels})
        session.sql("CREATE VIEW lv AS SELECT l FROM labels").collect()
        yield session, TOPIC.format("lv")


def labels_of_a_schema(folder: Path) -> State:
    for label in "bc":
        session = opened(folder)
        session.sql("CREATE SCHEMA s").collect()
        text = f"CREATE TABLE s.labels AS SELECT 'a' AS l UNION ALL SELECT '{label}'"
        session.sql(text).collect()
        yield session, TOPIC.format("s.labels")


def the_time_zone(folder: Path) -> State:
    for zone in ("+00:00", "+05:00"):
        session = opened(folder)
        session.sql(f"SET datafusion.execution.time_zone = '{zone}'").collect()
        yield session, f"SELECT id, CAST({WHEN} AS VARCHAR) AS moment FROM t ORDER BY id"


def the_share_that_is_asked(folder: Path) -> State:
    texts = [f"{'good' if n % 3 else 'bad'} {n}" for n in range(3_000)]
    for share in (0.05, 0.0):
        session = opened(folder, approximate=share)
        session.from_pydict({"text": texts}, name="many")
        yield session, "SELECT count(*) AS n FROM many WHERE llm_filter('Is it good?', text)"


def the_embedder(folder: Path) -> State:
    for embedder in (ByWord(), Other()):
        session = opened(folder, embedder=embedder)
        yield session, "SELECT id, llm_similarity(text, 'late good') AS s FROM t ORDER BY id"


def the_answers_of_people(folder: Path) -> State:
    options = "confidence => 0.9, review => 'r'"
    query = f"SELECT id, llm_filter('Is it good?', text, {options}) AS y FROM t ORDER BY id"
    for label in (None, "yes", "no"):
        session = opened(folder)
        session.sql(query).collect()
        if label is not None:
            session.review("r", {"value": ["bad"], "label": [label]})
        yield session, query


KINDS = (
    the_view_of_a_session,
    the_options_of_csv,
    the_types_of_a_file,
    a_file_of_equal_size_and_time,
    a_lance_table_made_anew,
    a_delta_table_made_anew,
    labels_of_a_database,
    labels_behind_a_view,
    labels_of_a_schema,
    the_time_zone,
    the_share_that_is_asked,
    the_embedder,
    the_answers_of_people,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::blendfusion.AnswerWarning")
def test_what_changes_rows_is_seen(kind: Callable[[Path], State], tmp_path: Path) -> None:
    for session, query in kind(tmp_path):
        is_new = "v" not in session.materialized_views
        report = session.sql(
            f"CREATE MATERIALIZED VIEW v AS {query}" if is_new else "REFRESH v"
        ).to_pylist()[0]
        assert report["why"] != "nothing changed"
        expected = session.sql(query).to_arrow_table()
        assert session.sql("SELECT * FROM v").to_pylist() == expected.to_pylist()
        assert session.sql("REFRESH v").to_pylist()[0]["why"] == "nothing changed"
        session.close()


ANSWERS = {"A": lambda call: "good" in call.values[0], "B": lambda call: "bad" in call.values[0]}


@pytest.mark.parametrize("way", ["asked again meanwhile", "killed before its rows were kept"])
def test_rows_of_another_model_are_never_used(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view of model A is refreshed with B, whose rows are not kept; and with B again."""
    many = [f"{'good' if n % 2 else 'bad'} {n}" for n in range(600)]
    rows: dict[str, list[Any]] = {"id": [*range(600)], "text": many}
    query = "SELECT id FROM t WHERE llm_filter('Is it good?', text)"

    def session_of(name: str, **options: Any) -> bf.Session:
        model = bf.ScriptedModel(ANSWERS[name], fingerprint=name)
        session = bf.connect(
            model, cache=None, progress="off", views_folder=str(tmp_path), **options
        )
        session.from_pydict(rows, name="t")
        return session

    session_of("A").sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    if way == "asked again meanwhile":
        session_of("B", drift_checks=3).sql("REFRESH v")
    else:
        with monkeypatch.context() as patch:
            patch.setattr(KeptRows, "save", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session_of("B").sql("REFRESH v")
    rows["id"].append(600)
    rows["text"].append("bad, and new")
    session = session_of("B")
    session.sql("REFRESH v")
    assert session.sql("SELECT * FROM v").to_pylist() == session.sql(query).to_pylist()


@pytest.mark.parametrize("mark", [float("nan"), float("inf")])
def test_a_mark_above_all_is_refused(mark: float, tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.from_pydict({"at": [1.0, mark]}, name="g")
    with pytest.raises(bf.QueryError, match="1 rows of g have no at"):
        session.sql("CREATE MATERIALIZED VIEW v WITH (grows = 'g.at') AS SELECT at FROM g")


@contextmanager
def no_file_above(most: int) -> Iterator[None]:
    """Within this context, a write beyond so many bytes of a file fails, as on a full disk."""
    resource = pytest.importorskip("resource")  # not on Windows
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.filterwarnings("ignore::blendfusion.CacheWarning")
@pytest.mark.parametrize("most", [0, 1_000, 30_000, 60_000, 150_000])
def test_a_full_disk_leaves_the_old_version(most: int, tmp_path: Path) -> None:
    """Or the new one, whole; a later refresh goes on."""
    session = opened(tmp_path)
    query = "SELECT id, llm_filter('Is it good?', text) AS good FROM big ORDER BY id"
    session.from_pydict({"id": [-1], "text": ["first"]}, name="big")
    session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    replace_table(session, "big", {"id": [*range(3000)], "text": [f"t{n}" for n in range(3000)]})
    with no_file_above(most):
        try:
            session.sql("REFRESH v")
            is_done = True
        except bf.BlendFusionError:
            is_done = False
    found = session.sql("SELECT * FROM v").to_arrow_table()
    assert found.num_rows == (3000 if is_done else 1)
    assert not [*(tmp_path / "views" / "v").glob("*.part")]
    session.sql("REFRESH v")
    assert session.sql("SELECT * FROM v").to_pylist() == session.sql(query).to_pylist()
    assert ViewFolder(tmp_path / "views", "v").load() == session.materialized_views["v"]


@pytest.mark.filterwarnings("ignore::blendfusion.CacheWarning")
def test_a_folder_that_is_deleted_during_a_refresh_is_named(tmp_path: Path) -> None:
    session = opened(tmp_path)
    query = "SELECT id FROM t WHERE llm_filter('Is it good?', text)"
    session.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    replace_table(session, "t", {"id": [4], "text": ["good d"]})

    def delete(call: bf.Request) -> object:
        shutil.rmtree(tmp_path / "views" / "v", ignore_errors=True)
        return True

    other = bf.connect(
        bf.ScriptedModel(delete, fingerprint="by digests"),
        cache=None,
        progress="off",
        views_folder=str(tmp_path / "views"),
    )
    replace_table(other, "t", {"id": [4], "text": ["good d"]})
    with pytest.raises(bf.QueryError, match="the folder of view v was deleted meanwhile"):
        other.sql("REFRESH v")
    assert not other.materialized_views
    other.sql(f"CREATE MATERIALIZED VIEW v AS {query.replace('good', 'fine')}")


@pytest.mark.parametrize("way", ["gone", "empty", "cut"])
@pytest.mark.parametrize("grows", [False, True])
def test_a_damaged_file_of_rows_is_made_again(grows: bool, way: str, tmp_path: Path) -> None:
    """Neither other queries nor readers of the view meet half of it."""
    clause = "WITH (grows = 't.id') " if grows else ""
    opened(tmp_path).sql(f"CREATE MATERIALIZED VIEW v {clause}AS SELECT id FROM t")
    files = [tmp_path / "views" / "v" / "rows-1.parquet"]
    files += (tmp_path / "views" / "v" / "rows-of-t").glob("*.parquet") if grows else []
    for file in files:
        content = file.read_bytes()
        file.unlink() if way == "gone" else file.write_bytes(content[: 50 * (way == "cut")])
    session = opened(tmp_path)
    assert session.sql("SELECT count(*) AS n FROM t").to_pylist() == [{"n": 3}]
    with pytest.raises(bf.QueryError, match="unknown table 'v'"):
        session.sql("SELECT * FROM v")
    report = session.sql("REFRESH v").to_pylist()[0]
    assert (report["rewritten"], report["version"]) == (True, 2)
    assert report["why"].endswith("the file of its rows is damaged")
    assert session.sql("SELECT * FROM v").to_pylist() == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert session.sql("REFRESH v").to_pylist()[0]["why"] == "nothing changed"


def test_every_function_that_changes_by_itself_is_known(tmp_path: Path) -> None:
    """Those that DataFusion calls so, but for those of files and for ranges of numbers."""
    text = (
        "SELECT DISTINCT routine_name FROM information_schema.routines WHERE NOT is_deterministic"
    )
    rows = SessionContext.sql(opened(tmp_path), text).to_pydict()["routine_name"]
    stable = {"file_row_index", "input_file_name", "generate_series", "range"}
    names = {name for name in rows if not name.startswith(("llm_", "bf_", "__"))} - stable
    assert names > {"random", "now"}
    for name in names:
        session = opened(tmp_path / name)
        session.sql(f"CREATE MATERIALIZED VIEW v AS SELECT {name}() AS x FROM t")
        why = session.sql("REFRESH v").to_pylist()[0]["why"]
        assert why == f"{name}() is another value in each run"
