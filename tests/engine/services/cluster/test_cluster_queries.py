"""Joins by meaning, searches and orders by a score in a cluster: what one machine gives.

Each query runs in a session of its own, so that nothing is stored before. Rows come in the order
of the query's ORDER BY, which leaves no ties; without one, in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import cluster_scripts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_sessions import session, shared_clusters, stages_there, values_of

import blendfusion as bf
from blendfusion.services.cluster.cluster import Cluster

pytestmark = pytest.mark.long
FIRMS = [
    *("IBM", "I.B.M.", "IBM Corp", "Apple", "Apple Inc", "apple", "Microsoft", "Micro soft"),
    *("Oracle", "Oracle Corp.", "Google", "Alphabet", "Siemens AG", "Siemens", None, ""),
]
PARTNERS = ["IBM Inc", "Apples", "Oracle", "Siemens A.G.", "Alphabet Inc"]

JOINS = [
    # Among candidates: by spelling, by vectors, with any number of matches, beside an equality.
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, k => 3)",
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, k => 3, many => true)",
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, how => 'the same firm', k => 3, check => 4)",
    "SELECT id, w FROM t JOIN p ON t.k = p.k AND llm_join(x, w, how => 'a part of it', k => 1) "
    "WHERE llm_filter('Is it?', y)",
    "SELECT id, w FROM t LEFT JOIN p ON llm_join(x, w, how => 'its rival', k => 2) ORDER BY id, w",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM p WHERE llm_join(t.x, w, how => 'owned'))",
    "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.k = b.k AND llm_join(a.x, b.y, k => 2)",
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, exact => true)",
    # By labels, and by answers that are equal.
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, labels => ['hard', 'soft'])",
    "SELECT id, w FROM t JOIN p ON llm_join(x, w, labels => ['hard', 'soft'], how => 'alike', "
    "check => 3)",
    "SELECT id, w FROM t JOIN p ON llm_int('a', x) % 5 = llm_int('b', w) % 5",
    "SELECT a.id, b.id AS other FROM t a JOIN t b ON llm_int('a', a.x) % 9 = llm_int('b', b.y) % 9",
    # By entities.
    "SELECT llm_same(x) AS e, count(*) AS c FROM t GROUP BY 1 ORDER BY 1",
    "SELECT llm_same(x, by => 'the same owner', check => 3) AS e, count(*) AS c FROM t "
    "WHERE llm_filter('Is it?', y) GROUP BY 1 ORDER BY 1",
    "SELECT id, w FROM t JOIN p ON llm_same(x) = llm_same(w)",
]
SEARCHES = [
    "SELECT name, _rank, _score FROM llm_search('firms', 'oracle corp', k => 4) ORDER BY _rank",
    "SELECT name, llm_map('Say', name) AS m FROM llm_search('firms', 'ibm', k => 4) ORDER BY _rank",
    "SELECT t.id, s.name, s._rank FROM t, LATERAL llm_search('firms', t.y, k => 2) s "
    "WHERE llm_filter('Is it?', s.name) ORDER BY t.id, s._rank",
    "SELECT t.id, s.name FROM t, LATERAL llm_search('firms', llm_text('Which?', t.x), k => 1) s "
    "ORDER BY t.id",
    "SELECT t.id FROM t JOIN llm_search('firms', 'siemens', k => 3, mode => 'vector') s "
    "ON t.x = s.name WHERE llm_filter('Is it?', t.y) ORDER BY t.id",
    "SELECT id FROM t WHERE x IN (SELECT name FROM llm_search('firms', 'apple', k => 5)) "
    "AND llm_filter('Is it?', y) ORDER BY id",
    "SELECT id FROM t WHERE llm_similarity(x, 'a maker of chips') > 0.1 AND llm_filter('f', y)",
    "SELECT id FROM t ORDER BY llm_similarity(x, 'a maker of chips') DESC, id LIMIT 5",
]
SCORES = [
    "SELECT id, x FROM t ORDER BY llm_score('How large?', x) DESC, id",
    "SELECT id FROM t ORDER BY llm_score('How large?', x) DESC, id LIMIT 5",
    "SELECT id FROM t ORDER BY llm_score('How large?', x, low => 1, high => 5), id LIMIT 5 OFFSET 7",
    "SELECT id, llm_score('How large?', x) AS s FROM t WHERE llm_filter('Is it?', y) "
    "ORDER BY s DESC NULLS LAST, id LIMIT 5",
    "SELECT x, s FROM (SELECT x, llm_score('How large?', x) AS s FROM t) ORDER BY s, x LIMIT 3",
    "SELECT x, llm_score('How large?', x) AS s FROM t GROUP BY x ORDER BY s DESC, x LIMIT 3",
    "SELECT id, w FROM t JOIN p ON t.k = p.k ORDER BY llm_score('Alike?', x, w) DESC, id LIMIT 4",
    "SELECT k, id FROM (SELECT k, id, row_number() OVER (PARTITION BY k "
    "ORDER BY llm_score('How large?', x) DESC, id) AS r FROM t) WHERE r <= 2 ORDER BY k, id",
    "SELECT max(llm_score('How large?', x)) AS m FROM t",
    "SELECT id FROM t ORDER BY llm_prefers('the larger one', x), id LIMIT 5",
    "SELECT id FROM t WHERE llm_score('How large?', x) > 2 ORDER BY id LIMIT 5",
    "SELECT DISTINCT x FROM t WHERE llm_score('How large?', x) > 3 ORDER BY x",
    "SELECT DISTINCT x FROM t WHERE llm_score('How large?', x) > 3 LIMIT 99",
    "SELECT id FROM t ORDER BY llm_float('How many?', y) + id DESC, id LIMIT 6",
]


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[[int], Cluster]]:
    with shared_clusters() as of:
        yield of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six files of 200 rows; ``index`` beside them is for an index."""
    rng, target = random.Random(3), tmp_path_factory.mktemp("firms") / "t"
    target.mkdir()
    rows = [
        {"id": i, "k": i % 5, "x": rng.choice(FIRMS), "y": f"{rng.choice(FIRMS)} {i % 7}"}
        for i in range(200)
    ]
    for place in range(6):
        pq.write_table(pa.Table.from_pylist(rows[place::6]), target / f"{place}.parquet")
    return target


