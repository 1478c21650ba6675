"""Queries over folders of files end: the partitions of a plan are read together."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from datafusion.record_batch import RecordBatchStream
from time_limit import within

import blendfusion as bf
from blendfusion.datafusion import partitions
from blendfusion.datafusion.partitions import in_turn

SECONDS = 20.0
"""Far more than any of these queries takes on a busy machine."""

ROWS = 24


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders ``r`` and ``s`` of three files each, and ``large`` of one file of many rows."""
    folder = tmp_path_factory.mktemp("folders")
    r = pa.table({"id": range(ROWS), "x": [f"v{i % 7}" for i in range(ROWS)]})
    s = pa.table({"rid": range(ROWS), "y": [f"w{i % 5}" for i in range(ROWS)]})
    many = pa.table({"rid": range(300_000)})
    for name, table, files in (("r", r, 3), ("s", s, 3), ("large", many, 1)):
        (folder / name).mkdir()
        step = len(table) // files
        for i in range(files):
            pq.write_table(table.slice(i * step, step), folder / name / f"{i}.parquet")
    return folder


def over(folders: Path, **options: str) -> bf.Session:
    session = bf.connect(bf.ScriptedModel(cluster_scripts.hashed), cache=None, **options)
    for name in ("r", "s", "large"):
        session.register_parquet(name, f"{folders / name}/")
    session.sql("SET datafusion.execution.target_partitions = 4")
    return session


@pytest.fixture(scope="module", params=["alone", "cluster"])
def session(folders: Path, request: pytest.FixtureRequest) -> Iterator[bf.Session]:
    options = {"cluster": "local:2"} if request.param == "cluster" else {}
    with over(folders, **options) as opened:
        yield opened


SHAPES = {
    "join": "SELECT r.id FROM r JOIN s ON s.rid = r.id WHERE llm_filter('q', r.x) LIMIT 3",
    "both sides": "SELECT r.id FROM r JOIN s ON s.rid = r.id "
    "WHERE llm_filter('q', r.x) AND llm_filter('p', s.y) LIMIT 2",
    "large": "SELECT r.id FROM r JOIN large l ON l.rid = r.id WHERE llm_filter('q', r.x) LIMIT 3",
    "two joins": "SELECT r.id FROM r JOIN s ON s.rid = r.id JOIN s z ON z.y = s.y "
    "WHERE llm_filter('q', r.x) LIMIT 3",
    "IN": "SELECT id FROM r WHERE id IN (SELECT rid FROM s) AND llm_filter('q', x) LIMIT 3",
    "left join": "SELECT r.id FROM r LEFT JOIN s ON s.rid = r.id WHERE llm_filter('q', r.x) LIMIT 3",
    "EXISTS": "SELECT 1 WHERE EXISTS "
    "(SELECT 1 FROM r JOIN s ON s.rid = r.id AND llm_filter('q', r.x))",
    "union below a join": "SELECT u.id FROM (SELECT id, x FROM r UNION ALL SELECT rid, y FROM s) u "
    "JOIN s ON s.rid = u.id WHERE llm_filter('q', u.x) LIMIT 3",
    "union of joins": "SELECT u.x FROM (SELECT r.x FROM r JOIN s ON s.rid = r.id UNION ALL "
    "SELECT s.y FROM s JOIN large l ON l.rid = s.rid) u WHERE llm_filter('q', u.x) LIMIT 9",
    "offset": "SELECT r.id FROM r JOIN s ON s.rid = r.id WHERE llm_filter('q', r.x) "
    "LIMIT 2 OFFSET 3",
    "DISTINCT of EXCEPT": "SELECT DISTINCT x FROM (SELECT r.x, r.id FROM r JOIN s ON s.rid = r.id "
    "EXCEPT SELECT y, rid FROM s) d WHERE llm_filter('q', x)",
    "EXCEPT": "SELECT r.id FROM r JOIN s ON s.rid = r.id WHERE llm_filter('q', r.x) "
    "EXCEPT SELECT rid FROM s WHERE rid > 20",
    "answers as keys": "SELECT r.id FROM r JOIN s ON llm_text('q', r.x) = llm_text('p', s.y) LIMIT 2",
    "derived table": "SELECT count(*) FROM (SELECT r.id FROM r JOIN s ON s.rid = r.id "
    "WHERE llm_filter('q', r.x) LIMIT 3) z",
}
WAYS: dict[str, Callable[[bf.Session, str], object]] = {
    "rows": lambda db, sql: db.sql(sql).to_pylist(),
    "stream": lambda db, sql: [*db.sql(sql).execute_stream()],
    "first batch": lambda db, sql: next(iter(db.sql(sql).execute_stream()), None),
    "count": lambda db, sql: db.sql(sql).count(),
    "estimate": lambda db, sql: db.sql(sql).estimate(),
    "explain": lambda db, sql: db.sql(f"EXPLAIN {sql}").to_pylist(),
    "explain analyze": lambda db, sql: db.sql(f"EXPLAIN ANALYZE {sql}").to_pylist(),
    "show": lambda db, sql: db.sql(without_limit(sql)).show(),
    "a thread": lambda db, sql: in_thread(lambda: db.sql(sql).to_pylist()),
}
_OF_CLUSTERS = ("rows", "first batch", "estimate")


