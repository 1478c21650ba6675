"""A count that is only compared with numbers: rows are asked until it is as large as these."""

from __future__ import annotations

import random

import pytest
from grouped_tables import grouped_table
from scripts import Counted, both_ways, hashed, unordered

import blendfusion as bf

N = 60
F = "llm_filter('f', x)"


def _script(call: bf.Request) -> bool:
    """Every third row of each group, from the third one."""
    return int(call.values[0][1:]) // 4 % 3 == 2


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [None if i % 4 == 3 else i % 4 for i in range(N)],
        "n": [None if i % 5 == 0 else i for i in range(N)],
        "x": [f"v{i:02}" for i in range(N)],
    }
    return both_ways(columns, _script)


COUNT = f"SELECT count(*) FROM t WHERE {F}"
OF_GROUPS = f"SELECT k FROM t WHERE {F} GROUP BY k HAVING"
FILTERED = f"count(*) FILTER (WHERE {F})"
FIRST = 9
"""The rows of the table down to the first one that passes."""


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        (f"SELECT ({COUNT}) > 0 AS v", FIRST),
        (f"SELECT ({COUNT}) = 0 AS v", FIRST),
        (f"SELECT 0 < ({COUNT}) AS v", FIRST),
        (f"SELECT ({COUNT}) >= 3 AS v", FIRST + 2),
        (f"SELECT ({COUNT}) BETWEEN 1 AND 2 AS v", FIRST + 2),
        (f"SELECT ({COUNT}) IN (0, 4) AS v", 21),
        (f"SELECT CASE WHEN ({COUNT}) > 1 THEN 'many' ELSE 'few' END AS v", FIRST + 1),
        (f"SELECT id FROM t WHERE id < 3 AND ({COUNT}) > 0", FIRST),
        (f"SELECT count(*) > 0 AS v FROM t WHERE {F}", FIRST),
        (f"SELECT count(n) > 3 AS v FROM t WHERE {F}", FIRST + 8),  # of 8, 9, 11, 21
        (f"SELECT count(*) <> 0 AS v FROM t WHERE {F} AND id > 99", 0),
        (f"SELECT 1 AS v FROM t WHERE {F} HAVING count(*) > 0", FIRST),
        (f"SELECT {FILTERED} > 0 AS v FROM t", FIRST),
        (f"SELECT sum(CASE WHEN {F} THEN 1 ELSE 0 END) >= 2 AS v FROM t", FIRST + 1),
        (f"SELECT sum(CASE WHEN {F} THEN 1 ELSE 0 END) >= 2 AS v FROM t WHERE id > 99", 0),
        (f"{OF_GROUPS} count(*) > 0", 4 * 3),
        (f"{OF_GROUPS} count(*) >= 2", 4 * 6),
        (f"{OF_GROUPS} count(DISTINCT id) > 1", 4 * 6),
        (f"{OF_GROUPS} count(*) < 2", 4 * 6),
        (f"{OF_GROUPS} count(n) = 0", 4 * 3),
        (f"SELECT k, count(*) > 0 AS v FROM t WHERE {F} GROUP BY k", 4 * 3),
        (f"SELECT k FROM t GROUP BY k HAVING {FILTERED} > 0", 4 * 3),
        (f"SELECT k FROM t GROUP BY k HAVING {FILTERED} = 0", 4 * 3),
        (f"SELECT k FROM t GROUP BY k HAVING {FILTERED} >= 2", 4 * 6),
        (f"SELECT k FROM t GROUP BY k HAVING sum(CASE WHEN {F} THEN 1 ELSE 0 END) > 0", 4 * 3),
        (f"SELECT k FROM t GROUP BY k HAVING sum(CASE WHEN {F} THEN 2 ELSE 0 END) > 0", 4 * 3),
        (f"{OF_GROUPS} count(*) > k", 3 + 6 + 9),
        (f"SELECT k FROM t GROUP BY k HAVING count(CASE WHEN {F} THEN 1 END) > 0", 4 * 3),
        (f"SELECT count(*) AS n FROM ({OF_GROUPS} count(*) > 0)", 4 * 3),
        (f"SELECT count(*) AS n FROM ({OF_GROUPS} count(*) > 0) g JOIN t ON g.k = t.k", 3 * 3),
        # Beside other aggregates.
        (f"SELECT k, avg(n) AS a FROM t GROUP BY k HAVING {FILTERED} >= 2", 4 * 6),
        (f"SELECT k, max(id) AS m FROM t WHERE {F} GROUP BY k HAVING count(*) > 1", 4 * 6 + 4),
        (f"SELECT {FILTERED} > 2 AS v, count(*) AS n, bool_or({F}) AS w FROM t", FIRST + 2),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM t u WHERE u.k = t.k AND "
         "llm_filter('f', u.x)) > 0", 3 * 3),
        ("SELECT id FROM t WHERE (SELECT count(*) FROM t u WHERE u.k = t.k AND "
         "llm_filter('f', u.x)) = 0", 3 * 3),
    ],
)  # fmt: skip
def test_rows_are_asked_until_the_count_is_large_enough(
    sessions: tuple[Counted, Counted], sql: str, least: int
) -> None:
    planned, plain = sessions
    assert planned.session.sql(sql).prepared.reason is None
    # Behind four rows of a group that fail, more than one comes at once.
    assert least <= planned.asked(sql) <= 1.25 * least + 2
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT ({COUNT}) > 0 AS v, ({COUNT}) AS n",
        f"SELECT ({COUNT}) > id AS v FROM t",
        f"SELECT count(*) AS n FROM t WHERE {F} HAVING count(*) > 0",
        f"SELECT count(*) > 0 AS v, sum(id) AS n FROM t WHERE {F}",
        f"SELECT k FROM t WHERE {F} GROUP BY k HAVING count(*) > 0 ORDER BY count(*)",
        f"SELECT k FROM t WHERE {F} GROUP BY ROLLUP (k) HAVING count(*) > 0",
    ],
)
def test_others_need_every_answer(sessions: tuple[Counted, Counted], sql: str) -> None:
    planned, plain = sessions
    assert planned.asked(sql) == N
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


