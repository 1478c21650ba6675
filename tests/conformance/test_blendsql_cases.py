"""Queries that BlendSQL promises to answer right and cheaply, in our words, with our numbers.

``holds``, ``starts with``, ``length`` are questions whose answers SQL can give too, so each case
has a twin without calls; what may be asked is counted by plain SQL."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from accounts import DISTINCT_SHOPS, JOINED, accounts
from datafusion import SQLOptions
from scripts import Counted, spoken, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.models.services.prompts.prompt import render


def answered(call: bf.Request) -> Value:
    """``same`` compares two values, ``all`` lists the options, a classification takes the first;
    the rest is ``spoken``'s."""
    if not call.question:
        return min(call.constraint.options)
    if call.question == "same":
        return call.values[0] == call.values[1]
    if call.question == "all":
        return call.constraint.item.options if call.constraint.item else ()
    return spoken(call)


@pytest.fixture(scope="module")
def db() -> Counted:
    return accounts(answered)


@dataclass(frozen=True)
class Case:
    sql: str
    twin: str
    """The same without calls."""
    asked: str
    """SQL that gives the number of values that must be asked."""


def starts(letter: str, column: str) -> str:
    return f"llm_filter('starts with {letter}', {column})"


def length(column: str) -> str:
    return f"llm_int('length', {column})"


