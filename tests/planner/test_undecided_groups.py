"""Groups of which a query reads a test, a rank or a comparison: rows are asked until these are
decided."""

from __future__ import annotations

import random

import pytest
from group_queries import GroupQueries, grouped_rows, seeded_script

import blendfusion as bf


def _rows(frame: bf.Frame) -> list[dict[str, object]]:
    return frame.to_pylist()


def _both(sql: str, seed: int) -> tuple[list[str], list[str], int]:
    """(the rows with the rule, the rows of plain evaluation, the values asked)."""
    source = random.Random(seed)
    table = grouped_rows(source)
    found: list[list[str]] = []
    asked = 0
    for planner in (True, False):
        session = bf.connect(
            bf.ScriptedModel(seeded_script(seed)), cache=None, planner=planner, on_error="null"
        )
        session.from_arrow(table, name="t")
        frame = session.sql(sql)
        rows = [repr(_rounded(row)) for row in frame.to_pylist()]
        found.append(rows if "ORDER BY" in sql else sorted(rows))
        asked = frame.trace.usage.values if planner else asked
    return found[0], found[1], asked


def _rounded(row: dict[str, object]) -> dict[str, object]:
    """Sums of floating-point numbers depend on the order of rows."""
    return {n: float(f"{v:.9g}") if isinstance(v, float) else v for n, v in row.items()}


def test_random_queries_over_groups_have_the_rows_of_all_answers(
    pytestconfig: pytest.Config,
) -> None:
    for seed in range(pytestconfig.getoption("--cases") // 10):
        sql = GroupQueries(random.Random(f"query {seed}")).query()
        ours, plain, _ = _both(sql, seed)
        assert ours == plain, f"seed {seed}: {sql}"