def test_a_comparison_that_no_count_changes_asks_nothing(sessions: tuple[Counted, Counted]) -> None:
    planned, plain = sessions
    sql = f"SELECT ({COUNT}) + 1 > 0 AS v"
    assert planned.asked(sql) == 0
    assert planned.rows(sql) == plain.rows(sql)


def test_a_count_over_pairs_ends_early() -> None:
    planned, plain = Counted(hashed), Counted(hashed, planner=False)
    for session in (planned, plain):
        session.add("a", {"x": [f"a{i}" for i in range(40)]})
        session.add("b", {"y": [f"b{i}" for i in range(40)]})
    label = "llm_classify({}, ['r', 's'])"
    sql = f"SELECT count(*) > 0 AS v FROM a JOIN b ON {label.format('x')} = {label.format('y')}"
    assert planned.asked(sql) <= 6
    assert planned.rows(sql) == plain.rows(sql) == [(True,)]


def _random_query(source: random.Random) -> str:
    condition = source.choice([F, f"NOT {F}", f"n > 1 AND {F}", f"n = 2 OR {F}", f"{F} IS NULL"])
    where = source.choice(["", f" WHERE {F}", " WHERE n > 0"])
    count = source.choice(
        [
            *("count(*)", "count(n)", "count(DISTINCT n)", "sum(n)"),
            *(f"count(*) FILTER (WHERE {condition})", f"count(n) FILTER (WHERE {condition})"),
            f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)",
            f"count(CASE WHEN {condition} THEN {source.choice(['1', 'n', 'x'])} END)",
        ]
    )
    number = source.choice([-1, 0, 1, 2, 3, 5])
    test = source.choice(
        [
            f"{count} {source.choice(['>', '>=', '<', '<=', '=', '<>'])} {number}",
            f"{number} {source.choice(['>', '>=', '<', '<='])} {count}",
            f"{count} IN (0, {number})",
            f"{count} NOT BETWEEN 1 AND {number}",
            f"({count} > 1 AND {count} < 4)",
        ]
    )
    shape = source.randrange(8)
    if shape > 5:
        other = source.choice(
            ["max(id)", "sum(n)", f"bool_or({F})", "count(*)", f"min(n) FILTER (WHERE {F})"]
        )
        return f"SELECT k, {other} AS m FROM t{where} GROUP BY k HAVING {test}"
    if shape == 0:
        return f"SELECT {test} AS v FROM t{where}"
    if shape == 1:
        return f"SELECT k, {test} AS v FROM t{where} GROUP BY k"
    if shape == 2:
        return f"SELECT k, n FROM t{where} GROUP BY k, n HAVING {test}"
    if shape == 3:
        return f"SELECT id FROM t WHERE (SELECT {test} FROM t{where})"
    sql = f"(SELECT count(*) FROM t u WHERE u.k = t.k AND llm_filter('f', u.x)) > {number}"
    if shape == 4:
        return f"SELECT id FROM t WHERE {sql} OR n = 1"
    return f"SELECT g.k, g.v, u.id FROM (SELECT k, {test} AS v FROM t{where} GROUP BY k) g " \
        "LEFT JOIN t u ON u.k = g.k AND u.n = 2"  # fmt: skip


@pytest.mark.parametrize("number", range(14))
def test_random_queries(number: int) -> None:
    source = random.Random(number)
    planned, plain = both_ways(grouped_table(source, groups=9))
    for _ in range(12):
        sql = _random_query(source)
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql


@pytest.mark.parametrize(
    "sql",
    [
        # A predicate of a filter stands in the key of the sort above it.
        f"SELECT k FROM t WHERE ({F} AND n <> 2) IS TRUE GROUP BY k ORDER BY k LIMIT 2",
        f"SELECT k FROM t WHERE x IS NOT NULL AND {F} IS NOT TRUE GROUP BY k ORDER BY k LIMIT 1",
        f"SELECT min(x) FILTER (WHERE {F} OR n IS NULL) AS v FROM t WHERE k <> 0 OR {F} OR id > 1",
        # A condition that holds on the side of a right join went around for ever.
        """SELECT count(*) FILTER (WHERE b.k = 0) > 0 AS v
        FROM t a FULL JOIN t b ON llm_classify(a.x, ['r', 's']) = llm_classify(b.x, ['r', 's'])
        JOIN t c ON b.k = c.k
        WHERE (llm_classify(c.x, ['r', 's']) = 'r') IS FALSE OR (c.k > 2 AND a.x = 'v1')""",
    ],
)
def test_queries_that_once_ran_plain(sql: str) -> None:
    columns: dict[str, list[object]] = {
        "id": [*range(9)],
        "k": [0, 1, 2, 3, None, 1, 2, 0, 1],
        "n": [None, 1, 2, 1, 2, None, 0, 2, 1],
        "x": [f"v{i}" for i in range(9)],
    }
    planned, plain = both_ways(columns)
    frame = planned.session.sql(sql)
    frame.collect()
    assert frame.prepared.reason is None
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))
