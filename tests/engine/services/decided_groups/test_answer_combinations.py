"""Groups of few open questions are judged by every combination of the answers: rows about which the
questions are the same come and go together, and a group that is there has a row."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from group_queries import GroupQueries, check_rows, grouped_rows, seeded_script

F, OTHER = "llm_filter('f', x)", "llm_filter('o', x)"
COUNT = f"count(*) FILTER (WHERE {F})"
GROUPS = pa.table(
    {
        "g": [i // 3 for i in range(12)],
        "n": [i % 3 for i in range(12)],
        "x": [f"v{i // 3}" for i in range(12)],  # one text in each group
    }
)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} = 1", 0),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} IN (1, 2)", 0),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} IN (0, 3)", 0),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} = 3", 4),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} % 3 = 1", 4),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) = 0", 0),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) < 2", 0),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING {COUNT} < 3", 0),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) FILTER (WHERE NOT {F}) > 0", 0),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING {COUNT} > 2", 4),
        (f"SELECT g FROM t WHERE {F} OR {OTHER} GROUP BY g HAVING count(*) BETWEEN 1 AND 2", 0),
        (f"SELECT g FROM t GROUP BY g HAVING sum(CASE WHEN {F} THEN n END) IN (1, 2)", 0),
        (f"SELECT g, {COUNT} = 2 AS v FROM t GROUP BY g", 0),
        (f"SELECT sum(CASE WHEN {F} THEN 1 ELSE 0 END) = 7 AS v FROM t", 0),
        (f"SELECT CASE WHEN count(*) = 2 THEN 1 ELSE 0 END AS v FROM t WHERE {F}", 0),
    ],
)
def test_answers_count_together(sql: str, asked: int) -> None:
    assert check_rows(sql, GROUPS, lambda call: call.values[0] in ("v0", "v3")) == asked


@pytest.mark.filterwarnings("ignore:.*got no valid answer:blendfusion.AnswerWarning")
@pytest.mark.parametrize("seed", range(8))
def test_random_queries(seed: int) -> None:
    source = random.Random(seed)
    table = grouped_rows(source).slice(0, source.choice([3, 6, 12]))
    texts = [text and f"v{int(text[1:]) % 3}" for text in table.column("x").to_pylist()]
    at = table.column_names.index("x")
    table = table.set_column(at, "x", pa.array(texts, pa.string()))
    for _ in range(3):
        check_rows(GroupQueries(source).query(), table, seeded_script(seed))
