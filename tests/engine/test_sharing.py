"""One question is asked once, whatever functions put it, wherever they stand."""

from __future__ import annotations

import pyarrow as pa
import pytest
from scripts import Counted, hashed

import blendfusion as bf

QUERIES = {
    "a filter and a projection": "SELECT llm_bool('q', x) FROM t WHERE llm_filter('q', x)",
    "llm_map in a predicate's place": "SELECT llm_filter('q', x) FROM t WHERE llm_map('q', x)",
    "two branches of a union": "SELECT id FROM t WHERE llm_filter('q', x) UNION ALL "
    "SELECT id FROM t WHERE NOT llm_bool('q', x)",
    "a filter and an aggregate's FILTER": "SELECT count(*) FILTER (WHERE llm_bool('q', x)), "
    "sum(CASE WHEN llm_filter('q', x) THEN 1 END) FROM t",
    "a window and HAVING": "SELECT x, count(*), rank() OVER (ORDER BY llm_bool('q', x)) FROM t "
    "GROUP BY x HAVING llm_filter('q', x) IS NOT NULL",
    "numbers": "SELECT llm_map('n', x) + 1, llm_float('n', x) FROM t WHERE llm_float('n', x) > 2",
    "two CTEs": "WITH a AS (SELECT id FROM t WHERE llm_filter('q', x)), "
    "b AS (SELECT id FROM t WHERE llm_bool('q', x) AND id > 3) "
    "SELECT count(*) FROM a JOIN b ON a.id = b.id",
}


@pytest.fixture
def db() -> Counted:
    return Counted(hashed).add(
        "t", pa.table({"id": range(12), "x": [f"v{i % 5}" for i in range(12)]})
    )


@pytest.mark.parametrize("title", QUERIES)
def test_each_distinct_value_is_asked_once(title: str, db: Counted) -> None:
    assert db.asked(QUERIES[title]) == 5


def test_later_queries_share_too(db: Counted) -> None:
    assert db.asked("SELECT id FROM t WHERE llm_filter('q', x)") == 5
    db.model.calls.clear()
    db.rows("SELECT llm_bool('q', x) FROM t")
    assert not db.model.calls


def test_a_statement_is_no_question(db: Counted) -> None:
    sql = "SELECT llm_validate('q', x), llm_qa('q', x, returns => 'bool') FROM t"
    assert db.asked(sql) == 2


def test_a_second_run_asks_nothing_whatever_order_the_first_has_learned() -> None:
    def script(call: bf.Request) -> bool:
        number = int((call.values[0] or "v0")[1:])
        return number % 3 > 0 if call.question == "drops few" else number % 10 == 0

    db = Counted(script, first_chunk_rows=16, chunk_rows=64)
    db.add("t", pa.table({"id": range(400), "x": [f"v{i}" for i in range(400)]}))
    sql = "SELECT id FROM t WHERE llm_filter('drops few', x) AND llm_filter('drops most', x)"
    first = db.rows(sql)
    asked = [call.question for call in db.model.calls]
    assert asked.count("drops most") == 400 - 6, "all but those that the first chunk spared"
    assert asked.count("drops few") < 100, "the other order was learned"
    db.model.calls.clear()
    assert db.rows(sql) == first
    assert not db.model.calls
