"""Clusters over files of any sizes, and a session that is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from postgres_server import new_database

import blendfusion as bf
from blendfusion.models.stores.sqlite import SqliteStore

QUERIES = (
    "SELECT id, llm_map('Say', x) AS y FROM t WHERE llm_filter('Is it?', x) ORDER BY id",
    "SELECT llm_int('How many?', x) AS n, count(*) AS c, min(id) AS m FROM t GROUP BY 1 ORDER BY 1",
    "SELECT x, llm_text('Which?', x) AS c FROM t ORDER BY x DESC, id LIMIT 9",
)


def divided(folder: Path, rng: random.Random) -> list[str | None]:
    """Rows in 4 to 64 files of any lengths, some of them empty, in any order; their values."""
    rows = rng.randrange(1, 1_500)
    skew, long = rng.choice((0.0, 0.5, 0.99)), rng.choice(("", " and more" * 9))
    number = rng.choice((3, 60, 1_000))
    values = [
        None
        if rng.random() < 0.02
        else f"usual{long}"
        if rng.random() < skew
        else f"v{rng.randrange(number)}{long}"
        for _ in range(rows)
    ]
    if rng.random() < 0.3:
        values.sort(key=str)
    table = pa.table({"id": range(rows), "x": pa.array(values, pa.string())})
    cuts = sorted(rng.choices(range(rows + 1), k=rng.randrange(3, 64)))
    for place, (start, stop) in enumerate(zip([0, *cuts], [*cuts, rows], strict=True)):
        pq.write_table(table.slice(start, stop - start), folder / f"{place:03}.parquet")
    return values


def connected(folder: Path, cluster: str | None) -> bf.Session:
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="hashed", batch_size=8)
    session = bf.connect(model, cache=None, cluster=cluster, progress="off")
    session.register_parquet("t", str(folder))
    return session


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_rows_do_not_depend_on_how_they_are_divided(tmp_path: Path, workers: int) -> None:
    """Bit for bit those of one machine, each distinct value asked once."""
    for seed in range(4):
        rng = random.Random(f"{workers} {seed}")
        folder = tmp_path / str(seed)
        folder.mkdir()
        values = divided(folder, rng)
        with connected(folder, None) as here, connected(folder, f"local:{workers}") as there:
            for query in QUERIES:
                expected, frame = here.sql(query), there.sql(query)
                assert frame.to_arrow_table().equals(expected.to_arrow_table()), (seed, query)
                calls = frame.trace.calls.select(["question", "values", "cached"]).to_pylist()
                asked = Counter((c["question"], *c["values"]) for c in calls if not c["cached"])
                assert set(asked.values()) <= {1}, (seed, query)
                assert frame.trace.usage.values == expected.trace.usage.values, (seed, query)
            assert there.ledger.usage.values <= 4 * len({v for v in values if v is not None})


SESSION = """
import sys
import cluster_scripts
import blendfusion as bf

if __name__ == "__main__":
    folder, cache = sys.argv[1:]
    model = bf.ScriptedModel(cluster_scripts.slowly, fingerprint="hashed", batch_size=4)
    with bf.connect(model, cache=cache, cluster="local:2", progress="off") as session:
        session.register_parquet("t", folder)
        session.sql("SELECT llm_int('q', x) FROM t").collect()
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no such signal")
def test_the_rerun_of_a_killed_session_asks_nothing_that_was_stored(tmp_path: Path) -> None:
    folder, cache, script = tmp_path / "t", tmp_path / "answers.sqlite", tmp_path / "session.py"
    folder.mkdir()
    for place in range(4):
        rows = {"x": [f"value {i}" for i in range(place * 100, place * 100 + 100)]}
        pq.write_table(pa.table(rows), folder / f"{place}.parquet")
    script.write_text(SESSION)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, str(script), str(folder), str(cache)]
    with subprocess.Popen(command, env=environment) as process:
        while not (cache.exists() and SqliteStore(cache).stats().entries >= 40):
            assert process.poll() is None, "it has ended before"
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    stored = 0
    while stored < (now := SqliteStore(cache).stats().entries):  # workers end a moment later
        stored = now
        time.sleep(0.5)
    assert 40 <= stored < 400
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="hashed")
    with bf.connect(model, cache=cache, cluster="local:2", progress="off") as again:
        again.register_parquet("t", str(folder))
        frame = again.sql("SELECT llm_int('q', x) FROM t")
        assert len(frame.to_pylist()) == 400
        assert frame.trace.usage.values == 400 - stored


@pytest.mark.long
@pytest.mark.parametrize("cache", ["file", "folder", "postgres"])
def test_workers_read_and_write_the_store_of_the_session(tmp_path: Path, cache: str) -> None:
    """A second session asks nothing, with a cluster or without."""
    (tmp_path / "t").mkdir()
    divided(tmp_path / "t", random.Random(5))
    address: Path | str = tmp_path / "answers.sqlite"
    if cache != "file":
        address = (tmp_path / "shared").as_uri() if cache == "folder" else new_database()
    found = []
    for cluster in ("local:2", "local:2", None):
        model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="hashed", batch_size=8)
        with bf.connect(model, cache=address, cluster=cluster, progress="off") as session:
            session.register_parquet("t", str(tmp_path / "t"))
            frame = session.sql(QUERIES[0])
            rows = frame.to_arrow_table()
            calls = frame.trace.calls.num_rows
            found.append((rows, frame.trace.usage.values, frame.trace.usage.cached, calls))
    first, second, alone = found
    assert first[0].equals(second[0])
    assert first[0].equals(alone[0])
    assert first[1] > 0 == second[1] == alone[1]
    assert second[2] == alone[2] == first[1] == second[3]


def test_a_manifest_of_a_run_in_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    divided(tmp_path / "t", random.Random(6))
    frames = []
    for cluster in (None, "local:2"):
        with connected(tmp_path / "t", cluster) as session:
            frame = session.sql(QUERIES[0])
            manifest = frame.manifest()
            texts = {key: answer.text for key, answer in manifest.answers.items()}
            frames.append((texts, manifest.result.to_pydict()))
    assert frames[0] == frames[1]
    assert frames[0][0]
