"""A select list may name a column twice, as in other systems."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import blendfusion as bf


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT a, a FROM t", ["a", "a_1"]),
        ("SELECT t.a, A, b FROM t", ["a", "A_1", "b"]),
        ("SELECT a, count(*) n, count(*) AS n FROM t GROUP BY a", ["a", "n", "n_1"]),
        ("SELECT DISTINCT a, a, a FROM t", ["a", "a_1", "a_2"]),
        ("SELECT a AS k, b AS k FROM t", ["k", "k_1"]),
        ("SELECT v.a_1 FROM (SELECT a, a FROM t) AS v", ["a_1"]),
        ("SELECT a, a, a + 1 AS a_1 FROM t", ["a", "a_2", "a_1"]),
        (
            "SELECT CASE WHEN a > 0 THEN 1 END, CASE WHEN a > 0 THEN 1 END FROM t",
            ["CASE WHEN t.a > Int64(0) THEN Int64(1) END", "CASEWHENa>0THEN1END_1"],
        ),
        (
            "SELECT CASE WHEN a > 0 THEN 1 END x, CASE WHEN a > 0 THEN 2 END x FROM t",
            ["x", "x_1"],
        ),
        ("SELECT *, a FROM t", None),
    ],
)
def test_columns_of_one_name_are_numbered(query: str, names: list[str] | None) -> None:
    session = bf.connect(bf.ScriptedModel(lambda request: True), cache=None)
    session.from_pydict({"a": [1], "b": [2]}, name="t")
    if names is None:
        with pytest.raises(bf.QueryError, match="unique expression names"):
            session.sql(query)
    else:
        assert session.sql(query).schema().names == names


@pytest.mark.parametrize("test", ["d >= 0.25", "d + 1 = 1.25", "d * 2 > 0.3", "d IS NOT NULL"])
@pytest.mark.parametrize("condition", ["w.c OR {a}", "{a} OR w.c OR {b}", "NOT (w.c AND {a})"])
def test_a_computed_key_may_be_in_conditions_beside_it(test: str, condition: str) -> None:
    """Read back, DataFusion computes such a column below the join, where one of its name is."""
    session = bf.connect(bf.ScriptedModel(lambda request: True), cache=None, progress="off")
    session.from_pydict({"id": [1, 2, 3], "ok": [True, False, None], "s": ["a", "b", None]}, "u")
    numbers = pa.array([Decimal("0.25"), Decimal("0.10"), None], pa.decimal128(8, 2))
    session.from_arrow(pa.table({"d": numbers, "e": ["a", "b", "c"]}), name="v")
    where = condition.format(a="llm_filter('a', w.e)", b="llm_filter('b', w.e)")
    query = (
        f"WITH w AS (SELECT {test} AS c, e FROM v) SELECT u.id FROM u JOIN w ON u.ok = w.c "
        f"AND ({where}) WHERE (u.ok IS NOT TRUE) IS FALSE AND ({where} OR u.s IS NOT NULL)"
    )
    frame = session.sql(query)
    rows = sorted(row["id"] for row in frame.to_pylist())  # a warning would be an error
    session.planner = False
    assert rows == sorted(row["id"] for row in session.sql(query).to_pylist())
    assert frame.prepared.reason is None
