"""Clusters: the rows of one machine, each distinct value asked once, whoever is killed."""

from __future__ import annotations

import datetime
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cluster_scripts
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cluster_scripts import requests_in
from cluster_sessions import distinct, files, session, shared_clusters, values_of
from garbage import after_collection
from kills import killing
from ray_here import ray_or_skip

import blendfusion as bf
from blendfusion.models.registry.load import load
from blendfusion.options import Options
from blendfusion.run.reports.trace import AnswerWarning
from blendfusion.services.cluster.cluster import Cluster, cluster_of
from blendfusion.services.cluster.local import LocalWorkers
from blendfusion.services.cluster.messages import decode_message
from blendfusion.services.cluster.model_pool import PooledModel

QUERIES = [
    "SELECT id, llm_map('Say', x) AS y FROM t WHERE id % 3 = 0 AND llm_filter('Is it?', x) ORDER BY id",
    "SELECT n, count(*) AS c, sum(id) AS s FROM (SELECT llm_int('How many?', x) AS n, id FROM t) "
    "GROUP BY n ORDER BY n",
    "SELECT u.w, t.x, count(*) AS c FROM t JOIN u ON t.k = u.k WHERE llm_filter('Is it?', t.x) "
    "GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT t.id, u.w FROM t LEFT JOIN u ON t.k = u.k WHERE llm_int('a', t.x) > 50 OR t.id < 3 "
    "ORDER BY 1, 2",
    "SELECT x, llm_classify(x, ['a', 'b', 'c']) AS c FROM t ORDER BY x DESC, id LIMIT 7",
    "SELECT a.id FROM t a WHERE llm_filter('f', a.x, sample => ['a', 'b']) AND a.k IN (SELECT k FROM u) ORDER BY 1",
    "SELECT id FROM t ORDER BY llm_int('rank', x), id",
]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[[int], Cluster]]:
    with shared_clusters() as of:
        yield of


