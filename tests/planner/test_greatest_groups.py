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


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH g AS ({GROUPS}) SELECT k FROM g WHERE v = (SELECT max(v) FROM g)",
        f"WITH g AS ({GROUPS}) SELECT * FROM g WHERE (SELECT max(v) FROM g) <= v",
        f"SELECT k FROM t WHERE {F} GROUP BY k HAVING count(*) >= (SELECT max(v) FROM ({GROUPS}))",
        f"SELECT k FROM t GROUP BY k HAVING count(*) FILTER (WHERE {F}) = (SELECT max(v) FROM "
        f"(SELECT k, count(*) FILTER (WHERE {F}) AS v FROM t GROUP BY k))",
    ],
)
def test_groups_that_cannot_be_the_greatest_are_not_asked_to_the_end(
    sessions: tuple[Counted, Counted], sql: str
) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
    assert planned.asked(sql) <= N // 3


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
        read = rng.choice(["v", "v", "v", "v + 1"])
        compared = rng.choice(["=", ">=", "<=", ">", "<>"])
        also = rng.choice(["", " AND v IS NOT NULL", f" AND {by.split(', ')[0]} > 0"])
        extremes = f"(SELECT {extreme}({read}) FROM ({others}) AS h)"
        terms = rng.choice([f"v {compared} {extremes}", f"{extremes} {compared} v"])
        yield f"SELECT * FROM ({groups}) AS g WHERE {terms}{also}"


@pytest.mark.parametrize("sql", list(_queries(60)))
def test_rows_are_those_of_all_answers(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
