"""ORDER BY may name an item of the select list by its place, whatever the item computes."""

from __future__ import annotations

import pytest

import blendfusion as bf


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, round(sum(n)) FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
        ("SELECT k, sum(n) + 1, min(n) AS m FROM t GROUP BY k ORDER BY 2 DESC NULLS LAST, 3, 1", ["b", "a"]),
        ("WITH v AS (SELECT k, -sum(n) FROM t GROUP BY k ORDER BY 2 LIMIT 1) SELECT * FROM v", ["b"]),
        ("SELECT k, round(avg(llm_int('How many?', x)), 1) FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
        ("SELECT k, round(sum(n)) AS s FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
    ],
)  # fmt: skip
def test_an_ordinal_of_order_by_may_mean_an_expression_of_an_aggregate(
    query: str, expected: list[str]
) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: len(call.values[0] or "")), cache=None)
    rows = {"k": ["a", "a", "b"], "n": [1.0, 2.0, 9.0], "x": ["x", "xx", "xxxx"]}
    session.from_pydict(rows, name="t")
    assert [row["k"] for row in session.sql(query).to_pylist()] == expected


def test_an_ordinal_that_is_not_written_out_keeps_the_error() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None)
    session.from_pydict({"k": ["a"], "n": [1]}, name="t")
    with pytest.raises(bf.QueryError, match="neither GROUP BY nor an aggregate") as raised:
        session.sql("SELECT k, round(n) FROM t GROUP BY k ORDER BY 2")
    assert raised.value.span is not None