@pytest.fixture
def noted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where processes that start from now on note their requests."""
    folder = tmp_path_factory.mktemp("noted")
    monkeypatch.setenv(cluster_scripts.FOLDER, str(folder))
    return folder


# --- the rows of one machine, each value once ----------------------------------------------------


@pytest.mark.parametrize(
    ("workers", "number", "skew"),
    [
        pytest.param(1, 4, 0.0, marks=pytest.mark.slow),
        (2, 7, 0.99),
        (4, 16, 0.0),
        pytest.param(8, 64, 0.5, marks=pytest.mark.slow),
    ],
)
def test_rows_are_those_of_one_machine_and_each_value_is_asked_once(
    clusters: Callable[[int], Cluster], tmp_path: Path, workers: int, number: int, skew: float
) -> None:
    folder = files(tmp_path, number, 600, skew=skew, seed=workers)
    here, there = session(folder, None), session(folder, clusters(workers))
    for query in QUERIES[: 7 if number < 64 else 2]:
        expected, frame = here.sql(query), there.sql(query)
        table = frame.to_arrow_table()
        assert table.equals(expected.to_arrow_table()), query
        asked = values_of(frame.trace)
        assert set(asked.values()) <= {1}, query
        assert asked == values_of(expected.trace), query


def test_the_files_are_read_there_and_models_are_asked_there(tmp_path: Path, noted: Path) -> None:
    folder = files(tmp_path, 6, 300)
    with bf.connect(
        bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=4),
        cache=None,
        cluster="local:3",
        progress="off",
    ) as there:
        there.register_parquet("t", str(folder))
        frame = there.sql("SELECT id FROM t WHERE llm_filter('f', x)")
        assert "in the cluster (local:3): 6 files of t, 3 workers" in frame.explain_text()
        frame.collect()
        requests = requests_in(noted)
        assert len(requests) == len(set(requests)) == frame.trace.usage.values == distinct(folder)
        assert str(os.getpid()) not in {file.name for file in noted.iterdir()}
        assert there.cluster is not None
        assert sum(there.cluster.pool.batches) >= 3
        assert frame.last_counts[0].rows_in == 300


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT llm_filter('f', x) FROM t LIMIT 3", "a limit ends it early"),
        ("SELECT llm_filter('f', x, sample => (SELECT w FROM u)) FROM t", "a sample come from"),
        ("SELECT llm_filter('f', w) FROM u", "no table of several files passes its rows on"),
        ("SELECT llm_filter('f', x) FROM t WHERE own(id) > 0", "own is a function of this program"),
        ("SELECT llm_filter('f', x) FROM t WHERE random() > 2", "gives other values each time"),
        ("SELECT llm_group(x, into => 2) AS g, count(*) FROM t GROUP BY 1", "rows"),
        (
            "SELECT llm_filter('f', x) FROM t a FULL JOIN u ON a.k = u.k",
            "no table of several files",
        ),
    ],
)
def test_explain_says_what_is_not_divided(
    clusters: Callable[[int], Cluster], tmp_path: Path, query: str, reason: str
) -> None:
    there = session(files(tmp_path, 3, 50), clusters(2))
    there.register_udf(bf_udf())
    text = there.sql(query).explain_text()
    assert f"{reason}" in text
    assert "in this process: " in text
    assert "in the cluster" not in text


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT id, u.w FROM t JOIN u ON llm_join(t.x, u.w, exact => true)",
            "needs more than rows",
        ),
        (
            "SELECT id FROM t WHERE llm_filter('f', x, recall => 0.9, proxy => 'similarity')",
            "cascade",
        ),
        ("SELECT id FROM t WHERE llm_filter('f', x) UNION ALL SELECT k FROM u", "it reads a union"),
        ("SELECT x, count(*) AS c FROM t WHERE llm_filter('f', x) GROUP BY x", ""),
    ],
)
def test_what_is_not_divided_gives_the_rows_of_one_machine(
    clusters: Callable[[int], Cluster], tmp_path: Path, query: str, reason: str
) -> None:
    """Joins by meaning, cascades; and a part of a plan that is divided, below another one."""
    folder = files(tmp_path, 3, 60)
    here, there = session(folder, None), session(folder, clusters(2))
    expected, frame = here.sql(query), there.sql(query)
    assert reason in frame.explain_text()
    assert reason or "in the cluster" in frame.explain_text()
    rows = sorted(map(str, expected.to_pylist()))
    assert sorted(map(str, frame.to_pylist())) == rows
    assert frame.trace.usage.values == expected.trace.usage.values


def test_calibrations_and_reviews_are_the_session_s(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    folder = files(tmp_path, 3, 200)
    labels = {"x": [f"v{n}" for n in range(60)], "label": [n % 3 > 0 for n in range(60)]}
    results = []
    for cluster in (None, clusters(2)):
        one = session(folder, cluster, cluster_scripts.doubting)
        one.calibrate("llm_filter('Late?', x)", labels, name="late")
        columns = (
            "llm_probability('Late?', x, calibrated => 'late') AS p",
            "llm_filter('Late?', x, confidence => 0.8, review => 'todo') AS sure",
        )
        frames = [one.sql(f"SELECT id, {column} FROM t ORDER BY id") for column in columns]
        found: list[Any] = [frame.to_pylist() for frame in frames]
        review = one.review("todo").to_pylist()
        values = [row["value"] for row in review]
        one.review("todo", {"value": values, "label": ["yes"] * len(values)})
        again = one.sql(f"SELECT id, {columns[1]} FROM t ORDER BY id").to_pylist()
        results.append((*found, sorted(map(str, review)), again))
        if cluster is not None:
            for frame in frames:
                assert "its calibration or its review is the session's" in frame.explain_text()
    here, there = results
    assert len(here[2]) > 5
    assert here == there


def bf_udf() -> Any:
    from datafusion import udf

    return udf(lambda a: a, [pa.int64()], pa.int64(), "immutable", "own")


def test_files_of_text(clusters: Callable[[int], Cluster], tmp_path: Path) -> None:
    """Each file has the types of the whole, not those that it would have alone."""
    for number, rows in enumerate([["1,a", "2,b"], ["3,c"], ["4,"]]):
        (tmp_path / f"{number}.csv").write_text("\n".join(["id,x", *rows]) + "\n")
    there = session(files(tmp_path, 2, 9), clusters(2))
    there.register_csv("c", str(tmp_path))
    frame = there.sql("SELECT id, llm_text('q', x) AS y FROM c ORDER BY id")
    assert "in the cluster" in frame.explain_text()
    assert frame.to_pydict() == {"id": [1, 2, 3, 4], "y": ["a!", "b!", "c!", None]}


MOMENTS = (
    "CAST(to_timestamp(CAST(at AS TEXT)) AS TEXT)",
    "CAST(CAST(at AS TIMESTAMPTZ) AS TEXT)",
    "CAST(to_timestamp(CAST(at AS TEXT)) AS DATE)",
    "date_part('hour', to_timestamp(CAST(at AS TEXT)))",
)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "+05:30", None])
def test_the_time_zone_of_the_session_is_that_of_workers(
    clusters: Callable[[int], Cluster], tmp_path: Path, zone: str | None
) -> None:
    """Before a call, behind it, and as what it is asked about."""
    at = datetime.datetime(2024, 10, 31, 23, 30)
    for n in range(2):
        moments = pa.array([at, at + datetime.timedelta(days=n)], pa.timestamp("us"))
        pq.write_table(
            pa.table({"id": [2 * n, 2 * n + 1], "at": moments}), tmp_path / f"{n}.parquet"
        )
    here, there = session(tmp_path, None), session(tmp_path, clusters(2))
    for made in (here, there):
        if zone is not None:
            made.sql(f"SET datafusion.execution.time_zone = '{zone}'")
    for moment in MOMENTS:
        for query in (
            f"SELECT id, {moment} AS z, llm_text('q', CAST(at AS TEXT)) AS v FROM t ORDER BY id",
            f"SELECT id, llm_text('q', CAST({moment} AS TEXT)) AS v FROM t ORDER BY id",
            f"SELECT id FROM t WHERE llm_int('q', CAST(at AS TEXT)) IS NULL OR {moment} IS NOT NULL",
        ):
            frame = there.sql(query)
            assert "in the cluster" in frame.explain_text()
            found = sorted(frame.to_pylist(), key=repr)
            assert found == sorted(here.sql(query).to_pylist(), key=repr), query


@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_a_lance_table(clusters: Callable[[int], Cluster], tmp_path: Path) -> None:
    lance = pytest.importorskip("lance")
    rows = pq.read_table(files(tmp_path, 2, 90))
    lance.write_dataset(rows, tmp_path / "l.lance", max_rows_per_file=30)
    here, there = (
        session(tmp_path / "2 90 0.0 0", None),
        session(tmp_path / "2 90 0.0 0", clusters(2)),
    )
    for made in (here, there):
        made.register_lance("l", tmp_path / "l.lance")
    query = "SELECT id, llm_int('q', x) AS y FROM l WHERE id > 4 ORDER BY id"
    frame = there.sql(query)
    assert "in the cluster (local:2): 3 files of l" in frame.explain_text()
    assert frame.to_pylist() == here.sql(query).to_pylist()
    lance.write_dataset(rows, tmp_path / "l.lance", mode="append")
    assert len(there.sql(query).to_pylist()) == 2 * 85


def test_the_files_are_those_that_datafusion_reads(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    folder = files(tmp_path, 3, 9)
    for place in ("below/a.parquet", "k=1/b.parquet", "_c.parquet", ".d.parquet"):
        (folder / place).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"id": [100], "k": [1], "x": [place]}), folder / place)
    (folder / "empty.parquet").write_bytes(b"")
    here, there = session(folder, None), session(folder, clusters(2))
    query = "SELECT x FROM t WHERE llm_int('q', x) >= 0 ORDER BY x"
    assert "in the cluster (local:2): 6 files of t" in there.sql(query).explain_text()
    assert there.sql(query).to_pylist() == here.sql(query).to_pylist()


def test_texts_that_several_questions_are_about_are_computed_by_one_worker(
    tmp_path: Path, noted: Path
) -> None:
    """Forty texts with thirty topics each, scattered over the files."""
    pairs = [(f"text {i % 40}", f"topic {i // 40}") for i in range(1_200)]
    random.Random(0).shuffle(pairs)
    for place in range(8):
        some = pairs[place::8]
        table = pa.table({"text": [t for t, _ in some], "topic": [t for _, t in some]})
        pq.write_table(table, tmp_path / f"{place}.parquet")
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=8)
    with bf.connect(model, cache=None, cluster="local:4", progress="off") as there:
        there.register_parquet("t", str(tmp_path))
        frame = there.sql("SELECT count(*) FROM t WHERE llm_filter('Is {} about {}?', text, topic)")
        frame.collect()
        assert frame.trace.usage.values == 1_200
    by_worker = {
        (file.name, line) for file in noted.iterdir() for line in file.read_text().splitlines()
    }
    assert len({line for _, line in by_worker}) == 40
    assert len(by_worker) <= 80, "160 if each worker computes each text"


def test_a_name_that_stands_for_another_table_by_now(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    """The folder of the new table begins with the name of that of the old one."""
    old, new = tmp_path / "t", tmp_path / "table"
    files(tmp_path, 3, 9).rename(old)
    files(tmp_path, 3, 9).rename(new)
    there = session(old, clusters(2))
    there.sql("DROP TABLE t")
    there.sql(f"CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{new}/'")
    assert "in the cluster" not in there.sql("SELECT llm_filter('f', x) FROM t").explain_text()


def test_a_model_that_cannot_travel_is_asked_here(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    called: list[object] = []

    def here(request: Any) -> bool:
        called.append(request.values)
        return True

    folder = files(tmp_path, 4, 100)
    there = session(folder, clusters(2), here)
    assert len(there.sql("SELECT id FROM t WHERE llm_filter('f', x)").to_pylist()) == 97
    assert len(called) == len(set(called)) == distinct(folder)


# --- failures, budgets, interruption -------------------------------------------------------------


def test_failures_are_those_of_one_machine(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    folder = files(tmp_path, 5, 200)
    for on_error in ("null", "raise"):
        here = session(folder, None, cluster_scripts.failing, on_error=on_error)
        there = session(folder, clusters(2), cluster_scripts.failing, on_error=on_error)
        query = "SELECT id, llm_int('q', x) AS y FROM t ORDER BY id"
        if on_error == "null":
            frames = [s.sql(query) for s in (here, there)]
            tables = []
            for frame in frames:
                with pytest.warns(AnswerWarning, match="got no valid answer"):
                    tables.append(frame.to_arrow_table())
            assert tables[0].equals(tables[1])
            assert frames[0].trace.usage.failed == frames[1].trace.usage.failed > 0
        else:
            for made in (here, there):
                with pytest.raises(bf.AnswerError, match="no answer"):
                    made.sql(query).collect()
    # The workers are of use afterwards.
    assert len(session(folder, clusters(2)).sql("SELECT llm_int('q', x) FROM t").to_pylist()) == 200


def test_a_budget_is_exceeded_by_no_more_than_a_batch_a_worker(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    there = session(files(tmp_path, 6, 300), clusters(2), budget=bf.Budget(values=20))
    with pytest.raises(bf.BudgetExceeded):
        there.sql("SELECT llm_int('q', x) FROM t").collect()
    assert there.ledger.usage.values <= 20 + 2 * 8


def test_a_limit_asks_no_more_than_on_one_machine_and_a_batch_a_worker(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    folder = files(tmp_path, 6, 300)
    query = "SELECT id FROM t WHERE llm_filter('f', x) LIMIT 5"
    spent = []
    for cluster in (None, clusters(4)):
        frame = session(folder, cluster).sql(query)
        assert len(frame.to_pylist()) == 5
        spent.append(frame.trace.usage.values)
    assert spent[1] <= spent[0] + 4 * 8


def test_who_reads_no_further_ends_the_work(
    clusters: Callable[[int], Cluster], tmp_path: Path
) -> None:
    there = session(files(tmp_path, 12, 600), clusters(2))
    stream = iter(there.sql("SELECT id FROM t WHERE llm_filter('f', x)").execute_stream())
    next(stream)
    del stream
    assert len(there.sql("SELECT llm_int('q', x) FROM t").to_pylist()) == 600


# --- kills ---------------------------------------------------------------------------------------


def killed_at_random(folder: Path, noted: Path, kills: int, seed: int, *, seconds: float) -> None:
    expected = session(folder, None).sql(QUERIES[0]).to_arrow_table()
    noted_before = {file.name for file in noted.iterdir()}
    with bf.connect(
        bf.ScriptedModel(cluster_scripts.slowly, fingerprint="hashed", batch_size=4),
        cache=None,
        cluster="local:2",
        progress="off",
    ) as there:
        there.register_parquet("t", str(folder))
        frame = there.sql(QUERIES[0])
        answered = 0

        def pick(rng: random.Random) -> int | None:
            nonlocal answered
            before, answered = answered, len(requests_in(noted))
            if answered == before:
                return None  # whoever runs after the last kill has not begun to work
            assert there.cluster is not None
            workers = there.cluster.back_end
            assert isinstance(workers, LocalWorkers)
            processes = [*workers.processes.values()]
            return rng.choice(processes) if processes else None

        with killing(pick, seed, most=kills, seconds=seconds) as ended:
            table = frame.to_arrow_table()
        assert table.equals(expected)
    files_now = [file for file in noted.iterdir() if file.name not in noted_before]
    requests = [line for file in files_now for line in file.read_text().splitlines()]
    assert len(requests) <= len(set(requests)) + len(ended) * 4, "a batch a kill"
    assert ended


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_killed_worker_costs_a_batch_at_most(tmp_path: Path, noted: Path) -> None:
    killed_at_random(files(tmp_path, 6, 300), noted, 2, 1, seconds=0.4)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_workers_killed_at_many_moments(tmp_path: Path, noted: Path) -> None:
    folder = files(tmp_path, 12, 2_000)
    for seed in range(5):
        killed_at_random(folder, noted, 4, seed, seconds=0.5)


def test_the_rerun_of_a_killed_session_asks_only_the_rest(tmp_path: Path) -> None:
    """Answers are stored batch by batch, as on one machine."""
    folder, cache = files(tmp_path, 4, 200), tmp_path / "answers.sqlite"
    model = bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h", batch_size=4)
    budget = bf.Budget(values=24)
    with bf.connect(model, cache=cache, cluster="local:2", budget=budget, progress="off") as first:
        first.register_parquet("t", str(folder))
        frame = first.sql("SELECT llm_int('q', x) FROM t")
        with pytest.raises(bf.BudgetExceeded):
            frame.collect()
    spent = first.ledger.usage.values
    again = bf.connect(
        bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h"), cache=cache, progress="off"
    )
    again.register_parquet("t", str(folder))
    frame = again.sql("SELECT llm_int('q', x) FROM t")
    frame.collect()
    assert frame.trace.usage.values == distinct(folder) - spent


# --- speed ---------------------------------------------------------------------------------------


def seconds_of(workers: int, folder: Path, script: Callable[[Any], object], expected: int) -> float:
    with bf.connect(
        bf.ScriptedModel(script, fingerprint="h", batch_size=8),
        cache=None,
        cluster=f"local:{workers}",
        progress="off",
    ) as there:
        there.register_parquet("t", str(folder))
        there.sql("SELECT count(*) FROM t WHERE llm_filter('warm', k)").collect()
        frame = there.sql("SELECT id FROM t WHERE llm_filter('f', x)")
        start = time.perf_counter()
        frame.collect()
        assert frame.trace.usage.values == expected
        return time.perf_counter() - start


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.slow
def test_sleeping_models_answer_as_many_times_faster_as_there_are_workers(tmp_path: Path) -> None:
    folder = distinct_files(tmp_path, 16, 800)
    one = seconds_of(1, folder, cluster_scripts.slowly, 800)
    for workers in (2, 4, 8):
        runs = [seconds_of(workers, folder, cluster_scripts.slowly, 800)]
        if one / runs[0] < 0.9 * workers:  # other programs only add time: the least counts
            runs.append(seconds_of(workers, folder, cluster_scripts.slowly, 800))
        assert one / min(runs) >= 0.9 * workers, (workers, one, runs)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.slow
def test_the_fastest_get_the_most(tmp_path: Path, noted: Path) -> None:
    folder = distinct_files(tmp_path, 16, 800)
    ideal = 800 * 0.05 / 3.1  # three workers, and one that is ten times slower
    runs = (seconds_of(4, folder, cluster_scripts.one_is_slow, 800) for _ in range(2))
    assert any(seconds <= 1.3 * ideal for seconds in runs)


def distinct_files(folder: Path, number: int, rows: int) -> Path:
    target = folder / "distinct"
    target.mkdir()
    each = rows // number
    for place in range(number):
        ids = [*range(place * each, (place + 1) * each)]
        table = pa.table({"id": ids, "k": ["w"] * each, "x": [f"value {i}" for i in ids]})
        pq.write_table(table, target / f"{place:03}.parquet")
    return target


# --- Ray, and names ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_ray_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray_or_skip(monkeypatch)
    folder = files(tmp_path, 5, 300)
    here = session(folder, None)
    with bf.connect(
        bf.ScriptedModel(cluster_scripts.hashed, fingerprint="hashed", batch_size=8),
        cache=None,
        cluster="ray",
        progress="off",
    ) as there:
        there.register_parquet("t", str(folder))
        there.from_pydict({"k": [1, 2, 3, 3, 7], "w": ["a", "b", "c", "d", "e"]}, name="u")
        for query in QUERIES[:3]:
            expected, frame = here.sql(query), there.sql(query)
            assert "in the cluster (ray)" in frame.explain_text()
            assert frame.to_arrow_table().equals(expected.to_arrow_table())
            assert values_of(frame.trace) == values_of(expected.trace)


def test_workers_share_the_limits_of_a_provider() -> None:
    cluster = cluster_of("local:4")
    assert cluster is not None
    options = Options(requests_per_minute=601, concurrency=16)
    model = load("openai:m@http://h/v1", options)
    pooled = cluster.pool_model("openai:m@http://h/v1", model, options)
    assert isinstance(pooled, PooledModel)
    _, there = decode_message(pooled.encoded)
    assert (there.requests_per_minute, there.tokens_per_minute) == (151, 0)
    assert there.concurrency == 16, "each worker may have a server of its own"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_in_ray_each_model_has_a_gpu_of_its_own(
    tmp_path: Path, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray counts the GPUs that it is told of, and hides the others from each process."""
    ray = ray_or_skip(monkeypatch)
    folder = files(tmp_path, 4, 200)
    ray.init(
        num_cpus=2,
        num_gpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
    )
    try:
        model = bf.ScriptedModel(cluster_scripts.on_gpu, fingerprint="hashed", batch_size=4)
        with bf.connect(model, cache=None, cluster="ray", progress="off") as there:
            there.register_parquet("t", str(folder))
            assert there.cluster is not None
            assert there.cluster.size == 2
            frame = there.sql("SELECT id FROM t WHERE llm_filter('f', x)")
            frame.collect()
            assert frame.trace.usage.values == distinct(folder)
    finally:
        ray.shutdown()
    assert {file.name for file in noted.glob("gpu *")} == {"gpu 0", "gpu 1"}


