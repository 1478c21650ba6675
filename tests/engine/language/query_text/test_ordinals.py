"""ORDER BY may name an item of the select list by its place, whatever the item computes."""

from __future__ import annotations

import pytest

import blendfusion as bf
from blendfusion.language.query_text.ordinals import expand_ordinals


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT k, round(sum(n)) FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
        ("SELECT k, sum(n) + 1, min(n) AS m FROM t GROUP BY k ORDER BY 2 DESC NULLS LAST, 3, 1", ["b", "a"]),
        ("WITH v AS (SELECT k, -sum(n) FROM t GROUP BY k ORDER BY 2 LIMIT 1) SELECT * FROM v", ["b"]),
        ("SELECT k, round(avg(llm_int('How many?', x)), 1) FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
        ("SELECT k, CASE WHEN sum(n) > 5 THEN 0 ELSE 1 END FROM t GROUP BY k ORDER BY 2, 1", ["b", "a"]),
        ("SELECT k, round(sum(n)), round(sum(n)) FROM t GROUP BY k ORDER BY 2 DESC", ["b", "a"]),
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


@pytest.mark.parametrize(
    ("items", "order", "written"),
    [
        ("3, sum(n) + 1, k", "1, 2", "1, sum(n) + 1"),
        ("k, (SELECT 3), sum(n) + 1", "1, 2, 3", "1, 2, sum(n) + 1"),
        ("* EXCLUDE (n), sum(n) + 1", "1, 2", None),
        ("t.* EXCLUDE (n), sum(n) + 1", "2", None),
        ("count(*) * 2, k", "1", "count(*) * 2"),
    ],
)
def test_only_calls_are_written_out_as_a_number_is_an_ordinal_again(
    items: str, order: str, written: str | None
) -> None:
    found = expand_ordinals(f"SELECT {items} FROM t GROUP BY k ORDER BY {order}")
    assert (found and found.sql) == (
        f"SELECT {items} FROM t GROUP BY k ORDER BY {written}" if written else None
    )
