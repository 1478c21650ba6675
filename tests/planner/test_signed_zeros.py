"""0.0 and -0.0 are one value of groups, and two in orders and windows, as in DataFusion."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from group_queries import check_rows, seeded_script

from blendfusion.run.execution import first_rows

ZEROS = (0.0, -0.0)
QUERIES = (
    "SELECT count(*) AS n FROM (SELECT DISTINCT n, z FROM t WHERE llm_filter('f', x) "
    "ORDER BY n DESC, z LIMIT 2 OFFSET 1)",
    "SELECT z, max(id) AS m FROM t WHERE llm_filter('f', x) GROUP BY z ORDER BY z LIMIT 3",
    "SELECT n, z, min(d) AS m FROM t WHERE llm_filter('f', x) GROUP BY n, z ORDER BY m, n, z LIMIT 3",
    "SELECT DISTINCT ON (z) z, id FROM t WHERE llm_filter('f', x) ORDER BY z, d, id",
    "SELECT z, first_value(id ORDER BY z DESC, id) AS v FROM t WHERE llm_filter('f', x) GROUP BY z",
    "SELECT z, first_value(id ORDER BY d, id) AS v FROM t WHERE llm_filter('f', x) GROUP BY z "
    "ORDER BY z DESC LIMIT 1",
    "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY z ORDER BY id) AS r FROM t "
    "WHERE llm_filter('f', x)) WHERE r = 1",
    "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY n ORDER BY z) AS r FROM t "
    "WHERE llm_filter('f', x)) WHERE r <= 2",
    "SELECT id FROM (SELECT id, dense_rank() OVER (ORDER BY z) AS r FROM t "
    "WHERE llm_filter('f', x)) WHERE r <= 2",
    "SELECT id FROM t WHERE n IN (SELECT u.n FROM t u WHERE llm_filter('f', u.x)) "
    "ORDER BY z, id LIMIT 3",
    "SELECT count(*) AS c FROM t GROUP BY z, n, llm_int('i', x)",
    "SELECT z, first_value(id ORDER BY d, llm_int('i', x), id) AS v FROM t GROUP BY z",
    "SELECT max(z) AS a, min(z) AS b FROM t WHERE llm_filter('f', x)",
    "SELECT n, max(z) AS a FROM t WHERE llm_filter('f', x) GROUP BY n",
)


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("part", [1, 1_024])
def test_rows_are_those_of_all_answers(
    sql: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_rows, "_PART", part)
    for seed in range(5):
        source = random.Random(seed)
        size = source.choice((4, 9, 30))
        rows = {
            "id": [*range(size)],
            "n": [source.randrange(3) for _ in range(size)],
            "d": [source.randrange(2) for _ in range(size)],
            "z": [source.choice((*ZEROS, *ZEROS, 1.0, float("nan"))) for _ in range(size)],
            "x": [f"v{source.randrange(size)}" for _ in range(size)],
        }
        check_rows(sql, pa.table(rows), seeded_script(seed))
