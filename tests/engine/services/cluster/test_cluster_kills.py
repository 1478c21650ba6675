"""Owners of many values that are killed: every row is right, and a kill costs a batch at most."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_scripts import requests_in
from kills import killing
from ray_here import ray_or_skip

import blendfusion as bf
from blendfusion.services.cluster.local import LocalWorkers
from blendfusion.services.cluster.ray_workers import RayPlace

pytestmark = [
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
]
QUERY = "SELECT id, x FROM t WHERE llm_filter('f', x) ORDER BY id"
BATCH = 4


def killed(
    folder: Path,
    noted: Path,
    cluster: str,
    find: Callable[[bf.Session, random.Random], int | None],
    seed: int,
    *,
    kills: int,
    seconds: float,
) -> tuple[int, int]:
    """Run the query while the processes that ``find`` finds are killed; the number of kills, and of
    the values that were asked twice."""
    model = bf.ScriptedModel(cluster_scripts.slowly, fingerprint="h", batch_size=BATCH)
    with bf.connect(model, cache=None, cluster=cluster, progress="off") as there:
        there.register_parquet("t", str(folder))
        frame = there.sql(QUERY)

        def pick(rng: random.Random) -> int | None:
            return find(there, rng) if requests_in(noted) else None

        with killing(pick, seed, most=kills, seconds=seconds) as ended:
            rows = frame.to_arrow_table()
    requests = requests_in(noted)
    twice = len(requests) - len(set(requests))
    assert twice <= len(ended) * BATCH, "a batch a kill"
    values = len(pq.read_table(folder))
    assert len(set(requests)) == values
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h")
    with bf.connect(model, cache=None, progress="off") as here:
        here.register_parquet("t", str(folder))
        assert rows.equals(here.sql(QUERY).to_arrow_table())
    return len(ended), twice


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "noted").mkdir()
    monkeypatch.setenv(cluster_scripts.FOLDER, str(tmp_path / "noted"))
    return tmp_path / "noted"


def distinct(folder: Path, rows: int) -> Path:
    (folder / "t").mkdir()
    for place in range(8):
        ids = range(place * rows // 8, (place + 1) * rows // 8)
        table = pa.table({"id": ids, "x": [f"value {i}" for i in ids]})
        pq.write_table(table, folder / "t" / f"{place}.parquet")
    return folder / "t"


@pytest.mark.parametrize(("workers", "seconds"), [(2, 2.0), (3, 1.0), (4, 1.5), (4, 0.7)])
def test_workers_of_many_values_killed(
    tmp_path: Path, noted: Path, workers: int, seconds: float
) -> None:
    """Each process owns a range, asks a model and runs fragments; five of them end."""

    def find(session: bf.Session, rng: random.Random) -> int | None:
        assert session.cluster is not None
        workers = session.cluster.back_end
        assert isinstance(workers, LocalWorkers)
        return rng.choice([*workers.processes.values()])

    folder = distinct(tmp_path, 160 * workers)
    cluster = f"local:{workers}"
    kills, _ = killed(folder, noted, cluster, find, workers, kills=5, seconds=seconds)
    assert kills == 5


@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_owners_of_ranges_killed_in_ray(
    tmp_path: Path, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks models and runs fragments lives on."""
    ray = ray_or_skip(monkeypatch)

    def find(session: bf.Session, rng: random.Random) -> int | None:
        assert session.cluster is not None
        ranges = session.cluster.ranges
        places = [] if ranges is None else ranges.places
        place = rng.choice(places) if places else None
        if not isinstance(place, RayPlace):
            return None
        try:
            return int(ray.get(place.actor.process.remote()))
        except ray.exceptions.RayActorError:
            return None

    folder = distinct(tmp_path, 240)
    kills, twice = killed(folder, noted, "ray", find, 3, kills=3, seconds=2.0)
    assert kills
    assert twice == 0