CASES = {
    "1 no ingredient": Case(
        "SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE amount > 700)",
        "SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE amount > 700)",
        "SELECT 0",
    ),
    "2 a bare filter with a semicolon": Case(
        f"SELECT * FROM pay WHERE {starts('Z', 'shop')};",
        "SELECT * FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "2 a filter compared with TRUE": Case(
        f"SELECT * FROM pay WHERE {starts('Z', 'shop')} = TRUE",
        "SELECT * FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "3 a call inside an IN subquery": Case(
        "SELECT id FROM pay WHERE shop IN "
        f"(SELECT shop FROM pay WHERE amount > 1000 AND {starts('Z', 'shop')})",
        "SELECT id FROM pay WHERE shop IN "
        "(SELECT shop FROM pay WHERE amount > 1000 AND shop LIKE 'Z%')",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 1000",
    ),
    "4 a conjunct that no row satisfies": Case(
        f"SELECT id FROM pay WHERE ({starts('Z', 'shop')} AND kind = 'none') OR kind = 'Gifts'",
        "SELECT id FROM pay WHERE kind = 'Gifts'",
        "SELECT 0",
    ),
    "5 a gate inside a disjunction": Case(
        f"SELECT id FROM pay WHERE ({starts('Z', 'shop')} AND kind = 'Rent') OR kind = 'Gifts'",
        "SELECT id FROM pay WHERE (shop LIKE 'Z%' AND kind = 'Rent') OR kind = 'Gifts'",
        "SELECT count(DISTINCT shop) FROM pay WHERE kind = 'Rent'",
    ),
    "6 two calls and a gate inside a disjunction": Case(
        f"SELECT id FROM pay WHERE ({starts('Z', 'shop')} AND {starts('R', 'kind')} "
        "AND amount > 900) OR amount < 100",
        "SELECT id FROM pay WHERE (shop LIKE 'Z%' AND kind LIKE 'R%' AND amount > 900) "
        "OR amount < 100",
        "SELECT (SELECT count(DISTINCT shop) FROM pay WHERE amount > 900) + "
        "(SELECT count(DISTINCT kind) FROM pay WHERE amount > 900 AND shop LIKE 'Z%')",
    ),
    "7 selected and filtered is asked once": Case(
        f"SELECT {length('shop')}, shop FROM pay WHERE {length('shop')} > 4",
        "SELECT length(shop), shop FROM pay WHERE length(shop) > 4",
        DISTINCT_SHOPS,
    ),
    "8 aggregated and filtered is asked once": Case(
        f"SELECT max({length('shop')}) FROM pay WHERE {length('shop')} > 1",
        "SELECT max(length(shop)) FROM pay",
        DISTINCT_SHOPS,
    ),
    "9 the same call in two scopes": Case(
        f"SELECT id FROM pay WHERE {length('shop')} > "
        f"(SELECT {length('shop')} FROM pay ORDER BY id LIMIT 1)",
        "SELECT id FROM pay WHERE length(shop) > (SELECT length(shop) FROM pay ORDER BY id LIMIT 1)",
        DISTINCT_SHOPS,
    ),
    "10 four maps under one filter": Case(
        f"SELECT {length('shop')} AS a, {length('kind')} AS b, {length('amount')} AS c, "
        f"{length('id')} AS d FROM pay WHERE amount > 800",
        "SELECT length(shop), length(kind), length(CAST(amount AS TEXT)), length(CAST(id AS TEXT)) "
        "FROM pay WHERE amount > 800",
        "SELECT count(DISTINCT shop) + count(DISTINCT kind) + count(DISTINCT amount) + "
        "count(DISTINCT id) FROM pay WHERE amount > 800",
    ),
    "12 one of some options": Case(
        "SELECT llm_qa('first', shop, options => ['Zara', 'Paypal']) FROM pay",
        "SELECT 'Paypal'",
        "SELECT 1",
    ),
    "12 the options of a subquery": Case(
        "SELECT llm_qa('first', kind, options => "
        "(SELECT shop FROM pay WHERE shop = 'Paypal' OR shop LIKE 'Z%')) FROM pay",
        "SELECT 'Paypal'",
        "SELECT 1",
    ),
    "12 a subquery that leaves one option": Case(
        "SELECT llm_qa('first', kind, options => (SELECT shop FROM pay WHERE shop = 'Paypal')) "
        "FROM pay",
        "SELECT 'Paypal'",
        "SELECT 0",
    ),
    "13 the options of the column that is compared": Case(
        "SELECT id FROM pay WHERE shop = "
        "(SELECT llm_qa('first', kind, options => (SELECT shop FROM pay)) FROM pay)",
        "SELECT id FROM pay WHERE shop = (SELECT shop FROM pay ORDER BY shop LIMIT 1)",
        "SELECT 1",
    ),
    "14 a computed boolean keeps its comparison": Case(
        f"WITH w AS (SELECT shop, amount > 900 AS big FROM pay) "
        f"SELECT shop FROM w WHERE w.big = TRUE AND {starts('Z', 'shop')}",
        "SELECT shop FROM pay WHERE amount > 900 AND shop LIKE 'Z%'",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 900",
    ),
    "15 IN a filtered subquery": Case(
        f"SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE {starts('Z', 'shop')})",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "16 a negation beside a call": Case(
        f"SELECT id FROM pay WHERE shop IS NOT NULL AND {starts('Z', 'shop')}",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "17 a call inside functions": Case(
        f"SELECT id FROM pay WHERE length(CAST({length('shop')} AS TEXT)) = 1 AND shop LIKE 'Z%'",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        "SELECT count(DISTINCT shop) FROM pay WHERE shop LIKE 'Z%'",
    ),
    "18 a call on an expression": Case(
        "SELECT id FROM pay WHERE llm_int('length', shop || ' ' || kind) > 9 "
        f"AND {starts('Z', 'shop')} AND kind LIKE 'R%'",
        "SELECT id FROM pay WHERE length(shop || ' ' || kind) > 9 AND shop LIKE 'Z%' "
        "AND kind LIKE 'R%'",
        "SELECT count(DISTINCT shop || ' ' || kind) + count(DISTINCT CASE WHEN "
        "length(shop || ' ' || kind) > 9 THEN shop END) FROM pay WHERE kind LIKE 'R%'",
    ),
    "19 an aggregate of a call": Case(
        f"SELECT max({length('shop')}) FROM pay",
        "SELECT max(length(shop)) FROM pay",
        DISTINCT_SHOPS,
    ),
    "19 an aggregate of a call under a filter": Case(
        f"SELECT max({length('shop')}) FROM pay WHERE amount > 1200",
        "SELECT max(length(shop)) FROM pay WHERE amount > 1200",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 1200",
    ),
    "20 one row of a cheap order": Case(
        f"SELECT {length('shop')} FROM pay ORDER BY shop LIMIT 1", "SELECT 4", "SELECT 1"
    ),
    "21 three rows of a cheap order": Case(
        f"SELECT {length('shop')} FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3",
        "SELECT length(shop) FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3",
        "SELECT count(DISTINCT shop) FROM "
        "(SELECT shop FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3)",
    ),
    "22 grouped by an alias": Case(
        f"SELECT sum(amount), {length('shop')} AS l FROM pay GROUP BY l ORDER BY sum(amount)",
        "SELECT sum(amount), length(shop) AS l FROM pay GROUP BY l ORDER BY sum(amount)",
        DISTINCT_SHOPS,
    ),
    "24 two CTEs, joined": Case(
        f"WITH a AS (SELECT id, shop FROM pay WHERE {starts('Z', 'shop')}), "
        "b AS (SELECT id AS bid, kind FROM pay WHERE amount > 500) "
        "SELECT * FROM a JOIN b ON a.id = b.bid",
        "SELECT id, shop, id AS bid, kind FROM pay WHERE shop LIKE 'Z%' AND amount > 500",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 500",
    ),
    "25 ordered by a call, with an offset": Case(
        f"SELECT id FROM pay WHERE {starts('Z', 'shop')} ORDER BY {length('shop')}, id "
        "LIMIT 1 OFFSET 2",
        "SELECT id FROM pay WHERE shop LIKE 'Z%' ORDER BY length(shop), id LIMIT 1 OFFSET 2",
        "SELECT count(DISTINCT shop) + count(DISTINCT CASE WHEN shop LIKE 'Z%' THEN shop END) "
        "FROM pay",
    ),
    "26 grouped by an alias, with HAVING": Case(
        f"SELECT {length('shop')} AS l FROM pay WHERE amount > 300 GROUP BY shop, l HAVING l > 4",
        "SELECT length(shop) AS l FROM pay WHERE amount > 300 GROUP BY shop, l HAVING l > 4",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 300",
    ),
    "27 a call in the middle of nested subqueries": Case(
        "SELECT name FROM firm WHERE sym IN (SELECT symbol FROM held WHERE "
        f"{starts('A', 'symbol')} AND account IN (SELECT oid FROM owner WHERE land = 'DE'))",
        "SELECT name FROM firm WHERE sym IN (SELECT symbol FROM held WHERE symbol LIKE 'A%' "
        "AND account IN (SELECT oid FROM owner WHERE land = 'DE'))",
        "SELECT count(DISTINCT symbol) FROM held WHERE account IN (1, 3)",
    ),
    "28 a chosen constant over a join": Case(
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE sector = "
        "(SELECT llm_qa('first', sector, options => ['Tech', 'Energy', 'Health']) FROM firm)",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE sector = 'Energy'",
        "SELECT 1",
    ),
    "29 three tables, a disjunction of calls": Case(
        "SELECT name, who FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        f"WHERE ({length('name')} > 4 OR {starts('Z', 'who')}) AND shares > 2",
        "SELECT name, who FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE (length(name) > 4 OR who LIKE 'Z%') AND shares > 2",
        "SELECT count(DISTINCT who) + count(DISTINCT CASE WHEN (who LIKE 'Z%') IS NOT TRUE "
        "THEN name END) FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE shares > 2",
    ),
    "29 three tables, unqualified, both joins inner": Case(
        "SELECT name, who FROM held JOIN firm ON held.symbol = firm.sym "
        "JOIN owner ON held.account = owner.oid "
        f"WHERE ({length('firm.name')} > 4 OR {starts('Z', 'owner.who')}) AND held.shares > 2",
        "SELECT name, who FROM held JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE (length(name) > 4 OR who LIKE 'Z%') AND shares > 2",
        "SELECT count(DISTINCT name) + count(DISTINCT CASE WHEN length(name) <= 4 THEN who END) "
        "FROM held JOIN firm ON symbol = sym JOIN owner ON account = oid WHERE shares > 2",
    ),
    "31 an answer that is one of a column's values": Case(
        "SELECT DISTINCT shop FROM pay WHERE amount > 500 AND shop = "
        "(SELECT llm_qa('first', shop, options => (SELECT shop FROM pay)) FROM pay)",
        "SELECT 'Aldi'",
        "SELECT 1",
    ),
    "32 unqualified columns": Case(
        "SELECT name FROM held JOIN firm ON symbol = sym "
        f"WHERE shares > 2 AND sector = 'Tech' AND {starts('Z', 'name')} = TRUE",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE shares > 2 AND sector = 'Tech' "
        "AND name LIKE 'Z%'",
        "SELECT count(DISTINCT name) FROM held JOIN firm ON symbol = sym WHERE shares > 2 "
        "AND sector = 'Tech'",
    ),
    "33 a join by an answer": Case(
        "SELECT name, shares FROM held JOIN firm ON llm_filter('same', symbol, sym)",
        "SELECT name, shares FROM held JOIN firm ON symbol = sym",
        "SELECT count(*) FROM (SELECT DISTINCT symbol, sym FROM held, firm)",
    ),
    "34 a join by an answer, and two maps": Case(
        "SELECT name, shares FROM held JOIN firm ON llm_filter('same', symbol, sym) "
        f"WHERE {starts('A', 'symbol')} AND {length('name')} > 3 AND shares > 10",
        "SELECT name, shares FROM held JOIN firm ON symbol = sym WHERE symbol LIKE 'A%' "
        "AND length(name) > 3 AND shares > 10",
        # What one side decides comes before what pairs do.
        "SELECT (SELECT count(DISTINCT symbol) FROM held WHERE shares > 10) + (SELECT count(DISTINCT "
        "name) FROM firm) + (SELECT count(*) FROM (SELECT DISTINCT symbol, sym FROM held, firm "
        "WHERE shares > 10 AND symbol LIKE 'A%' AND length(name) > 3))",
    ),
    "32 filters on both sides of a join": Case(
        f"SELECT shop FROM {JOINED} WHERE amount > 600 AND land = 'DE' AND {starts('Z', 'shop')}",
        f"SELECT shop FROM {JOINED} WHERE amount > 600 AND land = 'DE' AND shop LIKE 'Z%'",
        f"SELECT count(DISTINCT shop) FROM {JOINED} WHERE amount > 600 AND land = 'DE'",
    ),
    "35 a table alias": Case(
        f"SELECT w.symbol FROM held AS w WHERE {starts('A', 'w.symbol')} AND length(w.symbol) > 2",
        "SELECT symbol FROM held WHERE symbol LIKE 'A%' AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) FROM held WHERE length(symbol) > 2",
    ),
    "36 cheap filters inside and outside": Case(
        "SELECT symbol FROM (SELECT DISTINCT symbol FROM held WHERE shares > 2) AS w "
        f"WHERE {starts('Z', 'w.symbol')} AND length(w.symbol) > 2",
        "SELECT DISTINCT symbol FROM held WHERE shares > 2 AND symbol LIKE 'Z%' "
        "AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) FROM held WHERE shares > 2 AND length(symbol) > 2",
    ),
    "37 a context with a CTE of its own": Case(
        "SELECT llm_qa('size', symbol, returns => 'int') FROM (WITH a AS (SELECT symbol FROM held "
        f"WHERE {starts('A', 'symbol')}) SELECT symbol FROM a WHERE length(symbol) > 2)",
        "SELECT count(*) FROM held WHERE symbol LIKE 'A%' AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) + 1 FROM held WHERE length(symbol) > 2",
    ),
    "38 only the CTE that is used": Case(
        f"WITH a AS (SELECT symbol FROM held WHERE {starts('A', 'symbol')}), "
        f"b AS (SELECT shop FROM pay WHERE {starts('Z', 'shop')}), "
        f"c AS (SELECT who FROM owner WHERE {starts('Z', 'who')}) SELECT who FROM c",
        "SELECT who FROM owner WHERE who LIKE 'Z%'",
        "SELECT count(DISTINCT who) FROM owner",
    ),
    "39 the options of a CTE": Case(
        "WITH big AS (SELECT shop AS name FROM pay WHERE amount > 1300) "
        "SELECT llm_qa('first', kind, options => (SELECT name FROM big)) FROM pay",
        "SELECT min(shop) FROM pay WHERE amount > 1300",
        "SELECT 1",
    ),
    "39 the options of a CTE with a call": Case(
        f"WITH z AS (SELECT shop FROM pay WHERE {starts('Z', 'shop')}) "
        "SELECT DISTINCT llm_qa('first', kind, options => (SELECT shop FROM z)) FROM pay",
        "SELECT 'Zalando'",
        "SELECT count(DISTINCT shop) + 1 FROM pay",
    ),
    "40 a map over the result of a CTE's map": Case(
        f"WITH a AS (SELECT symbol, {length('symbol')} AS l FROM held WHERE shares > 2) "
        "SELECT symbol FROM a WHERE l > 2 AND llm_filter('holds Z', symbol) AND symbol <> 'AAA'",
        "SELECT symbol FROM held WHERE shares > 2 AND length(symbol) > 2 AND symbol LIKE '%Z%' "
        "AND symbol <> 'AAA'",
        "SELECT count(DISTINCT symbol) + count(DISTINCT CASE WHEN length(symbol) > 2 THEN symbol "
        "END) FROM held WHERE shares > 2 AND symbol <> 'AAA'",
    ),
    "41 a selected map over a join": Case(
        f"SELECT {length('shop')}, land FROM {JOINED} WHERE amount > 1000 AND land <> 'US'",
        f"SELECT length(shop), land FROM {JOINED} WHERE amount > 1000 AND land <> 'US'",
        f"SELECT count(DISTINCT shop) FROM {JOINED} WHERE amount > 1000 AND land <> 'US'",
    ),
    "42 a derived table, a join and a map": Case(
        "SELECT name FROM (SELECT symbol FROM held WHERE shares > 2) AS w JOIN firm ON symbol = sym "
        f"WHERE {starts('Z', 'name')} AND sector <> 'Health'",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE shares > 2 AND name LIKE 'Z%' "
        "AND sector <> 'Health'",
        "SELECT count(DISTINCT name) FROM held JOIN firm ON symbol = sym WHERE shares > 2 "
        "AND sector <> 'Health'",
    ),
    "42 a derived table, a join by an answer and a map": Case(
        "SELECT name FROM (SELECT symbol FROM held WHERE shares > 2) AS w "
        f"JOIN firm ON llm_filter('same', symbol, sym) WHERE {starts('Z', 'name')} "
        "AND sector <> 'Health'",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE shares > 2 AND name LIKE 'Z%' "
        "AND sector <> 'Health'",
        "SELECT (SELECT count(DISTINCT name) FROM firm WHERE sector <> 'Health') + (SELECT count(*) "
        "FROM (SELECT DISTINCT symbol, sym FROM held, firm WHERE shares > 2 AND name LIKE 'Z%' "
        "AND sector <> 'Health'))",
    ),
    "43 a cascade": Case(
        f"SELECT oid FROM owner WHERE {starts('Z', 'who')} AND {length('land')} = 2 AND oid > 1",
        "SELECT oid FROM owner WHERE who LIKE 'Z%' AND length(land) = 2 AND oid > 1",
        "SELECT count(DISTINCT who) + count(DISTINCT CASE WHEN who LIKE 'Z%' THEN land END) "
        "FROM owner WHERE oid > 1",
    ),
    "44 a disjunction asks only what is open": Case(
        f"SELECT oid FROM owner WHERE (oid > 1 AND {starts('Z', 'who')}) OR {length('land')} = 2",
        "SELECT oid FROM owner WHERE (oid > 1 AND who LIKE 'Z%') OR length(land) = 2",
        "SELECT count(DISTINCT land) + count(DISTINCT CASE WHEN oid > 1 AND "
        "(length(land) = 2) IS NOT TRUE THEN who END) FROM owner",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_rows_are_those_of_plain_sql_and_values_those_that_must_be_asked(
    title: str, db: Counted
) -> None:
    case = CASES[title]
    assert unordered(db.rows(case.sql)) == unordered(db.rows(case.twin))
    assert db.asked(case.sql) == db.number(case.asked)


def test_11_two_subqueries_with_calls_in_a_disjunction(db: Counted) -> None:
    sql = (
        f"SELECT count(*) FROM owner WHERE NOT EXISTS (SELECT 1 FROM pay WHERE {length('shop')} > 9 "
        "AND amount > 500) OR 3 < (SELECT llm_qa('size', sym, returns => 'int') FROM firm)"
    )
    assert db.rows(sql) == [(4,)]
    assert db.asked(sql) == db.number("SELECT count(DISTINCT shop) + 1 FROM pay WHERE amount > 500")


def test_23_an_answer_may_be_the_context_of_another(db: Counted) -> None:
    sql = "WITH a AS (SELECT llm_qa('first', shop) AS v FROM pay) SELECT llm_qa('join', v) FROM a"
    assert db.rows(sql) == [("Aldi",)]
    assert db.asked(sql) == 2


def test_37_a_context_counts_the_rows_that_a_filter_left(db: Counted) -> None:
    sql = (
        "SELECT llm_qa('size', symbol, returns => 'int') FROM held "
        f"WHERE {starts('A', 'symbol')} AND length(symbol) > 2"
    )
    assert db.rows(sql) == [(2,)]
    assert db.asked(sql) == db.number(
        "SELECT count(DISTINCT symbol) + 1 FROM held WHERE length(symbol) > 2"
    )


def test_13_30_a_column_equals_an_answer(db: Counted) -> None:
    sql = "SELECT DISTINCT shop FROM pay WHERE shop = (SELECT llm_qa('first', shop) FROM pay)"
    assert db.rows(sql) == [("Aldi",)]
    assert db.asked(sql) == 1


@pytest.mark.parametrize("k", [1, 3])
def test_45_a_limit_over_a_join_stops_at_its_rows(k: int, db: Counted) -> None:
    sql = f"SELECT shop, land FROM {JOINED} WHERE {length('land')} >= 2 LIMIT {k}"
    assert len(db.rows(sql)) == k
    assert db.asked(sql) <= k
    alias = f"SELECT shop FROM (SELECT shop, {length('land')} AS l FROM {JOINED}) WHERE l >= 2 LIMIT {k}"
    assert len(db.rows(alias)) == k
    assert db.asked(alias) <= k


def test_46_a_limit_over_a_disjunction_gives_a_right_row(db: Counted) -> None:
    sql = f"SELECT oid FROM owner WHERE (oid > 2 AND {starts('Z', 'who')}) OR land = 'FRA' LIMIT 1"
    assert db.rows(sql)[0] in {(2,), (3,), (4,)}
    assert db.asked(sql) <= 1


def test_47_a_cascade_under_a_limit_asks_its_last_call_once(db: Counted) -> None:
    sql = f"SELECT oid FROM owner WHERE {starts('D', 'land')} AND {length('who')} > 1 LIMIT 1"
    assert db.rows(sql) == [(1,)]
    assert db.asked(sql) == 2  # the land and the name of the first row
    alias = (
        f"SELECT oid FROM (SELECT oid, who, {starts('D', 'land')} AS d FROM owner) "
        f"WHERE d AND {length('who')} > 1 LIMIT 1"
    )
    assert db.rows(alias) == [(1,)]
    assert db.asked(alias) == 2


def test_54_answers_belong_to_tuples_not_to_the_first_value(db: Counted) -> None:
    sql = "SELECT llm_map('join', name, age) FROM (VALUES ('Tommy', 24), ('Tommy', 3)) AS t (name, age)"
    assert unordered(db.rows(sql)) == [("Tommy|24",), ("Tommy|3",)]
    assert db.asked(sql) == 2


def constraints(db: Counted, sql: str) -> set[tuple[str, ...]]:
    """The options that a query lets a model choose from."""
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(sql)
    return {call.constraint.options for call in db.model.calls}


def test_31_options_are_not_inferred_from_a_column(db: Counted) -> None:
    sql = "SELECT DISTINCT shop FROM pay WHERE shop = (SELECT llm_qa('first', shop) FROM pay)"
    assert constraints(db, sql) == {()}


def test_48_a_constant_answer_and_a_map_under_a_limit(db: Counted) -> None:
    sql = (
        "SELECT oid FROM owner WHERE who = (SELECT llm_qa('first', who) FROM owner) "
        "AND llm_filter('holds 1', oid) LIMIT 1"
    )
    assert db.rows(sql) == [(1,)]
    assert db.asked(sql) == 2


READ_ONLY = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE pay",
        "DELETE FROM pay WHERE llm_filter('starts with Z', shop)",
        "INSERT INTO owner SELECT 9, llm_map('upper', who), land FROM owner",
        "UPDATE owner SET who = 'Nobody'",
        "CREATE TABLE copied AS SELECT llm_map('upper', shop) FROM pay",
        "CREATE VIEW seen AS SELECT 1",
        "COPY pay TO 'copied.csv'",
        "SET datafusion.execution.batch_size = 1",
    ],
)
def test_49_a_session_can_refuse_all_but_queries(sql: str, db: Counted) -> None:
    with pytest.raises(bf.QueryError, match="not supported"):
        db.session.sql(sql, options=READ_ONLY)
    assert len(db.session.sql(f"SELECT {length('who')} FROM owner", READ_ONLY).to_pylist()) == 4


def test_49_statements_ask_each_value_once(tmp_path: Path) -> None:
    db = Counted(spoken).add("t", {"x": ["ab", "ab", "cde", None]})
    db.session.sql("CREATE TABLE u AS SELECT x, llm_int('length', x) AS n FROM t").collect()
    assert len(db.model.calls) == 2
    assert unordered(db.rows("SELECT n FROM u")) == unordered([(2,), (2,), (3,), (None,)])
    db.session.sql("INSERT INTO u SELECT llm_map('upper', x), 0 FROM t").collect()
    assert unordered(db.rows("SELECT x FROM u WHERE n = 0")) == unordered(
        [("AB",), ("AB",), ("CDE",), (None,)]
    )
    path = tmp_path / "u.parquet"
    db.session.sql(f"COPY (SELECT llm_filter('holds c', x) AS c FROM t) TO '{path}'").collect()
    assert len(db.model.calls) == 6


def test_49_a_created_table_may_take_its_options_from_data() -> None:
    db = Counted(spoken).add("t", {"x": ["ab", "cd"]})
    db.session.sql(
        "CREATE TABLE u AS SELECT llm_map('first', x, options => (SELECT x FROM t)) AS y FROM t"
    )
    assert db.rows("SELECT * FROM u") == [("ab",), ("ab",)]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT llm_mapp('length', shop) FROM pay", "unknown function 'llm_mapp'"),
        ("SELECT llm_map('x', shop, nope => 1) FROM pay", "no option 'nope'"),
        ("SELECT llm_map('x', shop, options => (SELECT id, shop FROM pay)) FROM pay", "2 columns"),
        (
            "SELECT llm_map('x', o.shop, options => (SELECT i.kind FROM pay i WHERE i.id = o.id)) "
            "FROM pay o",
            "unknown column 'o.id'",
        ),
        (
            "SELECT id FROM pay WHERE llm_map('x', shop, options => ['t', 'f']) = TRUE",
            "the option 't' where a boolean is needed",
        ),
        (
            "SELECT sum(llm_map('x', shop, options => ['few', 'many'])) FROM pay",
            "the option 'few' where a number is needed",
        ),
    ],
)
def test_50_what_is_wrong_with_a_call_is_said_before_any_is_made(
    sql: str, message: str, db: Counted
) -> None:
    db.model.calls.clear()
    with pytest.raises(bf.QueryError, match=message):
        db.session.sql(sql)
    assert db.model.calls == []