def without_limit(sql: str) -> str:
    return re.sub(r" LIMIT [0-9]+( OFFSET [0-9]+)?$", "", sql)


def in_thread(work: Callable[[], object]) -> object:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert found, "the thread has not ended"
    return found[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_query_over_folders_ends(
    session: bf.Session, shape: str, way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if session.cluster is not None and way not in _OF_CLUSTERS:
        pytest.skip("as on one machine")
    with within(SECONDS, SHAPES[shape]):
        WAYS[way](session, SHAPES[shape])


@pytest.mark.parametrize("shape", SHAPES)
def test_its_rows_are_rows_of_the_whole(session: bf.Session, shape: str) -> None:
    """The rows below a limit are some of those without, as many as it says."""
    sql = SHAPES[shape]
    whole = session.sql(without_limit(sql)).to_pylist()
    with within(SECONDS, sql):
        found = session.sql(sql).to_pylist()
    limit = re.search(r" LIMIT ([0-9]+)( OFFSET [0-9]+)?$", sql)
    assert len(found) == min(int(limit[1]) if limit else len(whole), len(whole))
    assert all(row in whole for row in found)


def test_a_limit_meets_the_same_rows_each_time(folders: Path) -> None:
    found = []
    for _ in range(3):
        with over(folders) as session:
            frame = session.sql(SHAPES["large"])
            found.append((frame.to_pylist(), frame.trace.usage.values))
    assert found[0] == found[1] == found[2]


# --- partitions ----------------------------------------------------------------------------------


def streams_of(sql: str, parts: int = 3) -> list[RecordBatchStream]:
    context = SessionContext()
    context.sql(f"SET datafusion.execution.target_partitions = {parts}").collect()
    context.sql("SET datafusion.execution.batch_size = 8").collect()
    batches = [[pa.record_batch({"n": [100 * p + i]}) for i in range(40)] for p in range(parts)]
    context.register_record_batches("t", batches)
    return context.sql(sql).execute_stream_partitioned()


def kept(tables: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables)


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return [n for batch in batches for n in batch.column(0).to_pylist()]


def test_one_batch_of_each_partition_comes_in_turn() -> None:
    found = numbers(in_turn(streams_of("SELECT n FROM t"), kept))
    assert found[:6] == [0, 100, 200, 1, 101, 201]
    rows = [100 * p + i for p in range(3) for i in range(40)]
    assert sorted(found) == rows
    assert numbers(in_turn(streams_of("SELECT n FROM t"), kept, whole=True)) == rows


class Batch:
    def __init__(self, n: int) -> None:
        self._n = n

    def to_pyarrow(self) -> pa.RecordBatch:
        return pa.record_batch({"n": [self._n]})


class Scripted:
    """A partition that waits for ``other`` to be read to its end, as an operator may, and fails or
    ends behind its batches."""

    def __init__(
        self, *given: int, other: Scripted | None = None, error: Exception | None = None
    ) -> None:
        self.rbs = self
        self._left = [*given]
        self._end = error or StopAsyncIteration()
        self._waiting: list[Callable[[], None]] = []
        self._is_over = False
        self._other = other

    def __anext__(self) -> asyncio.Future[Batch]:
        future = asyncio.get_running_loop().create_future()
        if self._other is None or self._other._is_over:
            self._settle(future)
        else:
            self._other._waiting.append(lambda: self._settle(future))
        return future

    def _settle(self, future: asyncio.Future[Batch]) -> None:
        if self._left:
            future.set_result(Batch(self._left.pop(0)))
            return
        future.set_exception(self._end)
        self._is_over = isinstance(self._end, StopAsyncIteration)
        for go_on in self._waiting if self._is_over else ():
            go_on()


def test_the_others_read_on_while_one_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_SILENT_SECONDS", 0.01)
    stored = []

    def keep(tables: Iterable[pa.Table]) -> pa.Table:
        stored.append(kept(tables))
        return stored[-1]

    last = Scripted(*range(100))
    with within(SECONDS, "one partition that waits for another"):
        found = numbers(in_turn([Scripted(-1, -2, other=last), last], keep))  # type: ignore[list-item]
    assert found == [-1, 0, -2, *range(1, 100)]
    assert [len(table) for table in stored] == [16] * 6


def test_an_error_ends_the_partitions_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "_SILENT_SECONDS", 0.01)
    last = Scripted(1, 2, error=ValueError("no such row"))
    with within(SECONDS, "a partition that waits for one that failed"):
        batches = in_turn([Scripted(-1, other=last), last], kept)  # type: ignore[list-item]
        with pytest.raises(ValueError, match="no such row"):
            numbers(batches)


def test_an_error_behind_the_rows_that_are_wanted_is_not_met() -> None:
    last = Scripted(1, error=ValueError("no such row"))
    batches = in_turn([Scripted(-1, -2), last], kept)  # type: ignore[list-item]
    assert numbers(next(batches) for _ in range(3)) == [-1, 1, -2]
