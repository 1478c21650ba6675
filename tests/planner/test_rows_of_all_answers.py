"""Random queries over groups, orders, limits and what is composed of them, up to four deep, and
over corners of SQL, have the rows of all answers, whatever the answers are that nobody asked for.

``pytest tests/planner/test_rows_of_all_answers.py --cases 100000`` runs 25,000 queries, and
ROWS_FROM=100000 others. A quarter of the models keep each group open as long as they can.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from composed_queries import ComposedQueries
from corner_queries import CornerQueries, corner_rows
from first_row_queries import FirstRowQueries
from group_queries import (
    Adversary,
    DistinctQueries,
    GroupQueries,
    check_rows,
    grouped_rows,
    rows_and_values,
    seeded_script,
)
from share_queries import ShareQueries

import blendfusion as bf
from blendfusion.run.execution import first_rows

FIRST = int(os.environ.get("ROWS_FROM", "0"))
KINDS: dict[str, Callable[[random.Random], str]] = {
    "groups": lambda source: GroupQueries(source).query(),
    "distinct": lambda source: DistinctQueries(source).query(),
    "first rows": lambda source: FirstRowQueries(source).query(),
    "composed": lambda source: ComposedQueries(source).query(),
    "corners": lambda source: CornerQueries(source).query(),
    "shares": lambda source: ShareQueries(source).query(),
}
ROWS: dict[str, Callable[[random.Random], pa.Table]] = {"corners": corner_rows}
PARTS = 2
REFUSED = (
    *("Conflicting ordering requirements", "refers to a table beside it"),
    "does not satisfy order requirements",  # a condition as the key of partitions
)
"""What DataFusion says of queries that it has no plan for."""


@pytest.mark.filterwarnings("ignore:.*got no valid answer:blendfusion.AnswerWarning")
@pytest.mark.filterwarnings("ignore:This query runs without the planner:blendfusion.PlanWarning")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", KINDS)
def test_random_queries(kind: str, part: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(FIRST + part, FIRST + cases // 20, PARTS):
        monkeypatch.setattr(first_rows, "_PART", (1, 1_024)[seed // PARTS % 2])
        sql = KINDS[kind](random.Random(f"{kind} {seed}"))
        script: Callable[[bf.Request], object] = (
            Adversary() if seed // PARTS % 4 == 3 else seeded_script(seed)
        )
        table = ROWS.get(kind, grouped_rows)(random.Random(seed))
        try:
            check_rows(sql, table, script)
        except bf.QueryError as problem:  # DataFusion has one order for all aggregates
            if not any(words in str(problem) for words in REFUSED):
                raise AssertionError((kind, seed, sql)) from problem
            with pytest.raises(bf.QueryError):
                rows_and_values(sql, table, script, planner=False)
        except Exception as problem:
            raise AssertionError((kind, seed, sql)) from problem
