"""Random queries over folders of files end, and give the rows of a run without the planner.

``pytest tests/engine/files/test_random_folders.py --cases 20000`` runs more of them, FOLDERS_FROM=100000
others."""

from __future__ import annotations

import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import cluster_scripts
import pytest
from folder_queries import FolderQuery, folder_query, write_tables
from time_limit import within

import blendfusion as bf

TIMES, SECONDS = 100.0, 1.0
"""A query may take so many times as long as without the planner, and so long besides."""
SHARE = 0.05
"""How many of the cases run here."""
WAYS = ("rows", "rows", "rows", "stream", "estimate", "explain", "show")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[bf.Session, bf.Session]]:
    """One without the planner, and one with it."""
    folder = tmp_path_factory.mktemp("folders")
    write_tables(folder)
    plain, planned = (opened(folder, planner=planner) for planner in (False, True))
    with plain, planned:
        yield plain, planned


def opened(folder: Path, *, planner: bool) -> bf.Session:
    model = bf.ScriptedModel(cluster_scripts.hashed)
    session = bf.connect(model, cache=None, progress="off", planner=planner)
    for table in folder.iterdir():
        session.register_parquet(table.name, f"{table}/")
    session.sql("SET datafusion.execution.target_partitions = 4")
    return session


def rows_of(session: bf.Session, sql: str) -> Counter[str]:
    return Counter(map(repr, session.sql(sql).to_pylist()))


def run(session: bf.Session, query: FolderQuery, way: str) -> Counter[str] | None:
    """The rows of a query; None where they are not looked at."""
    frame = session.sql(query.sql)
    if way == "rows":
        return Counter(map(repr, frame.to_pylist()))
    if way == "stream":
        found = [batch.to_pyarrow() for batch in frame.execute_stream()]
        return Counter(repr(row) for batch in found for row in batch.to_pylist())
    if way == "show":
        frame.show()
    elif way == "estimate":
        frame.estimate()
    else:
        session.sql(f"EXPLAIN {query.sql}").to_pylist()
    return None


def test_queries_over_folders_end(
    sessions: tuple[bf.Session, bf.Session], cases: int, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, planned = sessions
    first = int(os.environ.get("FOLDERS_FROM", "0"))
    seen: Counter[str] = Counter()
    for seed in range(first, first + int(cases * SHARE)):
        rng = random.Random(seed)
        query, way = folder_query(rng), rng.choice(WAYS)
        start = time.monotonic()
        try:
            wanted = rows_of(plain, query.whole)
        except bf.BlendFusionError:  # DataFusion does not run it either
            seen["refused"] += 1
            continue
        bound = TIMES * (time.monotonic() - start) + SECONDS
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always", bf.PlanWarning)
            with within(bound, f"seed {seed}, {way}: {query.sql}"):
                found = run(planned, query, way)
        seen["unplanned"] += bool(noted)
        seen["unfinished"] += planned.sql(query.sql).prepared.unfinished
        seen[way] += 1
        if found is None:
            continue
        if query.limit is None:
            assert found == wanted, f"seed {seed}: {query.sql}"
        else:
            assert found <= wanted, f"seed {seed}: {query.sql}"
            assert found.total() == min(query.limit, wanted.total()), f"seed {seed}: {query.sql}"
    capsys.readouterr()
    assert seen["refused"] <= 0.05 * seen.total() + 3
    assert seen["unplanned"] <= 0.06 * seen.total() + 3
    assert seen["unfinished"] == 0
