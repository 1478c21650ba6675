"""Arithmetic on whole numbers of few bits, or without a sign, wraps around in DataFusion: groups
are not decided by what it were otherwise."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from group_queries import check_rows

import blendfusion as bf

LARGE = {
    pa.int8(): 100,
    pa.int16(): 30_000,
    pa.int32(): 2**31 - 10,
    pa.int64(): 2**63 - 10,
    pa.uint8(): 200,
    pa.uint32(): 2**32 - 10,
    pa.uint64(): 2**64 - 10,
}
KEPT = "FILTER (WHERE a = 1 OR llm_filter('f', x))"
TESTS = (
    f"max(a) {KEPT} + max(a) > 0",
    f"max(a) {KEPT} * max(a) > 2",
    f"max(a) {KEPT} - min(a) < 1",
    f"min(a) - max(a) {KEPT} < 1",
    f"CAST(max(a) {KEPT} AS INT) + CAST(max(a) AS INT) > 0",
    f"sum(a) - sum(a) {KEPT} - 1 < sum(a)",
    f"max(a) {KEPT} >= 100",
)


@pytest.mark.parametrize("kind", LARGE, ids=str)
def test_rows_are_those_of_all_answers(kind: pa.DataType) -> None:
    most = LARGE[kind]
    table = pa.table(
        {
            "k": [0] * 6,
            "a": pa.array([1, most, 1, most, 1, 2], kind),
            "x": [f"v{i}" for i in range(6)],
        }
    )
    for test in TESTS:
        if "INT" in test and most > 2**31:
            continue  # which fails
        for seed in range(4):

            def answer(call: bf.Request, seed: int = seed) -> bool:
                return random.Random(f"{seed} {call.values}").random() < 0.5

            check_rows(f"SELECT k FROM t GROUP BY k HAVING {test}", table, answer)
