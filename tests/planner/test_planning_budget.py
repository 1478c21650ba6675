"""The rules of a plan end: in time, and in number. What they have not finished stays right."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest
from scripts import Counted, hashed
from time_limit import within

from blendfusion.planner import driver, rule_time
from blendfusion.planner.ir.builders import filter_rows, function
from blendfusion.planner.ir.nodes import Block, Field, Plan
from blendfusion.planner.rules import Rule

SETTLES = """
WITH c AS (SELECT x AS y, b FROM t WHERE llm_filter('w', x) ORDER BY llm_int('k', x) LIMIT 2)
SELECT avg(llm_int('i', e.y)) AS m, count(DISTINCT a.x) AS n
FROM c e LEFT JOIN t a ON e.y = a.x JOIN c d ON e.b WHERE llm_filter('q', a.x)"""

QUERIES = (
    SETTLES,
    "SELECT id FROM t WHERE llm_filter('q', x) AND id > 2 ORDER BY id LIMIT 3",
    "SELECT t.id FROM t LEFT JOIN t u ON u.id = t.id AND llm_filter('q', u.x) WHERE t.id < 3",
    "SELECT b, count(*) AS n FROM t WHERE llm_filter('q', x) GROUP BY b HAVING count(*) > 1",
    "SELECT llm_same(x) AS s, count(*) AS n FROM t GROUP BY 1",
    "SELECT id FROM t WHERE id NOT IN (SELECT id FROM t WHERE llm_filter('q', x))",
    "SELECT a.id FROM t a JOIN t b ON llm_int('k', a.x) = llm_int('l', b.x) WHERE b.id < 3",
)


@pytest.fixture
def db() -> Counted:
    rows = {"id": [*range(8)], "x": [f"v{i}" for i in range(8)], "b": [i < 5 for i in range(8)]}
    return Counted(hashed).add("t", pa.table(rows))


def ticks(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """A clock that goes on by so many seconds each time that it is read."""
    readings: Iterator[int] = count()
    monkeypatch.setattr(rule_time, "seconds_of_thread", lambda: next(readings) * seconds)


def test_a_query_of_several_tables_settles(db: Counted) -> None:
    with within(20, SETTLES):
        frame = db.session.sql(SETTLES)
        assert not frame.prepared.unfinished
        assert sum(rewrite.times for rewrite in frame.prepared.rewrites) < 40


@pytest.mark.parametrize("sql", QUERIES)
@pytest.mark.parametrize("seconds", [0.0, 0.005, 0.02, 0.05, 0.1, 0.3])
def test_a_plan_is_right_wherever_its_rules_end(
    db: Counted, sql: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = sorted(db.rows(sql), key=repr)
    ticks(monkeypatch, seconds)
    frame = db.session.sql(sql)
    assert frame.prepared.reason is None
    assert frame.prepared.unfinished == (seconds > 0.2) or 0 < seconds < 0.2
    assert sorted(db.rows(sql), key=repr) == wanted


def test_explain_names_an_unfinished_plan(db: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Unfinished" not in db.session.sql(QUERIES[1]).explain_text()
    ticks(monkeypatch, 0.3)
    text = db.session.sql(QUERIES[1]).explain_text()
    assert "Unfinished plan: its rules had no time left" in text
    assert "planning_ms" in text


def test_zero_is_no_limit(db: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks(monkeypatch, 10.0)
    db.session.sql("SET blendfusion.planning_ms = 0")
    assert not db.session.sql(QUERIES[1]).prepared.unfinished


def test_collections_of_garbage_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks(monkeypatch, 1.0)
    with rule_time.limited_to(2_500) as time:  # reading 0
        gc.collect()  # readings 1 and 2
        assert not time.is_over()  # reading 3: 3 s, less 1 s
        assert time.is_over()
    assert time.note not in gc.callbacks


def test_rules_that_never_settle_end(db: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that always finds something to do is stopped after a number of rewrites."""

    def grows(plan: Plan) -> Plan:
        assert isinstance(plan, Block)
        source = filter_rows(plan.source, (function("is_not_null", (Field(0),)),))
        return replace(plan, source=source)

    rules = (*driver.RULES, Rule("grows", grows, ("block",)))
    monkeypatch.setattr(driver, "RULES", rules)
    with within(30, "a rule that never settles"):
        frame = db.session.sql(QUERIES[1])
        assert frame.prepared.unfinished
        assert frame.prepared.reason is None
        assert len(db.rows(QUERIES[1])) <= 3
