"""Groups of which a query reads a test, a rank or a comparison: rows are asked until these are
decided, whatever the other answers are."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from group_queries import (
    check_rows,
    grouped_rows,
    rows_and_values,
    seeded_script,
)
from scripts import both_ways

import blendfusion as bf

Script = Callable[[bf.Request], object]
N = 400
F = "llm_filter('q', x)"
SCORE = "llm_score('s', x, low => 0, high => 4)"
COUNT = f"count(*) FILTER (WHERE {F})"


def test_one_of_equal_rows_is_enough_for_a_number_that_is_shown() -> None:
    table = _of_eight().set_column(2, "d", pa.array([i % 3 for i in range(N)]))
    sql = f"SELECT g, count(DISTINCT d) AS n FROM t WHERE {F} GROUP BY g"
    of_each_kind = check_rows(sql, table, _hashed)
    assert of_each_kind < N / 2
    assert check_rows(f"{sql} HAVING count(DISTINCT d) > 1", table, _hashed) <= of_each_kind


def _of_eight() -> pa.Table:
    """Eight groups of fifty rows."""
    ids = range(N)
    return pa.table(
        {
            "id": [*ids],
            "g": [i % 8 for i in ids],
            "d": [i * 37 % 101 for i in ids],
            "p": [i * 13 % 50 for i in ids],
            "x": [f"text {i}" for i in ids],
        }
    )


def _hashed(call: bf.Request) -> object:
    """A fifth of all are a yes."""
    number = sum(map(ord, str(call.values[0])))
    low, high = call.constraint.scale or (0, 6)
    return number % 5 == 0 if call.constraint.kind == "boolean" else low + number % (high - low + 1)


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        (f"SELECT g FROM t GROUP BY g HAVING avg(CASE WHEN {F} THEN 1 ELSE 0 END) > 0.1", 245),
        (f"SELECT g FROM t GROUP BY g HAVING 2 * {COUNT} > count(*)", 265),
        (f"SELECT g FROM t GROUP BY g HAVING sum(p) FILTER (WHERE {F}) > 100", 145),
        (f"SELECT g FROM t GROUP BY g HAVING sum({SCORE}) > 20", 110),
        (f"SELECT g FROM t GROUP BY g HAVING avg({SCORE}) > 3.5", 200),
        (f"SELECT g FROM t GROUP BY g HAVING max({SCORE}) >= 4", 45),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) >= 3", 115),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) >= 49", 24),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(*) >= 3 ORDER BY g LIMIT 2", 40),
        ("SELECT g FROM t GROUP BY g HAVING sum(llm_int('i', x)) > 3 ORDER BY g LIMIT 2", 100),
        ("SELECT g, sum(llm_int('i', x)) AS s FROM t GROUP BY g HAVING max(id) < 395", 150),
        (f"SELECT g, {COUNT} AS n FROM t GROUP BY g HAVING sum(id) > 10000", 200),
        (f"SELECT g, least(count(*), 3) AS n FROM t WHERE {F} GROUP BY g", 115),
        (f"SELECT g, CASE WHEN {COUNT} > 5 THEN 'many' END AS w FROM t GROUP BY g", 245),
        (f"SELECT g, count(*) AS n, bool_or({F}) AS v FROM t GROUP BY g", 45),
        (f"SELECT min(d) AS a, max(d) AS b FROM t WHERE {F}", 15),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} > g", 190),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} IN (0, 50)", 60),
        (f"SELECT {COUNT} > 30 AS many FROM t", 165),
        (f"SELECT g FROM t WHERE {F} GROUP BY g HAVING count(DISTINCT d) >= 2", 80),
        (f"SELECT g FROM t GROUP BY g HAVING count(DISTINCT CASE WHEN {F} THEN p END) >= 2", 95),
        (f"SELECT g, count(DISTINCT p) > 1 AS v FROM t WHERE {F} GROUP BY g", 80),
        (f"SELECT count(DISTINCT d) > 3 AS v FROM t WHERE {F}", 25),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} > (SELECT max(id) FROM t WHERE id < 6)", 225),
        (f"SELECT g FROM t GROUP BY g HAVING {COUNT} > "
         f"(SELECT count(*) FROM t WHERE {F} AND id < 20)", 200),
        (f"SELECT g FROM t GROUP BY g HAVING sum(id) > 0 AND (SELECT count(*) FROM t WHERE {F}) > 2", 25),
    ],
)  # fmt: skip
def test_rows_are_asked_until_groups_are_decided(sql: str, most: int) -> None:
    assert check_rows(sql, _of_eight(), _hashed) <= most


def test_the_largest_group_is_found_without_its_size() -> None:
    table = _of_eight()
    table = table.set_column(1, "g", pa.array([0 if i < 300 else i % 7 + 1 for i in range(N)]))
    sql = f"SELECT g FROM t GROUP BY g ORDER BY {COUNT} DESC LIMIT 1"
    assert check_rows(sql, table, _hashed) <= 100
    for kind in ("rank", "dense_rank", "row_number"):
        number = f"{kind}() OVER (ORDER BY {COUNT} DESC)"
        assert check_rows(f"SELECT g FROM t GROUP BY g QUALIFY {number} = 1", table, _hashed) <= 100


def test_the_first_groups_of_each_kind_are_found_without_their_sizes() -> None:
    ids = range(900)
    kinds = pa.table(
        {
            "id": [*ids],
            "h": [i % 3 for i in ids],
            "g": [i % 7 if i % 9 < 3 else 0 for i in ids],
            "x": [f"text {i}" for i in ids],
        }
    )
    number = f"rank() OVER (PARTITION BY h ORDER BY {COUNT} DESC)"
    sql = f"SELECT h, g FROM t GROUP BY h, g QUALIFY {number} = 1"
    assert check_rows(sql, kinds, _hashed) <= 450


def test_a_second_run_asks_nothing() -> None:
    model = bf.ScriptedModel(_hashed)  # type: ignore[arg-type]
    session = bf.connect(model)
    session.from_arrow(_of_eight(), name="t")
    sql = f"SELECT g FROM t GROUP BY g ORDER BY sum({SCORE}) DESC, g LIMIT 2"
    first = session.sql(sql).to_pylist()
    asked = len(model.calls)
    assert session.sql(sql).to_pylist() == first
    assert len(model.calls) == asked


def test_rows_of_one_text_are_one_question() -> None:
    table = _of_eight().set_column(4, "x", pa.array([f"text {i % 20}" for i in range(N)]))
    sql = f"SELECT g FROM t GROUP BY g HAVING {COUNT} > 10"
    assert check_rows(sql, table, _hashed) <= 20


def test_questions_about_another_group_may_decide_one_that_waits() -> None:
    """Of two tests in one round, the first closed a group about which the second would ask."""
    sql = "SELECT k FROM t WHERE llm_int('i', x) IN (1, 2) GROUP BY k HAVING count(DISTINCT m) <= 3"
    check_rows(sql, grouped_rows(random.Random(225)), seeded_script(225))


def test_explain_says_when_it_ends() -> None:
    session = bf.connect(bf.ScriptedModel(_hashed))  # type: ignore[arg-type]
    session.from_arrow(_of_eight(), name="t")
    text = session.sql(f"SELECT g FROM t GROUP BY g HAVING {COUNT} > 3").explain_text()
    assert "until its groups are decided (stops early)" in text


def test_a_group_of_several_distinct_values_is_not_too_small() -> None:
    """small_groups counted the rows of a group as one distinct value."""
    sql = (
        f"SELECT g, {COUNT} > 3 AS v FROM t GROUP BY g HAVING count(DISTINCT d) > 1 AND min(id) < 3"
    )
    rows, _ = rows_and_values(sql, _of_eight(), _hashed, planner=True)
    assert rows == ["{'g': 0, 'v': True}", "{'g': 1, 'v': True}", "{'g': 2, 'v': True}"]


@pytest.mark.parametrize(
    ("sql", "asked", "line"),
    [
        ("SELECT g FROM t GROUP BY g HAVING count(*) FILTER (WHERE llm_filter('f', x)) > 3", 8,
         "until its groups are decided (stops early)"),
        ("SELECT x FROM t WHERE llm_filter('f', x) "
         "QUALIFY row_number() OVER (PARTITION BY g ORDER BY x) <= 3", 6,
         "limit 3 of each group (stops early)"),
        ("SELECT x FROM t WHERE llm_filter('f', x) QUALIFY rank() OVER (ORDER BY g) = 1", 20,
         "limit 1 with ties (stops early)"),
        ("SELECT DISTINCT g FROM t WHERE llm_filter('f', x)", 2,
         "one of equal rows is enough (stops early)"),
    ],
)  # fmt: skip
def test_explain_analyze_tells_how_many_rows_were_spared(sql: str, asked: int, line: str) -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    session.from_pydict({"g": [i % 2 for i in range(40)], "x": [f"v{i}" for i in range(40)]}, "t")
    frame = session.sql(sql)
    text = frame.explain_text(analyze=True)
    assert frame.trace.usage.values == asked
    assert f"{line}: {40 - asked} of 40 rows spared" in text


@pytest.mark.parametrize("key", ["x IS NOT NULL", "x ILIKE '%'", "TRUE"])
def test_a_key_that_is_true_of_all_rows(key: str) -> None:
    rows = "FROM (VALUES ('a', 5), ('b', 2)) AS v(x, n)"
    having = "HAVING count(*) FILTER (WHERE llm_filter('q', x)) >= 2"
    for session in both_ways({"x": ["a"]}, lambda call: True):
        assert session.rows(f"SELECT sum(n) {rows} GROUP BY {key} {having}") == [(7,)]


def test_a_key_that_is_asked_to_order_ties() -> None:
    ties = "SELECT u.id, u.ok, llm_map('k', t.x) AS k FROM t u CROSS JOIN t ORDER BY id, k, ok OFFSET 0"
    query = f"SELECT k, min(llm_map('n', k)) AS n FROM ({ties}) WHERE ok GROUP BY k"
    table = {"id": [1, 2], "ok": [True, False], "x": ["a", "b"]}
    for session in both_ways(table, lambda call: f"{call.question} {call.values[0]}"):
        assert sorted(session.rows(query)) == [("k a", "n k a"), ("k b", "n k b")]