@pytest.mark.parametrize("name", ["", "locale", "local:0", "local:x", "ray:x", 5])
def test_what_is_no_cluster_is_an_error(name: Any) -> None:
    with pytest.raises(bf.OptionError, match=r"cluster=.* is not possible\nHint: Write cluster="):
        bf.connect(None, cluster=name)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_session_that_is_dropped_ends_its_workers(tmp_path: Path) -> None:
    folder = files(tmp_path, 2, 9)
    there = bf.connect(
        bf.ScriptedModel(cluster_scripts.hashed, fingerprint="h"),
        cache=None,
        cluster="local:1",
        progress="off",
    )
    there.register_parquet("t", str(folder))
    assert len(there.sql("SELECT llm_filter('f', x) FROM t").to_pylist()) == 9
    assert there.cluster is not None
    workers = there.cluster.back_end
    assert isinstance(workers, LocalWorkers)
    (process,) = workers.processes.values()
    del there, workers

    def has_ended() -> bool:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        return False

    assert after_collection(has_ended)


@pytest.mark.long
def test_nothing_starts_before_a_query() -> None:
    cluster = cluster_of("local:2")
    assert cluster is not None
    assert isinstance(cluster.back_end, LocalWorkers)
    assert cluster.back_end.starter is None
    cluster.close()