def test_50_a_name_of_ours_cannot_be_defined_again() -> None:
    with pytest.raises(bf.ArgumentError, match="'llm_map' is an ingredient of BlendFusion"):

        @bf.ingredient
        def llm_map(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
            return text


def test_50_too_many_options_are_refused_before_any_call(db: Counted) -> None:
    db.model.calls.clear()
    sql = "SELECT llm_map('x', shop, options => (SELECT value FROM generate_series(1, 1001))) FROM pay"
    with pytest.raises(bf.QueryError, match="more than 1,000 values"):
        db.rows(sql)
    assert db.model.calls == []


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT llm_map('upper {}', shop) FROM pay", "Zara"),
        ("SELECT llm_map('upper {shop}', shop) FROM pay", "Zara"),
        ("SELECT llm_map('upper', shop || ' ' || kind) FROM pay", "Zara Gifts"),
        ("SELECT llm_map('upper', concat(shop, '/', kind)) FROM pay", "Zara/Gifts"),
        (
            "WITH w AS (SELECT shop || '!' AS line FROM pay) SELECT llm_map('upper', line) FROM w",
            "Zara!",
        ),
        ("SELECT llm_map('upper', shares) FROM held", "60"),
        (
            "WITH w AS (SELECT who AS name FROM owner) SELECT llm_qa('first {name}', name) FROM w",
            "Ann",
        ),
    ],
)
def test_51_a_question_is_put_with_the_values_that_it_points_at(
    sql: str, shown: str, db: Counted
) -> None:
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(sql)
    asked = [render(call.task).ask(call.values) for call in db.model.calls]
    assert any(shown in text for text in asked)
    assert not any("{" in text for text in asked)


