"""Queries that BlendSQL promises to answer right and cheaply, in our words, with our numbers.

``holds``, ``starts with``, ``length`` are questions whose answers SQL can give too, so each case has
a twin without calls; what may be asked is counted by plain SQL.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from scripts import Counted, spoken, unordered

SHOPS = ["Zara", "Zoom", "Paypal", "Aldi", "Lidl", "Zalando", "Uber", "Zeiss", "Ikea", "Apple"]
KINDS = ["Gifts", "Rent", "Food", "Rent", "Travel"]
SECTORS = ["Tech", "Energy", "Health", "Tech"]


@pytest.fixture(scope="module")
def db() -> Counted:
    counted = Counted(spoken)
    n = 60
    counted.add(
        "pay",
        pa.table(
            {
                "id": list(range(n)),
                "shop": [SHOPS[i * 7 % 10] for i in range(n)],
                "kind": [KINDS[i % 5] for i in range(n)],
                "amount": [(i * 37) % 1500 for i in range(n)],
            }
        ),
    )
    counted.add(
        "held",
        pa.table(
            {
                "symbol": ["AAA", "AB", "BBB", "ZZZ", "ZA", "AAA", "QQQ"],
                "shares": [1, 20, 3, 40, 5, 60, 7],
                "account": [1, 1, 2, 2, 3, 3, 4],
            }
        ),
    )
    counted.add(
        "firm",
        pa.table(
            {
                "sym": ["AAA", "AB", "BBB", "ZZZ", "ZA", "XXX"],
                "name": ["Alpha", "Abe", "Beta", "Zulu", "Zack", "Xena"],
                "sector": [SECTORS[i % 4] for i in range(6)],
            }
        ),
    )
    counted.add(
        "owner",
        pa.table(
            {
                "oid": [1, 2, 3, 4],
                "who": ["Ann", "Bob", "Zoe", "Zed"],
                "land": ["DE", "FRA", "DE", "US"],
            }
        ),
    )
    return counted


@dataclass(frozen=True)
class Case:
    sql: str
    twin: str
    """The same without calls."""
    asked: str
    """SQL that gives the number of values that may be asked."""


def starts(letter: str, column: str) -> str:
    return f"llm_filter('starts with {letter}', {column})"


def length(column: str) -> str:
    return f"llm_int('length', {column})"


DISTINCT_SHOPS = "SELECT count(DISTINCT shop) FROM pay"
JOINED = "pay JOIN owner ON pay.id % 5 = owner.oid"

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
        "SELECT count(DISTINCT name) + count(DISTINCT CASE WHEN (length(name) > 4) IS NOT TRUE "
        "THEN who END) FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE shares > 2",
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
    "38 only the CTE that is used": Case(
        f"WITH a AS (SELECT symbol FROM held WHERE {starts('A', 'symbol')}), "
        f"b AS (SELECT shop FROM pay WHERE {starts('Z', 'shop')}), "
        f"c AS (SELECT who FROM owner WHERE {starts('Z', 'who')}) SELECT who FROM c",
        "SELECT who FROM owner WHERE who LIKE 'Z%'",
        "SELECT count(DISTINCT who) FROM owner",
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
    "43 a cascade": Case(
        f"SELECT oid FROM owner WHERE {starts('Z', 'who')} AND {length('land')} = 2 AND oid > 1",
        "SELECT oid FROM owner WHERE who LIKE 'Z%' AND length(land) = 2 AND oid > 1",
        "SELECT count(DISTINCT who) + count(DISTINCT CASE WHEN who LIKE 'Z%' THEN land END) "
        "FROM owner WHERE oid > 1",
    ),
    "44 a disjunction asks only what is open": Case(
        f"SELECT oid FROM owner WHERE (oid > 1 AND {starts('Z', 'who')}) OR {length('land')} = 2",
        "SELECT oid FROM owner WHERE (oid > 1 AND who LIKE 'Z%') OR length(land) = 2",
        "SELECT count(DISTINCT CASE WHEN oid > 1 THEN who END) + count(DISTINCT CASE WHEN "
        "(oid > 1 AND who LIKE 'Z%') IS NOT TRUE THEN land END) FROM owner",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_rows_are_those_of_plain_sql_and_values_no_more_than_may_be_asked(
    title: str, db: Counted
) -> None:
    case = CASES[title]
    assert unordered(db.rows(case.sql)) == unordered(db.rows(case.twin))
    assert db.asked(case.sql) <= db.number(case.asked)


def test_11_a_subquery_that_decides_spares_the_other(db: Counted) -> None:
    sql = (
        f"SELECT count(*) FROM owner WHERE NOT EXISTS (SELECT 1 FROM pay WHERE {length('shop')} > 9 "
        "AND amount > 500) OR 3 < (SELECT llm_qa('size', sym, returns => 'int') FROM firm)"
    )
    assert db.rows(sql) == [(4,)]
    assert db.asked(sql) <= db.number("SELECT count(DISTINCT shop) + 1 FROM pay WHERE amount > 500")


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


def test_46_a_limit_over_a_disjunction_gives_a_right_row(db: Counted) -> None:
    sql = f"SELECT oid FROM owner WHERE (oid > 2 AND {starts('Z', 'who')}) OR land = 'FRA' LIMIT 1"
    assert db.rows(sql)[0] in {(2,), (3,), (4,)}


def test_47_a_cascade_under_a_limit_asks_its_last_call_once(db: Counted) -> None:
    sql = f"SELECT oid FROM owner WHERE {starts('D', 'land')} AND {length('who')} > 1 LIMIT 1"
    assert db.rows(sql) == [(1,)]
    assert db.asked(sql) <= db.number("SELECT count(DISTINCT land) + 1 FROM owner")


def test_54_answers_belong_to_tuples_not_to_the_first_value(db: Counted) -> None:
    sql = "SELECT llm_map('join', name, age) FROM (VALUES ('Tommy', 24), ('Tommy', 3)) AS t (name, age)"
    assert unordered(db.rows(sql)) == [("Tommy|24",), ("Tommy|3",)]
    assert db.asked(sql) == 2
