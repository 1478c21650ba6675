"""NOT IN keeps its NULLs, whatever stands on its sides, and remains a hash join."""

from __future__ import annotations

import pyarrow as pa
import pytest

import blendfusion as bf

SQL = """
SELECT id FROM t
WHERE id NOT IN (SELECT b FROM u WHERE llm_filter('z?', y)) AND llm_filter('q?', x)
"""


@pytest.mark.parametrize("left", [[1, 2, None], [1, 2], []])
@pytest.mark.parametrize("right", [[], [1], [None], [1, None], [3]])
def test_a_row_stays_if_every_comparison_is_false(
    left: list[int | None], right: list[int | None]
) -> None:
    results = []
    for planner in (True, False):
        session = bf.connect(bf.ScriptedModel(lambda call: True), planner=planner)
        for name, key, text, values in (("t", "id", "x", left), ("u", "b", "y", right)):
            table = pa.table(
                {
                    key: pa.array(values, pa.int64()),
                    text: pa.array(["v"] * len(values), pa.string()),
                }
            )
            session.register_record_batches(
                name, [table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]]
            )
        frame = session.sql(SQL)
        assert (frame.prepared.reason is None) == planner
        results.append(sorted(frame.to_pydict()["id"], key=str))
    assert results[0] == results[1]


def test_its_first_join_has_an_equality() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True))
    session.from_pydict({"id": [1], "x": ["v"]}, name="t")
    session.from_pydict({"b": [1], "y": ["w"]}, name="u")
    assert "left anti join on t.id = u.b" in session.sql(SQL).explain_text()


@pytest.mark.parametrize("left", [[1, 2, None], [None]])
@pytest.mark.parametrize("right", [[], [1], [1, None], [3]])
def test_it_stands_beside_other_anti_joins(left: list[int | None], right: list[int | None]) -> None:
    results = []
    for planner in (True, False):
        session = bf.connect(bf.ScriptedModel(lambda call: True), planner=planner)
        session.from_arrow(pa.table({"id": pa.array(left, pa.int64())}), name="t")
        table = pa.table({"b": pa.array(right, pa.int64())})
        session.register_record_batches(
            "u", [table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]]
        )
        session.from_pydict({"c": [2]}, name="v")
        frame = session.sql(
            "SELECT id FROM t WHERE id NOT IN (SELECT b FROM u WHERE llm_filter('z?', b)) "
            "AND NOT EXISTS (SELECT 1 FROM v WHERE c = id) AND llm_filter('q?', id)"
        )
        assert (frame.prepared.reason is None) == planner
        results.append(sorted(frame.to_pydict()["id"], key=str))
    assert results[0] == results[1]