SETS = {
    "literals": "['b', 'a']",
    "a tuple": "('b', 'a')",
    "a column": "(SELECT o FROM options)",
    "an expression": "(SELECT lower(upper(o)) FROM options WHERE o IS NOT NULL)",
    "VALUES": "(VALUES ('b'), ('a'), ('b'))",
    "an answer": "(SELECT llm_map('join', o) FROM options)",
    "an answer for all": "(SELECT llm_qa('first', o) FROM options UNION ALL SELECT 'b')",
    "a CTE": "(SELECT o FROM cte)",
    "a CTE of its own": "(WITH own AS (SELECT o FROM cte) SELECT o FROM own)",
}


@pytest.mark.parametrize("title", SETS)
def test_52_the_answer_is_in_the_set_however_absurd(title: str) -> None:
    db = Counted(spoken)
    db.add("options", {"o": ["b", "a", "b", None, " "]}).add("t", {"x": ["Is it nine?"]})
    sql = (
        "WITH cte AS (SELECT o FROM options) "
        f"SELECT llm_map('first', x, options => {SETS[title]}) FROM t"
    )
    assert db.rows(sql) == [("a",)]
    assert {frozenset(o) for o in constraints(db, sql)} <= {frozenset(), frozenset({"a", "b"})}


def test_52_a_model_that_answers_outside_the_set_gives_null() -> None:
    db = Counted(lambda call: "nine").add("t", {"x": ["Is it nine?"]})
    with pytest.warns(bf.AnswerWarning, match="not one of {a, b}"):
        assert db.rows("SELECT llm_map('first', x, options => ['a', 'b']) FROM t") == [(None,)]


