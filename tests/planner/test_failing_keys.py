"""A key that fails on rows that an answer drops ends no query: random queries have the rows, or the
error, that they have without a planner.

``pytest tests/planner/test_failing_keys.py --cases 100000`` runs 20,000 queries, and
FAILING_FROM=100000 others. A third of the models let some rows pass on which keys fail.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from datafusion import udf
from failing_queries import FailingQueries, dropping, failing_rows
from group_queries import rows_and_values
from scripts import hashed

import blendfusion as bf

FIRST = int(os.environ.get("FAILING_FROM", "0"))
PARTS = 2


@pytest.mark.filterwarnings("ignore:This query runs without the planner:blendfusion.PlanWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_random_queries(part: int, cases: int) -> None:
    for seed in range(FIRST + part, FIRST + cases // 5, PARTS):
        sql = FailingQueries(random.Random(seed)).query()
        table, script = failing_rows(random.Random(seed)), hashed if seed % 3 == 2 else dropping
        found = [_outcome(sql, table, script, planner=planner) for planner in (True, False)]
        assert found[0] == found[1], (seed, sql)


def _outcome(
    sql: str, table: pa.Table, script: Callable[[bf.Request], object], *, planner: bool
) -> list[str] | type[bf.BlendFusionError]:
    try:
        return rows_and_values(sql, table, script, planner=planner)[0]
    except bf.ExecutionError as problem:
        return type(problem)


def test_few_rows_are_asked() -> None:
    """Beside the rows on which the key fails, as many as without these."""
    table = pa.table(
        {"id": range(40), "g": [i % 5 for i in range(40)], "x": [*map(str, range(40))]}
    )

    def drops(call: bf.Request) -> bool:
        return int(str(call.values[0])) % 5 > 0

    sql = "SELECT id FROM t WHERE llm_filter('q', x) ORDER BY 10 / g, id LIMIT 2"
    assert rows_and_values(sql, table, drops, planner=True) == (["{'id': 4}", "{'id': 9}"], 8 + 2)


def test_a_row_that_passes_ends_the_query() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"g": [1, 2, 0, 3], "x": ["a", "b", "c", "d"]}, name="t")
    frame = session.sql("SELECT g FROM t WHERE llm_filter('q', x) ORDER BY 10 / g LIMIT 1")
    with pytest.raises(bf.ExecutionError, match="Divide by zero"):
        frame.to_pylist()
    assert frame.trace.usage.values == 1


def test_the_estimate_has_the_rows_that_are_asked_first() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"g": [1, 2, 0, 3], "x": ["a", "b", "c", "d"]}, name="t")
    frame = session.sql("SELECT g FROM t WHERE llm_filter('q', x) ORDER BY 10 / g")
    assert [part.values for part in frame.estimate().operators] == [1, 3]
    assert "computes(10 / t.g) OR llm_filter('q', t.x)" in frame.explain_text()


def test_a_function_of_a_user_may_have_any_name() -> None:
    """The test of values is no function: a column may be computed by one of its name."""
    rows = []
    for planner in (True, False):
        session = bf.connect(
            bf.ScriptedModel(lambda call: call.values[0] == "a"), cache=None, planner=planner
        )
        session.from_pydict({"g": [1, 2, 3], "x": ["a", "b", "c"]}, name="t")
        is_three = udf(lambda g: pc.equal(g, 3), [pa.int64()], pa.bool_(), "immutable", "computes")
        session.register_udf(is_three)
        sql = "SELECT g FROM t WHERE computes(g) OR llm_filter('q', x) ORDER BY g"
        rows.append(session.sql(sql).to_pylist())
    assert rows == [[{"g": 1}, {"g": 3}]] * 2
