"""``x IN (…)``: items without calls are one comparison, however many they are."""

from __future__ import annotations

import itertools
import time

import pytest

import blendfusion as bf

VALUES = ["a", "b", "c", "miss", None]


def session(*, planner: bool = True) -> bf.Session:
    def script(request: bf.Request) -> str:
        return "b" if request.values[0] == "miss" else str(request.values[0])

    made = bf.connect(bf.ScriptedModel(script), cache=None, progress="off")
    made.sql(f"SET blendfusion.planner = {str(planner).lower()}")
    made.from_pydict({"x": VALUES, "y": ["b", None, "c", "b", "a"]}, name="t")
    return made


ITEMS = ("'a'", "NULL", "y", "'z'", "llm_map('q', y)", "llm_map('r', x)")
QUERIES = [
    f"SELECT x, {left} {negated}IN ({', '.join(items)}) AS found FROM t"
    for left in ("x", "llm_map('q', x)")
    for negated in ("", "NOT ")
    for size in (1, 2, 3)
    for items in itertools.combinations(ITEMS, size)
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_rows_are_those_of_full_evaluation(query: str) -> None:
    assert session().sql(query).to_pylist() == session(planner=False).sql(query).to_pylist()


def test_an_item_with_a_call_is_asked_where_no_item_before_it_is_equal() -> None:
    frame = session().sql("SELECT x FROM t WHERE x IN ('a', 'b', 'c', llm_map('q', x))")
    assert frame.to_pylist() == [{"x": "a"}, {"x": "b"}, {"x": "c"}]
    assert frame.trace.usage.values == 1


def test_time_grows_with_the_number_of_literals_and_not_with_its_square() -> None:
    def seconds(count: int) -> float:
        literals = ", ".join(f"'v{i}'" for i in range(count))
        frame = session().sql(f"SELECT x FROM t WHERE llm_map('q', x) IN ({literals}, 'c')")
        start = time.process_time()
        assert frame.to_pylist() == [{"x": "c"}]
        return time.process_time() - start

    seconds(10)
    few = max(seconds(300), 0.005)
    assert any(seconds(6000) < 60 * few for _ in range(3))  # other programs only add time