def test_52_no_options_are_no_answer_and_no_call(db: Counted) -> None:
    none = "options => (SELECT shop FROM pay WHERE amount < 0)"
    assert set(db.rows(f"SELECT llm_map('first', shop, {none}) FROM pay")) == {(None,)}
    assert db.rows(f"SELECT llm_qa('first', shop, {none}) FROM pay") == [(None,)]
    assert db.asked(f"SELECT llm_map('first', shop, {none}) FROM pay") == 0


def test_52_options_are_read_anew_in_every_run() -> None:
    db = Counted(spoken).add("t", {"x": ["?"]}).add("o", {"o": ["b", "c"]})
    frame = db.session.sql("SELECT llm_map('first', x, options => (SELECT o FROM o)) AS y FROM t")
    assert frame.to_pydict() == {"y": ["b"]}
    db.session.sql("INSERT INTO o VALUES ('a')").collect()
    assert frame.to_pydict() == {"y": ["a"]}


def test_52_a_set_written_as_a_list_is_the_same_question() -> None:
    db = Counted(spoken).add("t", {"x": ["?"]}).add("o", {"o": ["b", "a"]})
    db.rows("SELECT llm_map('first', x, options => (SELECT o FROM o)) FROM t")
    db.rows("SELECT llm_map('first', x, options => ['a', 'b']) FROM t")
    assert len(db.model.calls) == 1


