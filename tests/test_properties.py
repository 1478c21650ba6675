"""What holds of every query: the planner changes what is asked, never what comes out."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import DataFrame
from datafusion.substrait import Producer
from hypothesis import given, note, settings
from hypothesis import strategies as st
from queries import CHEAP_T, CHEAP_U, P_T, SHAPES, T_COLUMNS, U_COLUMNS, VALUE_T, Query, tables
from scripts import Counted, tuples, unordered

import blendfusion as bf
from blendfusion.datafusion.substrait.read import read
from blendfusion.planner.driver import rewrite
from blendfusion.planner.ir.traversal import transform
from blendfusion.planner.rules import RULES

pytestmark = [
    pytest.mark.slow,
    # Random conditions are impossible now and then, which is said once a process.
    pytest.mark.filterwarnings("ignore:.*is true for no answer:blendfusion.errors.PlanWarning"),
]

T = tables(T_COLUMNS, "id")
U = tables(U_COLUMNS, "uid")
VIEW = (
    "CREATE VIEW seen AS SELECT id, a, n, flag, llm_map('t1', a) AS v, llm_filter('q2', b) AS y "
    "FROM t WHERE id % 3 < 2 AND llm_filter('q1', a)"
)
ROW_WISE = {"filter", "select", "derived", "view", "ordered", "top_then_ask", "distinct", "whole"}
"""Shapes of one table, where DataFusion has no second side that may turn out to be empty."""
ANY_SHAPE = st.one_of(*SHAPES.values())
OPTIONAL = [rule.name for rule in RULES if not rule.required]


def over(t: pa.Table, u: pa.Table, **options: object) -> Counted:
    counted = Counted(**options).add("t", t).add("u", u)
    counted.session.sql(VIEW)
    return counted


def result(counted: Counted, query: Query) -> tuple[pa.Schema, list[tuple[object, ...]]]:
    table = counted.session.sql(query.sql).to_arrow_table()
    rows = tuples(table)
    return table.schema, rows if query.ordered else unordered(rows)


def asked(counted: Counted) -> list[tuple[object, object]]:
    return [(call.task, call.values) for call in counted.model.calls]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_planner_never_changes_rows_or_types_and_asks_nothing_twice(shape: str) -> None:
    @settings(max_examples=14)
    @given(t=T, u=U, query=SHAPES[shape])
    def check(t: pa.Table, u: pa.Table, query: Query) -> None:
        note(query.sql)
        plain = over(t, u, planner=False)
        planned = over(t, u, first_chunk_rows=2, chunk_rows=5)
        assert planned.session.sql(query.sql).prepared.reason is None
        assert not asked(planned), "building a frame asked a model"
        assert result(planned, query) == result(plain, query)
        assert len(asked(planned)) == len(set(asked(planned)))
        if shape in ROW_WISE:
            # In the written order: another may ask a predicate of rows that the written one spares.
            as_written = over(t, u)
            as_written.session.sql("SET blendfusion.rules_off = 'predicate_order'")
            assert result(as_written, query) == result(plain, query)
            assert set(asked(as_written)) <= set(asked(plain))

    check()


@pytest.mark.long
@pytest.mark.parametrize("rule", OPTIONAL)
def test_every_optional_rule_can_be_switched_off_without_changing_rows(
    rule: str, cases: int
) -> None:
    @settings(max_examples=max(8, cases // 125))
    @given(t=T, u=U, query=ANY_SHAPE)
    def check(t: pa.Table, u: pa.Table, query: Query) -> None:
        note(query.sql)
        without = over(t, u)
        without.session.sql(f"SET blendfusion.rules_off = '{rule}'")
        assert without.session.sql(query.sql).prepared.reason is None
        assert result(without, query) == result(over(t, u, planner=False), query)

    check()


@given(query=ANY_SHAPE)
def test_rules_do_not_fire_on_their_own_output(query: Query) -> None:
    note(query.sql)
    empty = over(
        pa.schema([("id", pa.int64()), *((n, k) for n, (k, _) in T_COLUMNS.items())]).empty_table(),
        pa.schema(
            [("uid", pa.int64()), *((n, k) for n, (k, _) in U_COLUMNS.items())]
        ).empty_table(),
    )
    frame = empty.session.sql(query.sql)
    data = Producer.to_substrait_plan(DataFrame.optimized_logical_plan(frame), empty.session)
    # The last rules go over a plan once, and leave what others might take up again.
    plan = rewrite(read(data.encode()), off={rule.name for rule in RULES if rule.last}).root.plan
    for rule in RULES:
        if not rule.last:
            assert transform(plan, rule.apply) is plan, rule.name


@given(t=T, u=U, cheap=st.sampled_from(CHEAP_T), value=VALUE_T)
def test_a_filter_asks_no_more_than_the_distinct_values_that_pass_the_cheap_part(
    t: pa.Table, u: pa.Table, cheap: str, value: str
) -> None:
    planned = over(t, u)
    survivors = planned.number(f"SELECT count(DISTINCT a) FROM t WHERE {cheap} AND trim(a) <> ''")
    assert planned.asked(f"SELECT id FROM t WHERE llm_filter('q1', a) AND {cheap}") == survivors
    assert planned.asked(f"SELECT id FROM t WHERE NOT ({cheap}) IS NOT TRUE AND "
                         "llm_filter('q1', a)") == survivors  # fmt: skip
    asked_by_or = planned.asked(f"SELECT id FROM t WHERE llm_filter('q1', a) OR {cheap}")
    assert asked_by_or == planned.number(
        f"SELECT count(DISTINCT a) FROM t WHERE ({cheap}) IS NOT TRUE AND trim(a) <> ''"
    )


@given(t=T, u=U, cheap=st.sampled_from(CHEAP_T), other=st.sampled_from(CHEAP_U))
def test_a_join_asks_no_more_than_the_distinct_values_that_survive_it(
    t: pa.Table, u: pa.Table, cheap: str, other: str
) -> None:
    planned = over(t, u)
    sides = f"FROM t JOIN u ON n = ref WHERE {cheap} AND {other}"
    survivors = planned.number(f"SELECT count(DISTINCT a) {sides} AND trim(a) <> ''")
    assert planned.asked(f"SELECT id, uid {sides} AND llm_filter('q1', a)") == survivors
    assert planned.asked(f"SELECT id, llm_filter('q1', a) {sides}") == survivors
    exists = f"FROM t WHERE {cheap} AND EXISTS (SELECT 1 FROM u WHERE n = ref AND {other})"
    assert planned.asked(f"SELECT id {exists} AND llm_filter('q1', a)") == survivors


@given(t=T, u=U, predicate=P_T, k=st.integers(0, 5), skip=st.integers(0, 4))
def test_a_limit_over_a_filter_gives_the_first_rows_and_asks_no_more_than_without(
    t: pa.Table, u: pa.Table, predicate: str, k: int, skip: int
) -> None:
    planned = over(t, u, first_chunk_rows=1)
    sql = f"SELECT id FROM (SELECT * FROM t ORDER BY id) AS s WHERE {predicate}"
    everything = planned.rows(f"{sql} ORDER BY id")
    assert planned.rows(f"{sql} ORDER BY id LIMIT {k} OFFSET {skip}") == everything[skip : skip + k]
    assert planned.asked(f"{sql} ORDER BY id LIMIT {k} OFFSET {skip}") <= planned.asked(sql)


@given(t=T, u=U, predicates=st.lists(P_T, min_size=2, max_size=4))
@settings(max_examples=40)
def test_a_second_run_asks_nothing_whatever_order_the_first_has_learned(
    t: pa.Table, u: pa.Table, predicates: list[str]
) -> None:
    planned = over(t, u, first_chunk_rows=2, chunk_rows=5)
    query = Query(f"SELECT id FROM t WHERE {' AND '.join(predicates)}")
    note(query.sql)
    first = result(planned, query)
    planned.model.calls.clear()
    assert result(planned, query) == first
    assert asked(planned) == []


@given(t=T, u=U, query=ANY_SHAPE)
@settings(max_examples=20)
def test_a_second_run_asks_nothing(t: pa.Table, u: pa.Table, query: Query) -> None:
    planned = over(t, u, first_chunk_rows=2, chunk_rows=5)
    first = result(planned, query)
    planned.model.calls.clear()
    assert result(planned, query) == first
    assert asked(planned) == []
    assert isinstance(planned.session, bf.Session)
