"""Groups that are compared with the greatest or the least value of all groups."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from scripts import Counted, both_ways, unordered

import blendfusion as bf

N = 200
F = "llm_filter('f', x)"


def _script(call: bf.Request) -> bool:
    """All rows of group 3, and of the others fewer and fewer."""
    number = int(call.values[0][1:])
    return number % 8 == 3 or number % 8 * 3 + number // 8 < 12


@pytest.fixture(scope="module")
def sessions() -> tuple[Counted, Counted]:
    source = random.Random(7)
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [i % 8 for i in range(N)],
        "j": [None if i % 8 == 5 else i % 2 for i in range(N)],
        "n": [None if i % 8 == 2 or source.random() < 0.2 else i % 5 for i in range(N)],
        "d": [float("nan") if i % 8 == 1 else i / 4 for i in range(N)],
        "x": [f"v{i}" for i in range(N)],
    }
    return both_ways(columns, _script)


GROUPS = f"SELECT k, count(*) AS v FROM t WHERE {F} GROUP BY k"
BY_BOTH = f"SELECT j, k, count(*) AS v FROM t WHERE {F} GROUP BY j, k"


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH g AS ({GROUPS}) SELECT k FROM g WHERE v = (SELECT max(v) FROM g)",
        f"WITH g AS ({GROUPS}) SELECT * FROM g WHERE (SELECT max(v) FROM g) <= v",
        f"SELECT k FROM t WHERE {F} GROUP BY k HAVING count(*) >= (SELECT max(v) FROM ({GROUPS}))",
        f"SELECT k FROM t GROUP BY k HAVING count(*) FILTER (WHERE {F}) = (SELECT max(v) FROM "
        f"(SELECT k, count(*) FILTER (WHERE {F}) AS v FROM t GROUP BY k))",
        f"SELECT max(v) AS m FROM ({GROUPS})",
        f"SELECT k FROM (SELECT *, max(v) OVER () AS m FROM ({GROUPS})) WHERE v >= m",
        f"WITH g AS ({GROUPS}) SELECT * FROM g WHERE NOT EXISTS "
        "(SELECT 1 FROM g AS h WHERE h.v > g.v)",
        f"WITH g AS ({GROUPS}) SELECT k FROM g WHERE v >= ALL (SELECT v FROM g)",
        f"SELECT k FROM ({GROUPS}) WHERE v > 0.1 * (SELECT count(*) FROM t)",
    ],
)
def test_groups_that_cannot_be_the_greatest_are_not_asked_to_the_end(
    sessions: tuple[Counted, Counted], sql: str
) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
    assert planned.asked(sql) <= N // 3


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT j, max(v) AS m FROM ({BY_BOTH}) GROUP BY j",
        f"SELECT * FROM (SELECT *, max(v) OVER (PARTITION BY j) AS m FROM ({BY_BOTH})) WHERE v = m",
    ],
)
def test_groups_are_compared_with_those_of_equal_keys(
    sessions: tuple[Counted, Counted], sql: str
) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
    assert planned.asked(sql) <= 0.7 * N


COUNT = f"count(*) FILTER (WHERE {F})"


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        # A part of all: a group ends when the others have enough, or too little is left.
        (f"SELECT k FROM ({GROUPS}) WHERE v > 0.5 * (SELECT count(*) FROM t WHERE {F})", 0.7),
        (f"SELECT k FROM t GROUP BY k HAVING {COUNT} > 0.5 * (SELECT {COUNT} FROM t)", 0.8),
        (f"SELECT k FROM t GROUP BY k QUALIFY {COUNT} > 0.5 * sum({COUNT}) OVER ()", 0.8),
        (f"SELECT k, {COUNT} * 1.0 / sum({COUNT}) OVER () > 0.5 AS v FROM t GROUP BY k", 0.8),
        (f"SELECT k, v > 0.9 * (SELECT max(v) FROM ({GROUPS})) AS c FROM ({GROUPS})", 0.75),
        (f"SELECT k FROM (SELECT k, {COUNT} AS v FROM t GROUP BY k) "
         "QUALIFY v > 3 * avg(v) OVER ()", 0.95),
        (f"WITH g AS ({GROUPS} HAVING count(*) > 2) SELECT k FROM g WHERE v > "
         "0.7 * (SELECT sum(v) FROM g)", 0.65),
        (f"SELECT k FROM (SELECT *, sum(v) OVER () AS a FROM ({GROUPS})) "
         "ORDER BY v * 1.0 / a DESC LIMIT 1", 0.8),
        # Partitions by expressions of keys.
        (f"SELECT k FROM t GROUP BY k QUALIFY row_number() OVER (PARTITION BY k % 2 "
         f"ORDER BY {COUNT} DESC) = 1", 0.8),
        (f"SELECT k FROM ({GROUPS}) QUALIFY v = max(v) OVER (PARTITION BY k / 4)", 0.8),
        (f"SELECT k / 4 AS h, max(v) AS m FROM ({GROUPS}) GROUP BY k / 4", 0.8),
        (f"SELECT k FROM ({GROUPS}) QUALIFY count(*) OVER (PARTITION BY k % 2) > 2", 0.55),
    ],
)  # fmt: skip
def test_groups_are_compared_with_values_of_all(
    sessions: tuple[Counted, Counted], sql: str, most: float
) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
    assert planned.asked(sql) <= most * N


def test_a_window_reads_a_group_that_its_own_test_leaves_out(
    sessions: tuple[Counted, Counted],
) -> None:
    """What fails the test above a window counts in it, what fails the one below does not."""
    planned, plain = sessions
    for below in ("", " HAVING count(*) > 5"):
        windowed = f"SELECT *, sum(v) OVER () AS s FROM ({GROUPS}{below})"
        for test in ("v < 5", "s > 30", "v < 5 AND s > 40", "s < 60 OR v > 20"):
            sql = f"SELECT k FROM ({windowed}) WHERE {test}"
            assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize(
    "rest",
    [
        "HAVING count(*) > 2 ORDER BY 10 / (k - 4), k LIMIT 2",
        "HAVING count(*) > 30 / (k - 4)",
        "QUALIFY count(*) > 0.5 * sum(count(*)) OVER (PARTITION BY 10 / (k - 4))",
        "QUALIFY row_number() OVER (PARTITION BY 10 / (k - 4) ORDER BY count(*) DESC, k) = 1",
    ],
)
def test_an_expression_may_fail_on_a_group_without_rows(
    sessions: tuple[Counted, Counted], rest: str
) -> None:
    """Group 4 is none, since no row of it passes: nothing is divided by zero."""
    planned, plain = sessions
    sql = f"SELECT k FROM t WHERE {F} GROUP BY k {rest}"
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


def _queries(count: int) -> Iterator[str]:
    """Comparisons of groups with a value of the same groups, and of nearly the same ones."""
    rng = random.Random(28)
    for _ in range(count):
        value = rng.choice(
            [
                *("count(*)", "count(n)", "count(DISTINCT n)", "sum(n)", "max(n)", "min(n)"),
                *("min(x)", "avg(n)", "sum(d)", "max(d)", f"count(*) FILTER (WHERE {F})"),
            ]
        )
        where = rng.choice([f"WHERE {F}", f"WHERE {F} AND id > 20", ""])
        if not where and "FILTER" not in value:
            where = f"WHERE {F}"
        by = rng.choice(["k", "j", "j, k"])
        having = rng.choice(["", "", " HAVING count(*) > 2"])
        groups = f"SELECT {by}, {value} AS v FROM t {where} GROUP BY {by}{having}"
        others = groups.replace("count(*) > 2", "count(*) > 1") if rng.random() < 0.2 else groups
        extreme = rng.choice(["max", "min"])
        read = rng.choice(["v", "v", "v", "v + 1"]) if value != "min(x)" else "v"
        compared = rng.choice(["=", ">=", "<=", ">", "<>"])
        key = by.split(", ")[0]
        also = rng.choice(["", " AND v IS NOT NULL", f" AND {key} > 0"])
        yield rng.choice(_FORMS)(groups, others, key, extreme, read, compared) + also


def _by_subquery(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    value = f"(SELECT {extreme}({read}) FROM ({h}) AS h)"
    terms = f"v {compared} {value}" if len(key + read) % 2 else f"{value} {compared} v"
    return f"SELECT * FROM ({g}) AS g WHERE {terms}"


def _by_window(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    over = f"PARTITION BY {key}" if g == h else ""
    windowed = f"SELECT *, {extreme}({read}) OVER ({over}) AS m FROM ({g}) AS g"
    return f"SELECT * FROM ({windowed}) AS w WHERE v {compared} m"


def _by_absence(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    greater = ">" if extreme == "max" else "<"
    rows = f"SELECT 1 FROM ({h}) AS h WHERE h.v {greater} g.v"
    return f"SELECT * FROM ({g}) AS g WHERE NOT EXISTS ({rows})"


def _by_all(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    return f"SELECT * FROM ({g}) AS g WHERE v {compared} ALL (SELECT {read} FROM ({h}) AS h)"


def _by_aggregate(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    own = f"SELECT {key}, {extreme}({read}) AS v FROM ({g}) AS g GROUP BY {key}"
    return f"SELECT * FROM ({own}) AS a WHERE {key} {compared} 1"


def _by_share(g: str, h: str, key: str, extreme: str, read: str, compared: str) -> str:
    share = f"0.1 * (SELECT {extreme}(id) FROM t)"
    return f"SELECT * FROM ({g}) AS g WHERE TRY_CAST({read} AS DOUBLE) {compared} {share}"


_FORMS = (_by_subquery, _by_subquery, _by_window, _by_absence, _by_all, _by_aggregate, _by_share)


@pytest.mark.parametrize("sql", list(_queries(120)))
def test_rows_are_those_of_all_answers(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