@pytest.mark.parametrize("planner", [True, False], ids=["planned", "plain"])
def test_52_options_from_data_wherever_a_call_may_stand(planner: bool) -> None:
    db = Counted(answered, planner=planner).add("t", {"x": ["p", "q"]}).add("o", {"o": ["b", "a"]})
    call = "llm_map('first', x, options => (SELECT o FROM o))"
    db.session.sql(f"CREATE VIEW v AS SELECT {call} AS y FROM t")
    assert db.rows("SELECT DISTINCT y FROM v") == [("a",)]
    assert db.session.table("t").filter(f"{call} = 'a'").count() == 2
    assert db.session.table("t").select_exprs(f"{call} AS y").to_pydict() == {"y": ["a", "a"]}
    assert db.rows(f"SELECT count(*) FROM t GROUP BY {call}") == [(2,)]
    assert db.rows("SELECT llm_classify(x, (SELECT o FROM o)) FROM t WHERE x = 'p'") == [("a",)]
    assert db.rows(
        "SELECT llm_list('all', x, options => (SELECT o FROM o WHERE o > 'z')) FROM t"
    ) == [
        (None,),
        (None,),
    ]


def test_52_options_of_several_calls_do_not_mix() -> None:
    db = Counted(spoken).add("t", {"x": ["p"]}).add("o", {"o": ["b", "a"], "g": [1, 2]})
    sql = (
        "WITH o AS (SELECT o AS o FROM o WHERE g = 1) "
        "SELECT llm_map('first', x, options => (SELECT o FROM o UNION ALL SELECT 'c')) AS one, "
        "(WITH p AS (SELECT 'd' AS o) SELECT llm_qa('first', x, options => "
        "(SELECT o FROM p UNION ALL SELECT 'e')) FROM t) AS two FROM t"
    )
    assert db.rows(sql) == [("b", "d")]


