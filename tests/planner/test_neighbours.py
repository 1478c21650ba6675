"""The answers of neighbouring rows, ``lag`` and ``lead``: only those of the rows that are left are
asked for. Rows are compared with plain SQL."""

from __future__ import annotations

import random

import pytest
from grouped_tables import grouped_table
from scripts import Counted, both_ways, unordered

N = 60
F, S = "llm_filter('f', x)", "llm_score('s', x)"
OVER = "OVER (ORDER BY id)"


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    columns: dict[str, list[object]] = {
        "id": [*range(N)],
        "k": [None if i % 4 == 3 else i % 4 for i in range(N)],
        "x": [f"v{i}" for i in range(N)],
    }
    return both_ways(columns)


@pytest.mark.parametrize(
    ("columns", "asked"),
    [
        (f"lag({F}) {OVER} AS v", 2),
        (f"lead({F}) {OVER} AS v", 3),
        (f"{F} AS w, lag({F}) {OVER} AS v", 3),
        (f"{F} AS w, lag({F}) {OVER} AS v, lead({F}) {OVER} AS u", 4),
        (f"{S} - lag({S}) {OVER} AS v", 3),
        (f"lag({F}, 2) {OVER} AS v", 1),
        (f"lag({F}, 1, false) {OVER} AS v", 2),
        (f"lag({S}, 1, 0) {OVER} AS v", 2),
        ("lag(llm_map('m', x), 1, 'none') OVER (ORDER BY id) AS v", 2),
        (f"lag({S} + id) {OVER} AS v", 2),
        (f"lead({F}) OVER (PARTITION BY k ORDER BY id) AS v", 3),
        (f"{F} AS w, first_value({F}) OVER (PARTITION BY k ORDER BY id DESC) AS v", 6),
        (f"lag({S} + id, 1, 0) {OVER} AS v", N),  # the type of the default is not known
        (f"lag(id) OVER (ORDER BY {F}, id) AS v", N),
    ],
)
def test_only_neighbours_of_the_rows_that_are_left_are_asked(
    sessions: tuple[Counted, Counted], columns: str, asked: int
) -> None:
    planned, plain = sessions
    for sql in (
        f"SELECT id, {columns} FROM t ORDER BY id LIMIT 3",
        f"SELECT * FROM (SELECT id, {columns} FROM t) WHERE id < 3",
    ):
        assert planned.session.sql(sql).prepared.reason is None
        assert planned.asked(sql) == asked
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


def test_the_first_change_ends_the_questions(sessions: tuple[Counted, Counted]) -> None:
    planned, plain = sessions
    sql = f"SELECT * FROM (SELECT id, {F} AS w, lag({F}) {OVER} AS v FROM t) WHERE w AND NOT v"
    assert planned.asked(f"{sql} ORDER BY id LIMIT 1") <= 10
    assert planned.rows(f"{sql} ORDER BY id LIMIT 1") == plain.rows(f"{sql} ORDER BY id LIMIT 1")
    assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize("number", range(10))
def test_random_queries(number: int) -> None:
    source = random.Random(number)
    planned, plain = both_ways(grouped_table(source, groups=5))
    texts = {F: "true", S: "2", "llm_map('m', x)": "'none'", "llm_int('i', x)": "5"}

    def window() -> str:
        value = source.choice([*texts, f"{S} + n", f"CASE WHEN n = 1 THEN {F} END", "n", "x"])
        name = source.choice(["lag", "lag", "lead", "first_value", "last_value"])
        order = f"{source.choice(['', 'PARTITION BY k '])}ORDER BY {source.choice(['', 'n, '])}id"
        more = ""
        if name in ("lag", "lead"):
            more = source.choice(["", "", f", {source.choice([0, 1, 2, -1])}"])
            if more and value in texts:
                more += source.choice(["", f", {texts[value]}", ", NULL"])
        return f"{name}({value}{more}) OVER ({order}{source.choice(['', ' DESC'])})"

    for _ in range(12):
        shown = [window() for _ in range(source.choice([1, 1, 2]))]
        shown += source.sample([*texts, "k", f"coalesce({S}, n)"], source.choice([0, 1, 2]))
        named = ", ".join(f"{e} AS c{i}" for i, e in enumerate(shown))
        sql = f"SELECT id, {named} FROM t{source.choice(['', f' WHERE {F}', ' WHERE n > 0'])}"
        sql = source.choice(
            [
                sql,
                f"{sql} ORDER BY id LIMIT 3",
                f"{sql} ORDER BY id DESC LIMIT 2 OFFSET 1",
                f"SELECT * FROM ({sql}) WHERE id < 5",
                f"SELECT id FROM ({sql}) WHERE c0 IS NULL",
                f"SELECT c0, count(*) AS n FROM ({sql}) GROUP BY c0",
            ]
        )
        assert planned.session.sql(sql).prepared.reason is None, sql
        planned.asked(sql)
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql)), sql