def opened(folder: Path, cluster: Cluster | None) -> bf.Session:
    made = session(folder, cluster, cluster_scripts.chosen)
    made.from_pydict({"k": [*range(5)], "w": PARTNERS}, name="p")
    names = [name for name in FIRMS if name]
    made.from_pydict({"name": names}, name="firms")
    made.index("firms", columns="name", path=folder.parent / "index")
    return made


def compare(folder: Path, cluster: Cluster, queries: list[str]) -> int:
    """Compare rows and values asked with one machine's, and where stages ran with what EXPLAIN
    says; the number of stages in the cluster."""
    total = 0
    for query in queries:
        with opened(folder, None) as here:
            expected = here.sql(query)
            rows, asked = expected.to_arrow_table(), values_of(expected.trace)
        there = opened(folder, cluster)
        frame = there.sql(query)
        text = frame.explain_text()
        with stages_there() as found:
            table = frame.to_arrow_table()
        if "ORDER BY" in query:
            assert table.equals(rows), query
        else:
            assert sorted(map(str, table.to_pylist())) == sorted(map(str, rows.to_pylist())), query
        assert values_of(frame.trace) == asked, query
        assert set(asked.values()) <= {1}, query
        assert text.count("in the cluster (local:") == len(found), f"{query}\n{text}"
        if asked:
            assert text.count("in this process: ") + len(found) == max(1, text.count("Stage ")), (
                text
            )
        total += len(found)
    return total


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2, 4])
@pytest.mark.filterwarnings("ignore::blendfusion.errors.MatchWarning")
def test_joins_by_meaning(clusters: Callable[[int], Cluster], folder: Path, workers: int) -> None:
    """Labels and answers are found in the cluster; candidates and entities need all values."""
    assert compare(folder, clusters(workers), JOINS)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2, 4])
def test_searches(clusters: Callable[[int], Cluster], folder: Path, workers: int) -> None:
    """They read an index of this machine's, or vectors of its embedder."""
    assert compare(folder, clusters(workers), SEARCHES) == 0


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2, 4])
def test_orders_by_a_score(clusters: Callable[[int], Cluster], folder: Path, workers: int) -> None:
    assert compare(folder, clusters(workers), SCORES) >= 9