def test_53_options_are_those_of_the_subquery_whatever_the_filters_around(db: Counted) -> None:
    sql = (
        "SELECT DISTINCT sector FROM firm WHERE name LIKE 'Z%' AND sector = "
        "(SELECT llm_qa('first', name, options => (SELECT sector FROM firm)) FROM firm "
        "WHERE name LIKE 'Z%')"
    )
    assert constraints(db, sql) == {("Energy", "Health", "Tech")}


def test_55_a_list_of_answers_as_columns(db: Counted) -> None:
    sql = (
        "SELECT l[1] AS a, l[2] AS b, l[3] AS c FROM (SELECT llm_list('all', who, options => "
        "['it''s', 'O''Neill', 'c']) AS l FROM owner WHERE oid = 1)"
    )
    assert db.rows(sql) == [("it's", "O'Neill", "c")]
    assert db.asked(sql) == 1


def test_56_a_second_run_asks_nothing(db: Counted) -> None:
    frame = db.session.sql(f"SELECT id FROM pay WHERE {starts('Z', 'shop')}")
    db.session.clear_cache()
    frame.collect()
    first = frame.trace.usage
    frame.collect()
    second = frame.trace.usage
    assert (first.values, first.cached) == (10, 0)
    assert (second.values, second.cached, second.completion_tokens) == (0, 10, 0)


