"""Queries on which stock DataFusion asks too much, each with the number of values that must do.

8,000 rows in one batch; ``id`` is distinct, ``k = id % 100``; every 40th id stands in ``few``.
"""

from __future__ import annotations

import pyarrow as pa
import pytest
from scripts import Counted, unordered

import blendfusion as bf

N = 8_000


def seventh(call: bf.Request) -> bool | int:
    """Yes for every seventh number, to whatever is asked."""
    number = sum(int(value or 0) for value in call.values)
    return number % 7 == 0 if call.constraint.kind == "boolean" else number % 7


def tables(counted: Counted) -> Counted:
    ids = list(range(N))
    counted.add("t", pa.table({"id": ids, "k": [i % 100 for i in ids], "c": ids[::-1]}))
    counted.add("few", pa.table({"fid": ids[::40], "w": [i % 3 for i in ids[::40]]}))
    return counted


@pytest.fixture(scope="module")
def planned() -> Counted:
    counted = tables(Counted(seventh))
    # The written order of predicates, so that what is asked is one number.
    counted.session.sql("SET blendfusion.rules_off = 'predicate_order'")
    return counted


@pytest.fixture(scope="module")
def plain() -> Counted:
    return tables(Counted(seventh, planner=False))


LLM = "llm_filter('seventh?', id)"

PROBES = {
    "cheap predicate first": (f"SELECT id FROM t WHERE k < 10 AND {LLM}", 800),
    "cheap predicate that keeps more than a fifth": (
        f"SELECT id FROM t WHERE k < 30 AND {LLM}",
        2_400,
    ),
    "cheap predicate that keeps most": (f"SELECT id FROM t WHERE k < 90 AND {LLM}", 7_200),
    "call written first": (f"SELECT id FROM t WHERE {LLM} AND k < 10", 800),
    "filter over a filtered subquery": (
        f"SELECT id FROM (SELECT * FROM t WHERE k < 30) AS s WHERE {LLM}",
        2_400,
    ),
    "three conjuncts": (f"SELECT id FROM t WHERE k < 30 AND {LLM} AND k <> 5", 2_320),
    "OR with a wide cheap side": (f"SELECT id FROM t WHERE k < 98 OR {LLM}", 160),
    "OR with a narrow cheap side": (f"SELECT id FROM t WHERE k IN (1, 2) OR {LLM}", 7_840),
    "selected and filtered": (f"SELECT id, {LLM} AS x FROM t WHERE {LLM}", 8_000),
    "join that keeps 2.5 %": (f"SELECT id FROM t JOIN few ON id = fid WHERE {LLM}", 200),
    "predicate over both sides of a join": (
        "SELECT id FROM t JOIN few ON id = fid WHERE llm_filter('seventh?', id, w)",
        200,
    ),
    "EXISTS that keeps 2.5 %": (
        f"SELECT id FROM t WHERE EXISTS (SELECT 1 FROM few WHERE fid = id) AND {LLM}",
        200,
    ),
    "self join with a call on both sides": (
        "SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.c "
        "WHERE llm_filter('seventh?', a.id) AND llm_filter('seventh?', b.id)",
        8_000,
    ),
    "projection above a cheap order and limit": (
        "SELECT llm_int('mod?', id) FROM t ORDER BY c LIMIT 5",
        5,
    ),
    "projection above a limit": ("SELECT llm_int('mod?', id) FROM t ORDER BY id LIMIT 5", 5),
    "projection above a bare limit": ("SELECT llm_int('mod?', id) FROM t LIMIT 5", 5),
    "repeated values": ("SELECT id FROM t WHERE llm_filter('seventh?', k)", 100),
    "grouped before asked": (
        "SELECT k, llm_int('mod?', k) FROM (SELECT k, count(*) FROM t GROUP BY k)",
        100,
    ),
    "derived column and a cheap predicate": (
        f"SELECT id FROM (SELECT id, k, {LLM} AS x FROM t) AS s WHERE x AND k < 10",
        800,
    ),
    "one call in two aggregates": (
        "SELECT sum(llm_int('mod?', id)), max(llm_int('mod?', id)) FROM t",
        8_000,
    ),
}


@pytest.mark.parametrize("title", PROBES)
def test_the_ideal_number_of_values_is_asked(title: str, planned: Counted, plain: Counted) -> None:
    sql, ideal = PROBES[title]
    assert planned.asked(sql) == ideal
    if "bare limit" not in title:
        assert unordered(planned.rows(sql)) == unordered(plain.rows(sql))


@pytest.mark.parametrize("title", PROBES)
def test_a_new_row_asks_at_most_one_value_a_question(title: str, planned: Counted) -> None:
    for asked in planned.asked_for_a_new_row(PROBES[title][0]):
        assert max(asked.values(), default=0) <= 1


def test_a_limit_stops_soon_after_its_last_row(planned: Counted) -> None:
    sql = f"SELECT id FROM t WHERE {LLM} LIMIT 5"
    # The fifth seventh is row 29; the chunks that find it may overshoot a little.
    assert 29 <= planned.asked(sql) <= 35
    assert planned.rows(sql) == [(0,), (7,), (14,), (21,), (28,)]
