"""Owners of ranges with more values than their memory may hold: files, right rows, nothing twice."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_scripts import requests_in
from kills import killing

import blendfusion as bf
from blendfusion.services.cluster.local import LocalWorkers
from blendfusion.services.cluster.messages import NewValues
from blendfusion.services.cluster.range_questions import RangeQuestion

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not Path("/proc/self/fd").exists(), reason="this system does not list a process's files"
    ),
]
VALUES, BATCH = 12_000, 128
QUERY = "SELECT id FROM t WHERE llm_filter('f', x) ORDER BY id"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight files; each value stands in two of them."""
    (tmp_path / "noted").mkdir()
    (tmp_path / "files").mkdir()
    monkeypatch.setenv(cluster_scripts.FOLDER, str(tmp_path / "noted"))
    (tmp_path / "t").mkdir()
    for place in range(8):
        ids = [*range(place, 2 * VALUES, 8)]
        table = pa.table({"id": ids, "x": [f"value {i * 7 % VALUES}" for i in ids]})
        pq.write_table(table, tmp_path / "t" / f"{place}.parquet")
    return tmp_path


def opened(folder: Path, cluster: str | None, **options: Any) -> bf.Session:
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=BATCH)
    options = {"spill_folder": str(folder / "files"), **options}
    session = bf.connect(model, cache=None, cluster=cluster, progress="off", **options)
    session.register_parquet("t", str(folder / "t"))
    return session


def processes(session: bf.Session) -> list[int]:
    assert session.cluster is not None
    workers = session.cluster.back_end
    assert isinstance(workers, LocalWorkers)
    return [*workers.processes.values()]


def bytes_in_files(process: int) -> int:
    """The bytes of answers and values that a process has in files, which have no name."""
    total = 0
    try:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if "/files/" in os.readlink(file):
                total += file.stat().st_size
    except OSError:  # it has ended, or closed the file
        pass
    return total


@contextmanager
def watched(session: bf.Session) -> Iterator[dict[int, int]]:
    """The most bytes in files, by worker."""
    most: dict[int, int] = {}
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            for process in processes(session):
                most[process] = max(most.get(process, 0), bytes_in_files(process))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield most
    finally:
        done.set()
        thread.join()


def rows_here(folder: Path) -> pa.Table:
    before = {file.name for file in (folder / "noted").iterdir()}
    with opened(folder, None) as here:
        rows = here.sql(QUERY).to_arrow_table()
    for file in (folder / "noted").iterdir():
        if file.name not in before:
            file.unlink()
    return rows


@pytest.mark.parametrize("chunk_rows", [1_000_000, 1_500])
def test_owners_move_values_and_answers_to_files(folder: Path, chunk_rows: int) -> None:
    """With large chunks most values wait for a model there, with small ones most are answered."""
    with opened(folder, "local:2", spill_above=1, chunk_rows=chunk_rows) as there:
        frame = there.sql(QUERY)
        with watched(there) as most:
            rows = frame.to_arrow_table()
        assert frame.trace.usage.values == VALUES
        assert len([size for size in most.values() if size > 20_000]) == 2, most
    requests = requests_in(folder / "noted")
    assert len(requests) == len(set(requests)) == VALUES
    assert rows.equals(rows_here(folder))
    assert [*(folder / "files").iterdir()] == []


def test_without_a_limit_that_is_reached_there_are_no_files(folder: Path) -> None:
    with opened(folder, "local:2") as there, watched(there) as most:
        assert len(there.sql(QUERY).to_arrow_table())
    assert set(most.values()) == {0}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_an_owner_with_files_is_killed(folder: Path, seed: int) -> None:
    """Its files are gone with it; the store has what was answered."""
    with opened(folder, "local:3", spill_above=1, chunk_rows=3_000) as there:

        def pick(rng: random.Random) -> int | None:
            with_files = [p for p in processes(there) if bytes_in_files(p)]
            return rng.choice(with_files) if with_files else None

        frame = there.sql(QUERY)
        with killing(pick, seed, most=2, seconds=0.3) as ended:
            rows = frame.to_arrow_table()
    assert ended
    requests = requests_in(folder / "noted")
    assert len(set(requests)) == VALUES
    assert len(requests) <= VALUES + len(ended) * BATCH, "a batch a kill"
    assert rows.equals(rows_here(folder))


def test_values_that_nobody_told_the_session_of_are_asked_about(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker was gone between an owner's having its values and the session's knowing, and the
    owner took them in after the session had asked for such values."""
    lost: list[NewValues] = []

    def add(question: RangeQuestion, added: NewValues) -> None:
        if not lost:
            lost.append(added)
            added = replace(added, new={})
        told(question, added)

    told = RangeQuestion.add
    monkeypatch.setattr(RangeQuestion, "add", add)
    with opened(folder, "local:2") as there:
        rows = there.sql(QUERY).to_arrow_table()
    assert sum(lost[0].new.values())
    assert rows.equals(rows_here(folder))
    assert len(requests_in(folder / "noted")) == VALUES