JOINS_BY_ANSWERS = ("33 a join by an answer", "34 a join by an answer, and two maps")


@pytest.mark.parametrize("title", [title for title in CASES if title not in JOINS_BY_ANSWERS])
def test_56_a_new_row_asks_at_most_one_value_a_question(title: str, db: Counted) -> None:
    for asked in db.asked_for_a_new_row(CASES[title].sql):
        assert max(asked.values(), default=0) <= 1


@pytest.mark.parametrize("title", JOINS_BY_ANSWERS)
def test_56_a_new_row_asks_at_most_one_value_a_partner(title: str, db: Counted) -> None:
    most = db.number("SELECT greatest((SELECT count(*) FROM held), (SELECT count(*) FROM firm))")
    for asked in db.asked_for_a_new_row(CASES[title].sql):
        assert max(asked.values(), default=0) <= most


@pytest.mark.parametrize(
    ("sql", "values", "twin"),
    [
        (
            "SELECT id FROM pay WHERE amount > $least AND llm_filter('starts with Z', shop)",
            {"least": 900},
            "SELECT id FROM pay WHERE amount > 900 AND shop LIKE 'Z%'",
        ),
        (
            "SELECT id FROM pay WHERE amount > $1 AND llm_filter($2, shop)",
            {"1": 900, "2": "starts with Z"},
            "SELECT id FROM pay WHERE amount > 900 AND shop LIKE 'Z%'",
        ),
        (
            "SELECT id FROM pay WHERE llm_map('length', shop) > $n",
            {"n": 4},
            "SELECT id FROM pay WHERE length(shop) > 4",
        ),
        (
            "SELECT llm_map($q, shop, returns => $type) + 1 FROM pay",
            {"q": "length", "type": "int"},
            "SELECT length(shop) + 1 FROM pay",
        ),
        (
            "SELECT DISTINCT llm_map('first', shop, options => $set) FROM pay",
            {"set": ["it's", "here"]},
            "SELECT 'here'",
        ),
        (
            "SELECT DISTINCT llm_map('first', shop, options => "
            "(SELECT shop FROM pay WHERE shop LIKE $like)) FROM pay",
            {"like": "Z%"},
            "SELECT 'Zalando'",
        ),
        (
            "SELECT id FROM pay WHERE llm_map('join', shop) = $name",
            {"name": "Zara"},
            "SELECT id FROM pay WHERE shop = 'Zara'",
        ),
        (
            "SELECT id FROM pay WHERE llm_map('upper', shop || $end) LIKE $like",
            {"end": "$x", "like": "ZARA$X"},
            "SELECT id FROM pay WHERE shop = 'Zara'",
        ),
    ],
)
def test_57_parameters_stand_beside_and_in_calls(
    sql: str, values: dict[str, object], twin: str, db: Counted
) -> None:
    frame = db.session.sql(sql, param_values=values)
    rows = [tuple(row.values()) for row in frame.to_pylist()]
    assert unordered(rows) == unordered(db.rows(twin))


def test_57_a_date_that_is_compared_with_a_parameter() -> None:
    day = datetime.date(2024, 5, 1)
    db = Counted(lambda call: day).add("t", {"x": ["May Day"], "d": [day]})
    for sql in (
        "llm_map('when', x) >= $day",
        "d <= llm_date('when', x, evidence => false) AND d >= $day",
    ):
        frame = db.session.sql(f"SELECT x FROM t WHERE {sql}", param_values={"day": day})
        assert frame.to_pydict() == {"x": ["May Day"]}


def test_57_text_that_is_put_into_the_query(db: Counted) -> None:
    frame = db.session.sql(
        "SELECT count(*) AS n FROM $table WHERE llm_filter('starts with Z', $column)",
        table="pay",
        column="shop",
    )
    assert frame.to_pydict() == {"n": [24]}


def test_58_the_trace_counts_what_was_asked(db: Counted) -> None:
    db.session.clear_cache()
    frame = db.session.sql(f"SELECT {length('shop')} FROM pay WHERE {starts('Z', 'shop')}")
    frame.collect()
    usage = frame.trace.usage
    z = db.number("SELECT count(DISTINCT shop) FROM pay WHERE shop LIKE 'Z%'")
    assert (usage.values, usage.cached, usage.failed) == (10 + z, 0, 0)
    assert frame.trace.calls.num_rows == 10 + z
    assert [u.values for u in frame.trace.by_task.values()] == [10, z]
    both = db.session.sql(
        "SELECT llm_qa('first', shop) AS a, llm_qa('size', shop, returns => 'int') AS b FROM pay"
    )
    both.collect()
    assert (both.trace.usage.values, both.trace.usage.calls) == (2, 2)
