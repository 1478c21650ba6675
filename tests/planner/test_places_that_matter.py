"""An answer that orders or numbers rows is asked for only where it decides between rows, and one
that a row is chosen from only for that row; the values are counted in Python, rows compared with
plain SQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest
from amounts import long_after
from scripts import Counted, both_ways, unordered

import blendfusion as bf

N = 40
Row = dict[str, object]


def _table() -> dict[str, list[object]]:
    source = random.Random(7)
    return {
        "id": [*range(N)],
        "a": [source.choice([None, 1, 2, 3, 4, 5]) for _ in range(N)],
        "b": [source.choice([None, 0.5, -0.5, 2.0]) for _ in range(N)],
        "day": [i // 2 for i in range(N)],
        "x": [source.choice([None, *(f"v{j}" for j in range(25))]) for _ in range(N)],
    }


TABLE = _table()
ROWS = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]


@pytest.fixture
def sessions() -> tuple[Counted, Counted]:
    return both_ways(TABLE)


def _asked(sessions: tuple[Counted, Counted], sql: str, *, ordered: bool = True) -> int:
    """The values that a query asks, whose rows are those of plain SQL."""
    planned, plain = sessions
    assert planned.session.sql(sql).prepared.reason is None
    asked = planned.asked(sql)
    rows = planned.rows(sql), plain.rows(sql)
    assert rows[0] == rows[1] if ordered else unordered(rows[0]) == unordered(rows[1])
    return asked


# --- orders --------------------------------------------------------------------------------------

CALLS = {"llm_score('f', x)": "f", "llm_int('g', x)": "g"}
CHEAP = {"a": "a", "b": "b", "day": "day", "a + 1": "a", "day / 4": "day4"}


def _answers(db: Counted) -> dict[str, dict[object, object]]:
    return {
        call: dict(db.rows(f"SELECT DISTINCT x, {call} AS v FROM t"))  # type: ignore[arg-type]
        for call in CALLS
    }


def _place(value: object, *, down: bool, nulls_first: bool) -> tuple[bool, float]:
    if value is None:
        return not nulls_first, 0.0
    return nulls_first, float(value) * (-1 if down else 1)  # type: ignore[arg-type]


def _value(row: Row, key: str, answers: dict[str, dict[object, object]]) -> object:
    if key in CALLS:
        return answers[key][row["x"]]
    if key == "day / 4":
        return row["day"] // 4  # type: ignore[operator]
    return row[CHEAP.get(key, key)]


def _needed(
    rows: Sequence[Row],
    keys: Sequence[tuple[str, bool, bool]],
    wanted: range,
    answers: dict[str, dict[object, object]],
) -> set[tuple[str, object]]:
    """The questions that decide which rows stand at the places ``wanted``, and in which order."""
    found: set[tuple[str, object]] = set()

    def prefix(n: int) -> Callable[[Row], list[tuple[bool, float]]]:
        return lambda row: [
            _place(_value(row, key, answers), down=down, nulls_first=first)
            for key, down, first in keys[:n]
        ]

    for n, (key, _, _) in enumerate(keys):
        if key not in CALLS or key in [k for k, _, _ in keys[:n]]:
            continue
        start = 0
        for _, members in groupby(sorted(rows, key=prefix(n)), prefix(n)):
            group = [*members]
            end = start + len(group)
            if n == 0 or (len(group) > 1 and start < wanted.stop and end > wanted.start):
                found |= {(key, row["x"]) for row in group if row["x"] is not None}
            start = end
    return found


def _random_keys(source: random.Random) -> list[tuple[str, bool, bool]]:
    names = source.sample([*CHEAP, *CALLS], source.randint(2, 4))
    if not CALLS.keys() & {*names}:
        names.append(source.choice([*CALLS]))
    keys = []
    for name in [*names, "id"]:
        down = source.random() < 0.4
        # DESC by an answer is NULLS LAST here.
        keys.append((name, down, name not in CALLS and source.random() < 0.5))
    return keys


def _written(keys: Sequence[tuple[str, bool, bool]]) -> str:
    return ", ".join(
        f"{name} {'DESC' if down else 'ASC'} NULLS {'FIRST' if first else 'LAST'}"
        for name, down, first in keys
    )


@pytest.mark.parametrize("part", long_after(2, range(4)))
def test_random_orders(sessions: tuple[Counted, Counted], part: int, cases: int) -> None:
    answers = _answers(sessions[0])
    for number in range(part, cases // 10, 4):
        source = random.Random(number)
        keys = _random_keys(source)
        offset, count = source.choice([0, 0, 3, 11]), source.choice([1, 2, 5, 9, None])
        limit = "" if count is None else f" LIMIT {count}"
        sql = f"SELECT id FROM t ORDER BY {_written(keys)}{limit}"
        sql += f" OFFSET {offset}" if offset else ""
        wanted = range(offset, N if count is None else offset + count)
        assert _asked(sessions, sql) == len(_needed(ROWS, keys, wanted, answers)), sql


@pytest.mark.parametrize("part", range(2))
def test_random_numbers_of_partitions(
    sessions: tuple[Counted, Counted], part: int, cases: int
) -> None:
    answers = _answers(sessions[0])
    for number in range(part, cases // 20, 2):
        source = random.Random(number)
        keys = _random_keys(source)
        count = source.choice([1, 2, 4])
        numbered = f"row_number() OVER (PARTITION BY a ORDER BY {_written(keys)})"
        sql = f"SELECT id, {numbered} AS n FROM t QUALIFY n <= {count}"
        needed: set[tuple[str, object]] = set()
        for a in {*TABLE["a"]}:
            rows = [row for row in ROWS if row["a"] == a]
            needed |= _needed(rows, keys, range(count), answers)
        assert _asked(sessions, sql, ordered=False) == len(needed), sql


S = "llm_score('s', x)"


@pytest.mark.parametrize(
    ("sql", "asked"),
    [  # each day has two rows
        (f"SELECT id, {S} AS s FROM t WHERE x IS NOT NULL ORDER BY id, s LIMIT 3", 3),
        (f"SELECT id FROM (SELECT id, {S} AS s FROM t) ORDER BY id, s, id LIMIT 3", 0),
        (f"SELECT id FROM t ORDER BY day, {S} + 1 DESC, id LIMIT 1", 2),
        (f"SELECT id FROM t ORDER BY day, -{S}, abs({S}), id LIMIT 1", 2),
        (f"SELECT id FROM t ORDER BY day, CASE WHEN id > 0 THEN {S} END, id LIMIT 1", 1),
        (f"SELECT id, llm_map('m', x) AS m FROM t ORDER BY day, {S}, id LIMIT 1", 3),
        (f"SELECT id FROM (SELECT * FROM t ORDER BY day, {S}, id LIMIT 1) WHERE id < 99", 2),
        (f"SELECT sum(id) AS n FROM (SELECT id FROM t ORDER BY day, {S}, id LIMIT 2)", 2),
        (f"(SELECT id FROM t ORDER BY day, {S}, id LIMIT 1) UNION ALL "
         f"(SELECT id FROM t ORDER BY day DESC, {S}, id LIMIT 1) ORDER BY id", 4),
        ("SELECT day, count(*) AS n FROM t GROUP BY day ORDER BY day, llm_score('d', day::text) "
         "LIMIT 3", 0),
        ("SELECT u.id FROM t JOIN t u ON t.id = u.id ORDER BY t.day, llm_score('s', u.x), u.id "
         "LIMIT 1", 2),
        ("SELECT id FROM t WHERE llm_score('p', x) >= 0 ORDER BY day, llm_score('p', x), id "
         "LIMIT 1", 2),
        (f"SELECT id, rank() OVER (PARTITION BY day / 4 ORDER BY day, {S}) AS n FROM t "
         "WHERE id < 8 QUALIFY n = 1", 2),
        (f"SELECT id, dense_rank() OVER (PARTITION BY day / 4 ORDER BY day, {S}) AS n FROM t "
         "WHERE id < 8 QUALIFY n < 3", 4),
        (f"SELECT id, lead(id) OVER (ORDER BY day, {S}, id) AS m, "
         f"row_number() OVER (ORDER BY day, {S}, id) AS n FROM t WHERE id < 4 QUALIFY n = 1", 4),
        (f"SELECT id, {S} AS s FROM t WHERE id IN (2, 3, 5, 7) "
         f"QUALIFY row_number() OVER (PARTITION BY id % 2 ORDER BY day, {S}) = 1", 2),
        (f"SELECT id, s FROM (SELECT id, s, row_number() OVER (ORDER BY day, s, id) AS n "
         f"FROM (SELECT *, {S} AS s FROM t WHERE id < 8)) WHERE n = 1", 2),
        (f"SELECT id, s FROM (SELECT id, s, row_number() OVER (ORDER BY day, s, id) AS n "
         f"FROM (SELECT *, {S} AS s FROM t WHERE id < 8)) WHERE n = 1 AND s > 0", 8),
    ],
)  # fmt: skip
def test_answers_that_break_ties(sessions: tuple[Counted, Counted], sql: str, asked: int) -> None:
    distinct = [f"w{i}" for i in range(N)]
    for db in sessions:
        db.session.deregister_table("t")
        db.add("t", {**TABLE, "x": distinct})
    assert _asked(sessions, sql, ordered="ORDER BY day" in sql) == asked


def test_a_volatile_key_leaves_all_rows_to_the_model(sessions: tuple[Counted, Counted]) -> None:
    planned, _ = sessions
    texts = {x for x in TABLE["x"] if x is not None}
    assert planned.asked(f"SELECT id FROM t ORDER BY random(), {S} LIMIT 1") == len(texts)


def test_predicates_are_asked_in_the_order_of_the_first_keys() -> None:
    """The days of the first two rows that pass are days 1 and 2: their rows, and those before."""

    def script(call: bf.Request) -> bool | float:
        number = int(call.values[0][1:])
        return number not in (0, 1, 2) if call.question == "p" else number % 7

    planned = Counted(script).add("t", {**TABLE, "x": [f"w{i}" for i in range(N)]})
    sql = "SELECT id FROM t WHERE llm_filter('p', x) ORDER BY day, llm_score('s', x), id LIMIT 2"
    assert planned.asked(sql) == 6 + 2
    assert planned.rows(sql) == [(3,), (4,)]


# --- values of one row ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (f"SELECT DISTINCT ON (a) a, {S} AS s FROM t ORDER BY a, id", 6),
        (f"SELECT DISTINCT ON (a) a, {S} AS s FROM t ORDER BY a, id DESC LIMIT 2", 2),
        (f"SELECT a, first_value({S} ORDER BY id) AS s FROM t GROUP BY a", 6),
        (f"SELECT a, last_value({S} ORDER BY day, id) AS s FROM t GROUP BY a", 6),
        (f"SELECT a, nth_value({S}, 2 ORDER BY id) AS s FROM t GROUP BY a", 6),
        (f"SELECT a, nth_value({S}, 40 ORDER BY id) AS s FROM t GROUP BY a", 0),
        (f"SELECT a, nth_value(coalesce({S}, -1), 40 ORDER BY id) AS s FROM t GROUP BY a", 0),
        (f"SELECT first_value(coalesce({S}, -1) ORDER BY id) AS s FROM t WHERE id < 0", 0),
        (f"SELECT a, first_value({S} * id ORDER BY id) FILTER (WHERE a > 3) AS s FROM t GROUP BY a",
         2),
        (f"SELECT a, first_value({S} ORDER BY id) AS s, count(*) AS n FROM t GROUP BY a "
         "HAVING count(*) < 0", 0),
        (f"SELECT a, first_value({S} ORDER BY id) AS s FROM t GROUP BY ROLLUP (a)", 6),
        (f"SELECT a, first_value({S} ORDER BY {S}, id) AS s FROM t WHERE id < 9 GROUP BY a", 9),
        (f"SELECT a, first_value({S} ORDER BY id) AS s, max({S}) AS m FROM t GROUP BY a", 40),
        (f"SELECT a, first_value({S} ORDER BY llm_int('o', x), id) AS s FROM t GROUP BY a", 46),
        ("SELECT a, first_value(llm_map('m', x, b) ORDER BY id) AS s FROM t GROUP BY a", 6),
        (f"SELECT id, first_value({S}) OVER (PARTITION BY a ORDER BY id) AS s FROM t", 6),
        (f"SELECT id, coalesce(nth_value({S} + id, 2) OVER (PARTITION BY a ORDER BY id), -1) AS s "
         "FROM t", 6),
        (f"SELECT id, last_value({S}) OVER (ORDER BY id) AS s FROM t", 40),
        (f"SELECT id, {S} - first_value({S}) OVER (PARTITION BY a ORDER BY id) AS s FROM t "
         "WHERE id < 20", 20),
        (f"SELECT id, first_value({S}) OVER (PARTITION BY a ORDER BY {S}, id) AS s FROM t "
         "WHERE id < 20", 20),
        (f"SELECT id, first_value({S}) OVER (PARTITION BY a ORDER BY id) AS s, "
         f"avg({S}) OVER (PARTITION BY a) AS m FROM t WHERE id < 20", 20),
        (f"SELECT id FROM t QUALIFY first_value({S}) OVER (PARTITION BY a ORDER BY id) > 3", 6),
    ],
)  # fmt: skip
def test_values_of_one_row(sessions: tuple[Counted, Counted], sql: str, asked: int) -> None:
    for db in sessions:
        db.session.deregister_table("t")
        db.add("t", {**TABLE, "x": [f"w{i}" for i in range(N)]})
    assert _asked(sessions, sql, ordered=False) == asked


def test_ties_of_a_union_with_a_constant_key_are_planned(sessions: tuple[Counted, Counted]) -> None:
    branches = " UNION ALL ".join(
        f"SELECT {n} AS side, id, x FROM t WHERE id % 2 = {n}" for n in (0, 1)
    )
    asked = _asked(
        sessions, f"SELECT id FROM ({branches}) ORDER BY side, llm_score('f', x), id LIMIT 3"
    )

    assert 0 < asked <= len({x for x in TABLE["x"] if x is not None})
