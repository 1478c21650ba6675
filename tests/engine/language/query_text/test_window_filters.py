"""FILTER of windows in queries with calls, above whatever stands there: planned, with the rows of
full evaluation."""

from __future__ import annotations

import pytest
from scripts import both_ways, unordered

from blendfusion.language.query_text.window_filters import filters_as_cases

N = 20
TABLE: dict[str, list[object]] = {
    "id": [*range(N)],
    "k": [None if i % 7 == 0 else i % 3 for i in range(N)],
    "n": [None if i % 5 == 0 else i % 4 for i in range(N)],
    "v": [i * 0.5 - 3 for i in range(N)],
    "x": [f"v{i}" for i in range(N)],
}
YES = "llm_filter('f', x)"
FUNCTIONS = (
    *("sum(n)", "avg(v)", "count(*)", "count(n)", "count(DISTINCT n)", "min(x)", "max(n + v)"),
    *("stddev(v)", "var_pop(v)", "bool_and(n > 1)", "bit_or(n)", "median(n)", "corr(n, v)"),
    "sum(coalesce(n, (SELECT max(id) FROM t)))",
)
CONDITIONS = ("n > 1", "n > 1 OR k IS NULL", "v IN (1, 2) AND NOT n = 2", "(k = 1)", YES)
WINDOWS = (
    "(PARTITION BY k)",
    "(ORDER BY id)",
    "(PARTITION BY k ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)",
)
PLACES = (
    f"SELECT id, {{w}} AS w FROM t WHERE {YES}",
    f"SELECT t.id, {{w}} AS w FROM t JOIN (SELECT id AS i FROM t) AS u ON t.id = u.i WHERE {YES}",
    f"SELECT id, {{w}} AS w FROM t WHERE {YES} ORDER BY id LIMIT 5",
    f"SELECT id, CASE WHEN {YES} THEN {{w}} END AS w FROM t",
    f"SELECT id, {{w}} AS w FROM t WHERE {YES} QUALIFY {{w}} IS NOT NULL",
    f"WITH c AS (SELECT id, x, {{w}} AS w FROM t) SELECT id, w FROM c WHERE {YES}",
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_filters_are_planned(function: str) -> None:
    planned, plain = both_ways(TABLE)
    for number, place in enumerate(PLACES):
        condition = CONDITIONS[(number + len(function)) % len(CONDITIONS)]
        # DataFusion has no sliding frames of some functions.
        slides = not function.startswith(("bool", "bit", "count(DISTINCT"))
        window = WINDOWS[number % (3 if slides else 2)]
        sql = place.format(w=f"{function} FILTER (WHERE {condition}) OVER {window}")
        frame = planned.session.sql(sql)
        assert frame.prepared.reason is None, sql
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql
        assert frame.columns == plain.session.sql(sql).columns == ["id", "w"]


def test_a_column_keeps_its_name() -> None:
    planned, plain = both_ways(TABLE)
    sql = f"SELECT sum(n) FILTER (WHERE n > 1) OVER (ORDER BY id) FROM t WHERE {YES}"
    assert planned.session.sql(sql).columns == plain.session.sql(sql).columns


@pytest.mark.parametrize(
    ("sql", "cases"),
    [
        ("sum(a) FILTER (WHERE b) OVER w", "sum(CASE WHEN b THEN a END) OVER w"),
        (
            "count(DISTINCT a) filter (where b > (1)) OVER (ORDER BY c)",
            "count(DISTINCT CASE WHEN b > (1) THEN a END) OVER (ORDER BY c)",
        ),
        ("count() FILTER (WHERE b) OVER ()", "count(CASE WHEN b THEN 1 END) OVER ()"),
        ("corr(f(a, 1), c) FILTER (WHERE b) OVER ()", "corr(CASE WHEN b THEN f(a, 1) END, c) OVER ()"),
        ("sum(a) FILTER (WHERE b)", "sum(a) FILTER (WHERE b)"),
        ("array_agg(a) FILTER (WHERE b) OVER ()", "array_agg(a) FILTER (WHERE b) OVER ()"),
        ("first_value(a) FILTER (WHERE b) OVER ()", "first_value(a) FILTER (WHERE b) OVER ()"),
        ("'sum(a) FILTER (WHERE b) OVER w'", "'sum(a) FILTER (WHERE b) OVER w'"),
    ],
)  # fmt: skip
def test_filters_of_windows_alone(sql: str, cases: str) -> None:
    assert filters_as_cases(f"SELECT {sql} FROM t") == f"SELECT {cases} FROM t"
