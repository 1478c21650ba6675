"""Every query of SemBench's scenarios beside the movies, by shape: its rows, and the values asked."""

from __future__ import annotations

import pytest
from sembench_shapes import SHAPES, Shape, gold, ours, session_and_gold

ASKED = {
    "animals": [7, 10, 7, 8, 17, 12, 9, 29, 10, 7],
    "cars": [6, 6, 1, 6, 6, 21, 21, 5, 8, 6],
    "medical": [4, 6, 1, 4, 6, 18, 23, 4, 3, 4, 3],
    "mmqa": [1, 6, 7, 4, 4, 4, 4, 4, 4, 4, 4, 1, 3, 3, 3, 6],
    "ecomm": [7, 7, 7, 6, 4, 4, 25, 7, 20, 14, 30, 10, 7, 15],
}
"""Distinct values, or pairs of them, that cheap predicates and limits leave."""


@pytest.fixture(scope="module")
def world() -> object:
    return session_and_gold()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_query_has_the_gold_rows_and_asks_no_more(shape: Shape, world: object) -> None:
    assert isinstance(world, tuple)
    session, _, plain = world
    session.clear_cache()
    frame = session.sql(ours(shape.query))
    found = sorted(map(repr, frame.to_pylist()))
    query = gold(shape.query)
    if shape.any_rows:
        query, limit = query.rsplit(" LIMIT ", 1)
        every = [repr(row) for row in plain.sql(query).to_pylist()]
        assert len(found) == min(int(limit), len(every))
        assert set(found) <= set(every)
    else:
        assert found == sorted(map(repr, plain.sql(query).to_pylist()))
    scenario, number = shape.name.split()
    asked, most = frame.trace.usage.values, ASKED[scenario][int(number) - 1]
    assert 0 < asked <= most
