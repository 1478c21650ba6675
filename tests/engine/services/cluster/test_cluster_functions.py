"""Every function in a cluster: the rows and the questions of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cluster_scripts
import pyarrow as pa
import pytest
from cluster_sessions import files, session, shared_clusters, values_of

import blendfusion as bf
from blendfusion.services.cluster.cluster import Cluster
from blendfusion.udfs.functions import FUNCTIONS

pytestmark = pytest.mark.long
ROWS = 40

ELSEWHERE = {
    "llm_transcribe": "needs a model of speech",
    "llm_embed": "asks the session's embedder, no model",
    "llm_similarity": "asks the session's embedder, no model",
    "llm_members": "reads the answers of llm_same",
}
"""Functions without a question that a worker could be asked, and why."""

QUERIES = {
    "llm_filter": "SELECT id FROM t WHERE llm_filter('q', x)",
    "llm_map": "SELECT id, llm_map('q', x) AS a FROM t",
    "llm_bool": "SELECT id, llm_bool('q', x) AS a FROM t",
    "llm_int": "SELECT id, llm_int('q', x) AS a FROM t",
    "llm_float": "SELECT id, llm_float('q', x) AS a FROM t",
    "llm_date": "SELECT id, llm_date('q', x, evidence => false) AS a FROM t",
    "llm_text": "SELECT id, llm_text('q', x) AS a FROM t",
    "llm_list": "SELECT id, llm_list('q', x) AS a FROM t",
    "llm_classify": "SELECT id, llm_classify(x, ['a', 'b', 'c']) AS a FROM t",
    "llm_extract": "SELECT id, llm_extract(x, 'name TEXT') AS a FROM t",
    "llm_score": "SELECT id, llm_score('q', x) AS a FROM t",
    "llm_probability": "SELECT id, llm_probability('q', x) AS a FROM t",
    "llm_join": "SELECT t.id, u.w FROM t JOIN u ON llm_join(t.x, u.w, labels => ['a', 'b'])",
    "llm_compare": "SELECT id FROM t WHERE llm_compare(x, '<', 'v1')",
    "llm_vqa": "SELECT llm_vqa('q', image) AS a FROM images",
    "llm_answer": "SELECT k, llm_answer('q', array_agg(x ORDER BY id)) AS a FROM t GROUP BY k",
    "llm_summary": "SELECT k, llm_summary(array_agg(x ORDER BY id)) AS a FROM t GROUP BY k",
    "llm_same": "SELECT id, llm_same(x) AS a FROM t",
    "llm_group": "SELECT id, llm_group(x) AS a FROM t",
    "llm_prefers": "SELECT id, x FROM t WHERE id < 9 ORDER BY llm_prefers('q', x), id LIMIT 3",
    "llm_sentiment": "SELECT id, llm_sentiment(x) AS a FROM t",
    "llm_translate": "SELECT id, llm_translate(x, 'German') AS a FROM t",
    "llm_fix_grammar": "SELECT id, llm_fix_grammar(x) AS a FROM t",
    "llm_redact": "SELECT id, llm_redact(x) AS a FROM t",
    "llm_qa": "SELECT k, llm_qa('q', x ORDER BY id) AS a FROM t GROUP BY k",
    "llm_validate": "SELECT k, llm_validate('q', x ORDER BY id) AS a FROM t GROUP BY k",
    "llm_summarize": "SELECT k, llm_summarize(x ORDER BY id) AS a FROM t GROUP BY k",
}

GROUPS = [
    "SELECT k FROM t GROUP BY k HAVING llm_qa('q', x ORDER BY id) > 'v4'",
    "SELECT llm_qa('q', x ORDER BY id) AS a FROM t",
    "SELECT k, llm_qa('q', x ORDER BY id) FILTER (WHERE llm_filter('f', x)) AS a FROM t GROUP BY k",
    "SELECT k, llm_qa('q', x ORDER BY id) AS a, llm_summarize(x ORDER BY id) AS b FROM t GROUP BY k",
    "SELECT k, llm_qa('q', x, llm_text('p', x) ORDER BY id) AS a FROM t GROUP BY k",
    "SELECT k, w, llm_qa('q', x ORDER BY id) AS a FROM t JOIN u USING (k) GROUP BY k, w",
    "SELECT a, count(*) AS n FROM (SELECT k, llm_validate('q', x ORDER BY id) AS a FROM t "
    "GROUP BY k) GROUP BY a",
    "SELECT k FROM u WHERE EXISTS (SELECT 1 FROM t WHERE t.k = u.k GROUP BY k "
    "HAVING llm_validate('q', x ORDER BY id))",
    "SELECT k, llm_answer('q', xs) AS a FROM lists",
    "SELECT k, llm_summary(xs) AS a FROM lists WHERE llm_filter('f', CAST(k AS TEXT))",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("rows"), 3, ROWS)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with shared_clusters() as of:
        yield of(2)


def opened(folder: Path, cluster: Cluster | None) -> bf.Session:
    made = session(folder, cluster, cluster_scripts.fitting)
    lists = {"k": [1, 2, 3, 4], "xs": [["a"], ["b", "c"], [], ["d", None, "e"]]}
    made.from_pydict(lists, name="lists")
    images = [b"\x89PNG\r\n\x1a\n1", b"\x89PNG\r\n\x1a\n2"]
    made.from_arrow(pa.table({"image": images}), name="images")
    return made


def check_alike(sql: str, folder: Path, cluster: Cluster) -> None:
    found = []
    for place in (None, cluster):
        frame = opened(folder, place).sql(sql)
        rows = frame.to_pylist()
        found.append((sorted(map(repr, rows)), values_of(frame.trace)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ELSEWHERE])
def test_a_function_in_a_cluster(name: str, folder: Path, cluster: Cluster) -> None:
    check_alike(QUERIES[name], folder, cluster)


@pytest.mark.parametrize("sql", GROUPS)
def test_groups_of_several_sizes_in_a_cluster(sql: str, folder: Path, cluster: Cluster) -> None:
    check_alike(sql, folder, cluster)


def test_one_of_equal_rows_is_enough_in_a_cluster(folder: Path, cluster: Cluster) -> None:
    """Rows with one key lie in several files: one that is asked about says enough."""
    check_alike(
        "SELECT k FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = u.k AND llm_filter('z', x))",
        folder,
        cluster,
    )
    check_alike("SELECT DISTINCT k FROM t WHERE llm_filter('z', x)", folder, cluster)
