"""A select list may name a column twice, as in other systems."""

from __future__ import annotations

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
