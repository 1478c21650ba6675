"""BlendSQL's own words: its query shapes, and those of its papers, with rows and values counted.

``starts with``, ``length``, ``first``, ``size`` are questions whose answers SQL can give too, so
each case has a twin without calls; what may be asked is counted by plain SQL."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from accounts import DISTINCT_SHOPS, JOINED, accounts
from scripts import Counted, spoken, tuples, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value
from blendfusion.udfs.register.user_functions import _defined


def answered(call: bf.Request) -> Value:
    """``same`` compares two values, ``some`` lists options or rows; the rest is ``spoken``'s."""
    if call.question == "same":
        return call.values[0] == call.values[1]
    if call.question.startswith("some"):
        item = call.constraint.item
        known = list((item.options if item else ()) or (v or "" for v in call.values))
        return known[: call.constraint.max_items or 2]
    return spoken(call)


@pytest.fixture(scope="module")
def db() -> Counted:
    counted = accounts(answered)
    counted.add(
        "./Games (0)",
        {"year": ["1988", "1992"], "the city": ["Seoul", "Barcelona"], "nation": ["KOR", "ESP"]},
    )
    return counted


@pytest.fixture(autouse=True)
def same() -> object:
    @bf.ingredient(name="dj")
    def made(model: bf.UserModel, a: pa.StringArray, b: pa.StringArray) -> pa.BooleanArray:
        return model.ask("same", a, b, returns="bool")

    yield made
    del _defined["dj"]


@dataclass(frozen=True)
class Case:
    text: str
    twin: str
    """The same without calls."""
    asked: str
    """SQL that gives the number of values that must be asked."""


def sw(letter: str, column: str) -> str:
    return f"{{{{LLMMap('starts with {letter}', {column})}}}}"


def length(column: str) -> str:
    return f"{{{{LLMMap('length', {column}, return_type='int')}}}}"


CASES = {
    "1 no ingredient": Case(
        "SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE amount > 700)",
        "SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE amount > 700)",
        "SELECT 0",
    ),
    "2 bare, with a semicolon": Case(
        f"SELECT * FROM pay WHERE {sw('Z', 'pay.shop')};",
        "SELECT * FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "2 as a number": Case(
        "SELECT id FROM pay WHERE {{LLMMap('length', shop)}} = 4",
        "SELECT id FROM pay WHERE length(shop) = 4",
        DISTINCT_SHOPS,
    ),
    "3 inside IN": Case(
        f"SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE amount > 1000 AND "
        f"{sw('Z', 'shop')} = TRUE)",
        "SELECT id FROM pay WHERE shop IN "
        "(SELECT shop FROM pay WHERE amount > 1000 AND shop LIKE 'Z%')",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 1000",
    ),
    "4 a conjunct that no row satisfies": Case(
        f"SELECT id FROM pay WHERE ({sw('Z', 'shop')} AND kind = 'none') OR kind = 'Gifts'",
        "SELECT id FROM pay WHERE kind = 'Gifts'",
        "SELECT 0",
    ),
    "5 a gate inside a disjunction": Case(
        f"SELECT id FROM pay WHERE ({sw('Z', 'shop')} AND kind = 'Rent') OR kind = 'Gifts'",
        "SELECT id FROM pay WHERE (shop LIKE 'Z%' AND kind = 'Rent') OR kind = 'Gifts'",
        "SELECT count(DISTINCT shop) FROM pay WHERE kind = 'Rent'",
    ),
    "6 two calls and a gate": Case(
        f"SELECT id FROM pay WHERE ({sw('Z', 'shop')} AND {sw('R', 'kind')} AND amount > 900) "
        "OR amount < 100",
        "SELECT id FROM pay WHERE (shop LIKE 'Z%' AND kind LIKE 'R%' AND amount > 900) "
        "OR amount < 100",
        "SELECT (SELECT count(DISTINCT shop) FROM pay WHERE amount > 900) + "
        "(SELECT count(DISTINCT kind) FROM pay WHERE amount > 900 AND shop LIKE 'Z%')",
    ),
    "7 selected and filtered": Case(
        f"SELECT {length('shop')}, shop FROM pay WHERE {length('shop')} > 4",
        "SELECT length(shop), shop FROM pay WHERE length(shop) > 4",
        DISTINCT_SHOPS,
    ),
    "8 aggregated and filtered": Case(
        f"SELECT MAX({length('shop')}) FROM pay WHERE {length('shop')} > 1",
        "SELECT max(length(shop)) FROM pay",
        DISTINCT_SHOPS,
    ),
    "9 in two scopes": Case(
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
    "11 a disjunction of subqueries": Case(
        f"SELECT count(*) FROM owner WHERE NOT EXISTS (SELECT 1 FROM pay WHERE {length('shop')} > 9 "
        "AND amount > 500) OR {{LLMQA('size', (SELECT sym FROM firm))}} > 3",
        "SELECT 4",
        "SELECT count(DISTINCT shop) + 1 FROM pay WHERE amount > 500",
    ),
    "12 one of the options of a subquery": Case(
        "{{LLMQA('first', (SELECT kind FROM pay), options=(SELECT shop FROM pay WHERE shop = "
        "'Paypal' OR shop LIKE 'Z%'))}}",
        "SELECT 'Paypal'",
        "SELECT 1",
    ),
    "13 the options of the column": Case(
        "SELECT id FROM pay WHERE shop = {{LLMQA('first', (SELECT kind FROM pay), options=shop)}}",
        "SELECT id FROM pay WHERE shop = (SELECT min(shop) FROM pay)",
        "SELECT 1",
    ),
    "14 a computed boolean": Case(
        "WITH w AS (SELECT shop, amount > 900 AS big FROM pay) "
        f"SELECT shop FROM w WHERE w.big = TRUE AND {sw('Z', 'w.shop')}",
        "SELECT shop FROM pay WHERE amount > 900 AND shop LIKE 'Z%'",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 900",
    ),
    "15 IN a filtered subquery": Case(
        f"SELECT id FROM pay WHERE shop IN (SELECT shop FROM pay WHERE {sw('Z', 'shop')})",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "16 a negation": Case(
        f"SELECT id FROM pay WHERE shop IS NOT NULL AND {sw('Z', 'shop')}",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        DISTINCT_SHOPS,
    ),
    "17 inside functions": Case(
        f"SELECT id FROM pay WHERE LENGTH(CAST({length('shop')} AS TEXT)) = 1 AND shop LIKE 'Z%'",
        "SELECT id FROM pay WHERE shop LIKE 'Z%'",
        "SELECT count(DISTINCT shop) FROM pay WHERE shop LIKE 'Z%'",
    ),
    "18 of an expression": Case(
        f"SELECT id FROM pay WHERE {length(chr(39).join(['shop || ', ' ', ' || kind']))} > 9 "
        f"AND {sw('Z', 'shop')} AND kind LIKE 'R%'",
        "SELECT id FROM pay WHERE length(shop || ' ' || kind) > 9 AND shop LIKE 'Z%' "
        "AND kind LIKE 'R%'",
        "SELECT count(DISTINCT shop || ' ' || kind) + count(DISTINCT CASE WHEN "
        "length(shop || ' ' || kind) > 9 THEN shop END) FROM pay WHERE kind LIKE 'R%'",
    ),
    "19 an aggregate": Case(
        f"SELECT MAX({length('shop')}) FROM pay WHERE amount > 1200",
        "SELECT max(length(shop)) FROM pay WHERE amount > 1200",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 1200",
    ),
    "20 one row of an order": Case(
        f"SELECT {length('shop')} FROM pay ORDER BY shop LIMIT 1", "SELECT 4", "SELECT 1"
    ),
    "21 three rows of an order": Case(
        f"SELECT {length('shop')} FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3",
        "SELECT length(shop) FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3",
        "SELECT count(DISTINCT shop) FROM "
        "(SELECT shop FROM pay WHERE amount > 1300 ORDER BY id LIMIT 3)",
    ),
    "22 grouped by an alias": Case(
        f"SELECT SUM(amount), {length('shop')} AS l FROM pay GROUP BY l ORDER BY SUM(amount)",
        "SELECT sum(amount), length(shop) AS l FROM pay GROUP BY l ORDER BY sum(amount)",
        DISTINCT_SHOPS,
    ),
    "23 a QA that feeds a QA": Case(
        "WITH a AS (SELECT {{LLMQA('first', (SELECT shop FROM pay))}} AS v) "
        "SELECT {{LLMQA('join', (SELECT v FROM a))}}",
        "SELECT 'Aldi'",
        "SELECT 2",
    ),
    "24 two CTEs, one with a map": Case(
        f"WITH a AS (SELECT id, shop FROM pay WHERE {sw('Z', 'shop')}), "
        "b AS (SELECT id AS bid, kind FROM pay WHERE amount > 500) "
        "SELECT * FROM a JOIN b ON a.id = b.bid",
        "SELECT id, shop, id AS bid, kind FROM pay WHERE shop LIKE 'Z%' AND amount > 500",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 500",
    ),
    "25 ordered by a map, with an offset": Case(
        f"SELECT id FROM pay WHERE {sw('Z', 'shop')} ORDER BY {length('shop')}, id LIMIT 1 OFFSET 2",
        "SELECT id FROM pay WHERE shop LIKE 'Z%' ORDER BY length(shop), id LIMIT 1 OFFSET 2",
        "SELECT count(DISTINCT shop) + count(DISTINCT CASE WHEN shop LIKE 'Z%' THEN shop END) "
        "FROM pay",
    ),
    "26 HAVING by an alias": Case(
        f"SELECT {length('shop')} AS l FROM pay WHERE amount > 300 GROUP BY shop, l HAVING l > 4",
        "SELECT length(shop) AS l FROM pay WHERE amount > 300 GROUP BY shop, l HAVING l > 4",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 300",
    ),
    "27 in the middle of subqueries": Case(
        "SELECT name FROM firm WHERE sym IN (SELECT symbol FROM held WHERE "
        f"{sw('A', 'held.symbol')} AND account IN (SELECT oid FROM owner WHERE land = 'DE'))",
        "SELECT name FROM firm WHERE sym IN (SELECT symbol FROM held WHERE symbol LIKE 'A%' "
        "AND account IN (SELECT oid FROM owner WHERE land = 'DE'))",
        "SELECT count(DISTINCT symbol) FROM held WHERE account IN (1, 3)",
    ),
    "28 a join and a constant answer": Case(
        "SELECT name FROM held JOIN firm c ON symbol = sym WHERE c.sector = "
        "{{LLMQA('first', (SELECT name FROM firm), options=c.sector)}}",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE sector = 'Energy'",
        "SELECT 1",
    ),
    "29 three tables": Case(
        "SELECT name, who FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        f"WHERE ({length('firm.name')} > 4 OR {sw('Z', 'who')}) AND shares > 2",
        "SELECT name, who FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE (length(name) > 4 OR who LIKE 'Z%') AND shares > 2",
        "SELECT count(DISTINCT who) + count(DISTINCT CASE WHEN (who LIKE 'Z%') IS NOT TRUE "
        "THEN name END) FROM held LEFT JOIN firm ON symbol = sym JOIN owner ON account = oid "
        "WHERE shares > 2",
    ),
    "31 options of the column that is compared": Case(
        "SELECT DISTINCT shop FROM pay WHERE amount > 500 AND shop = "
        "{{LLMQA('first', (SELECT kind FROM pay))}}",
        "SELECT 'Aldi'",
        "SELECT 1",
    ),
    "32 filters on both sides": Case(
        f"SELECT shop FROM {JOINED} WHERE amount > 600 AND land = 'DE' AND {sw('Z', 'shop')}",
        f"SELECT shop FROM {JOINED} WHERE amount > 600 AND land = 'DE' AND shop LIKE 'Z%'",
        f"SELECT count(DISTINCT shop) FROM {JOINED} WHERE amount > 600 AND land = 'DE'",
    ),
    "33 a join by a function of the user's": Case(
        "SELECT name, shares FROM held JOIN firm ON {{dj(held.symbol, firm.sym)}}",
        "SELECT name, shares FROM held JOIN firm ON symbol = sym",
        "SELECT count(*) FROM (SELECT DISTINCT symbol, sym FROM held, firm)",
    ),
    "35 a table alias": Case(
        f"SELECT w.symbol FROM held AS w WHERE {sw('A', 'w.symbol')} AND LENGTH(w.symbol) > 2",
        "SELECT symbol FROM held WHERE symbol LIKE 'A%' AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) FROM held WHERE length(symbol) > 2",
    ),
    "36 filters inside and outside": Case(
        "SELECT symbol FROM (SELECT DISTINCT symbol FROM held WHERE shares > 2) AS w "
        f"WHERE {sw('Z', 'w.symbol')} AND LENGTH(w.symbol) > 2",
        "SELECT DISTINCT symbol FROM held WHERE shares > 2 AND symbol LIKE 'Z%' "
        "AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) FROM held WHERE shares > 2 AND length(symbol) > 2",
    ),
    "37 a context with a CTE of its own": Case(
        "{{LLMQA('size', context=(WITH a AS (SELECT symbol FROM held WHERE "
        f"{sw('A', 'symbol')}) SELECT symbol FROM a WHERE LENGTH(symbol) > 2), return_type='int')}}}}",
        "SELECT count(*) FROM held WHERE symbol LIKE 'A%' AND length(symbol) > 2",
        "SELECT count(DISTINCT symbol) + 1 FROM held WHERE length(symbol) > 2",
    ),
    "38 only the CTE that is used": Case(
        f"WITH a AS (SELECT symbol FROM held WHERE {sw('A', 'symbol')}), "
        f"b AS (SELECT shop FROM pay WHERE {sw('Z', 'shop')}), "
        f"c AS (SELECT who FROM owner WHERE {sw('Z', 'who')}) SELECT who FROM c",
        "SELECT who FROM owner WHERE who LIKE 'Z%'",
        "SELECT count(DISTINCT who) FROM owner",
    ),
    "39 the options of a CTE": Case(
        "WITH big AS (SELECT shop AS name FROM pay WHERE amount > 1300) "
        "SELECT {{LLMQA('first', (SELECT kind FROM pay), options=big.name)}}",
        "SELECT min(shop) FROM pay WHERE amount > 1300",
        "SELECT 1",
    ),
    "40 a map over the result of a map": Case(
        f"WITH a AS (SELECT symbol, {length('symbol')} AS l FROM held WHERE shares > 2) "
        "SELECT symbol FROM a WHERE l > 2 AND {{LLMMap('holds Z', a.symbol)}} AND symbol <> 'AAA'",
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
    "42 a derived table, a join by a function, a map": Case(
        "SELECT name FROM (SELECT symbol FROM held WHERE shares > 2) AS w "
        f"JOIN firm ON {{{{dj(w.symbol, firm.sym)}}}} WHERE {sw('Z', 'name')} AND sector <> 'Health'",
        "SELECT name FROM held JOIN firm ON symbol = sym WHERE shares > 2 AND name LIKE 'Z%' "
        "AND sector <> 'Health'",
        "SELECT (SELECT count(DISTINCT name) FROM firm WHERE sector <> 'Health') + (SELECT count(*) "
        "FROM (SELECT DISTINCT symbol, sym FROM held, firm WHERE shares > 2 AND name LIKE 'Z%' "
        "AND sector <> 'Health'))",
    ),
    "43 a cascade": Case(
        f"SELECT oid FROM owner WHERE {sw('Z', 'who')} AND {length('land')} = 2 AND oid > 1",
        "SELECT oid FROM owner WHERE who LIKE 'Z%' AND length(land) = 2 AND oid > 1",
        "SELECT count(DISTINCT who) + count(DISTINCT CASE WHEN who LIKE 'Z%' THEN land END) "
        "FROM owner WHERE oid > 1",
    ),
    "44 a disjunction": Case(
        f"SELECT oid FROM owner WHERE (oid > 1 AND {sw('Z', 'who')}) OR {length('land')} = 2",
        "SELECT oid FROM owner WHERE (oid > 1 AND who LIKE 'Z%') OR length(land) = 2",
        "SELECT count(DISTINCT land) + count(DISTINCT CASE WHEN oid > 1 AND "
        "(length(land) = 2) IS NOT TRUE THEN who END) FROM owner",
    ),
    "old names": Case(
        "SELECT id FROM pay WHERE {{LLMMap('starts with Z', 'pay::SHOP')}} = TRUE AND amount > 900",
        "SELECT id FROM pay WHERE shop LIKE 'Z%' AND amount > 900",
        "SELECT count(DISTINCT shop) FROM pay WHERE amount > 900",
    ),
    "old options": Case(
        "SELECT DISTINCT {{LLMMap('first', 'pay::shop', options='t;f')}} FROM pay",
        "SELECT 'f'",
        DISTINCT_SHOPS,
    ),
    "a map of a map": Case(
        "SELECT DISTINCT {{LLMMap('length', {{LLMMap('upper', land)}}, return_type='int')}} FROM owner",
        "SELECT DISTINCT length(land) FROM owner",
        "SELECT 2 * count(DISTINCT land) FROM owner",
    ),
    "an answer as options": Case(
        "SELECT DISTINCT {{LLMMap('first', who, options={{LLMQA('some', (SELECT land FROM owner), "
        "quantifier='{2}')}})}} FROM owner WHERE oid < 3",
        "SELECT 'DE'",
        "SELECT 1",  # both of the answers are DE: no choice is left
    ),
    "several contexts": Case(
        "{{LLMQA('size', (SELECT who FROM owner), (SELECT sym, name FROM firm), return_type='int')}}",
        "SELECT 10",
        "SELECT 1",
    ),
    "a context of literals": Case(
        "SELECT {{LLMQA('upper {}', 'here')}}, {{LLMQA('join', 'here')}}",
        "SELECT 'HERE', 'here'",
        "SELECT 2",
    ),
    "the first value of a context": Case(
        "{{LLMQA('upper {}', (SELECT who FROM owner ORDER BY oid DESC))}}",
        "SELECT 'ZED'",
        "SELECT 1",
    ),
    "a context in its order": Case(
        "{{LLMQA('join', (SELECT who FROM owner ORDER BY oid DESC LIMIT 3))}}",
        "SELECT 'Zed|Zoe|Bob'",
        "SELECT 1",
    ),
    "a question by group": Case(
        "SELECT land, {{LLMQA('size', who, return_type='int')}} FROM owner GROUP BY land",
        "SELECT land, count(*) FROM owner GROUP BY land",
        "SELECT count(DISTINCT land) FROM owner",
    ),
    "answers under IN": Case(
        "SELECT id FROM pay WHERE shop IN {{LLMQA('some', (SELECT kind FROM pay))}}",
        "SELECT id FROM pay WHERE shop IN ('Aldi', 'Apple')",
        "SELECT 1",
    ),
    "answers under IN, about a first value": Case(
        "SELECT id FROM pay WHERE shop IN {{LLMQA('some {}', (SELECT kind FROM pay), "
        "options=('Aldi', 'Uber'))}}",
        "SELECT id FROM pay WHERE shop IN ('Aldi', 'Uber')",
        "SELECT 1",
    ),
    "answers under NOT IN": Case(
        "SELECT id FROM pay WHERE shop NOT IN {{LLMQA('some', (SELECT kind FROM pay))}}",
        "SELECT id FROM pay WHERE shop NOT IN ('Aldi', 'Apple')",
        "SELECT 1",
    ),
    "an answer among others": Case(
        "SELECT id FROM pay WHERE shop IN ('Zara', {{LLMQA('first', (SELECT shop FROM pay))}})",
        "SELECT id FROM pay WHERE shop IN ('Zara', 'Aldi')",
        "SELECT 1",
    ),
    "55 answers as columns": Case(
        "SELECT * FROM (VALUES {{LLMQA('some', (SELECT who FROM owner), "
        "options=('it''s', 'O''Neill', 'c'), quantifier='{3}')}}) AS r(a, b, c)",
        "SELECT 'it''s', 'O''Neill', 'c'",
        "SELECT 1",
    ),
    "answers as rows": Case(
        "SELECT UNNEST({{LLMQA('some', (SELECT who FROM owner))}}) AS one",
        "SELECT * FROM (VALUES ('Ann'), ('Bob'))",
        "SELECT 1",
    ),
    "joined on an answer": Case(
        "SELECT who, id FROM owner JOIN pay ON pay.shop = {{LLMMap('first', owner.who)}} WHERE id < 20",
        "SELECT who, id FROM owner, pay WHERE shop = 'Aldi' AND id < 20",
        "SELECT count(DISTINCT who) FROM owner",
    ),
    "a context that all values share": Case(
        "SELECT {{LLMMap('join', who, context=(SELECT land, oid FROM owner WHERE oid < 3))}} "
        "FROM owner WHERE oid = 4",
        "SELECT 'Zed|land: DE, oid: 1; land: FRA, oid: 2'",
        "SELECT 1",
    ),
    "a claim and what exists": Case(
        'EXISTS (SELECT * FROM "./Games (0)" WHERE "the city" = \'Seoul\') AND '
        "({{LLMValidate('starts with A', (SELECT who FROM owner))}})",
        "SELECT TRUE",
        "SELECT 1",
    ),
    "what does not exist": Case(
        "SELECT NOT EXISTS (SELECT * FROM \"./Games (0)\" WHERE year = '2000') AND EXISTS ("
        "SELECT * FROM \"./Games (0)\" WHERE year = '1988' AND "
        "{{LLMMap('starts with B', './Games (0)::the city')}} = TRUE)",
        "SELECT FALSE",
        "SELECT 1",
    ),
    "a table whose name is no word": Case(
        'SELECT nation FROM "./Games (0)" AS w WHERE "the city" = '
        "{{LLMQA('first' (SELECT * FROM \"./Games (0)\") options='w::the city')}}",
        "SELECT 'ESP'",
        "SELECT 1",
    ),
    "an alias of a derived table inside a context": Case(
        "{{LLMQA('first', (SELECT * FROM (SELECT * FROM \"./Games (0)\") AS w WHERE w.nation = "
        "{{LLMQA(\"first\", (SELECT who FROM owner), options='w::nation')}}), "
        "options='w::the city')}}",
        "SELECT 'Barcelona'",
        "SELECT 2",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_rows_are_those_of_plain_sql_and_values_those_that_must_be_asked(
    title: str, db: Counted
) -> None:
    case = CASES[title]
    frame = db.session.sql(case.text, dialect="blendsql")
    twin = db.session.sql(case.twin)
    rows = [tuple(row) for row in zip(*frame.to_arrow_table().to_pydict().values(), strict=True)]
    plain = [tuple(row) for row in zip(*twin.to_arrow_table().to_pydict().values(), strict=True)]
    assert unordered(rows) == unordered(plain)
    assert db.asked(case.text) == db.number(case.asked)


def asked_of(db: Counted, text: str) -> list[bf.Request]:
    """What a query puts to a model that has not answered anything yet."""
    db.asked(text)
    return list(db.model.calls)


def test_30_a_constant_answer_is_a_literal(db: Counted) -> None:
    text = "SELECT id FROM pay WHERE id = {{LLMQA('size', (SELECT sym FROM firm))}}"
    assert db.rows(text) == [(6,)]
    assert {c.constraint.kind for c in asked_of(db, text)} == {"integer"}


@pytest.mark.parametrize("k", [1, 3])
def test_45_a_limit_over_a_join_stops_at_its_rows(k: int, db: Counted) -> None:
    text = f"SELECT shop, land FROM {JOINED} WHERE {length('owner.land')} >= 2 LIMIT {k}"
    assert len(db.rows(text)) == k
    assert db.asked(text) <= k


def test_46_a_limit_over_a_disjunction_gives_a_right_row(db: Counted) -> None:
    text = f"SELECT oid FROM owner WHERE (oid > 2 AND {sw('Z', 'who')}) OR land = 'FRA' LIMIT 1"
    assert db.rows(text)[0] in {(2,), (3,), (4,)}
    assert db.asked(text) <= 1


def test_47_a_cascade_under_a_limit_asks_its_last_call_once(db: Counted) -> None:
    text = f"SELECT oid FROM owner WHERE {sw('D', 'land')} AND {length('who')} > 1 LIMIT 1"
    assert db.rows(text) == [(1,)]
    assert db.asked(text) == 2


def test_48_a_constant_answer_and_a_map_under_a_limit(db: Counted) -> None:
    text = (
        "SELECT oid FROM owner WHERE who = {{LLMQA('first', (SELECT who FROM owner))}} "
        "AND {{LLMMap('holds 1', oid)}} LIMIT 1"
    )
    assert db.rows(text) == [(1,)]
    assert db.asked(text) == 2


def test_53_options_are_those_of_the_whole_column(db: Counted) -> None:
    text = (
        "SELECT DISTINCT sector FROM firm WHERE name LIKE 'Z%' AND sector = "
        "{{LLMQA('first', (SELECT name FROM firm WHERE name LIKE 'Z%'))}}"
    )
    assert {c.constraint.options for c in asked_of(db, text)} == {("Energy", "Health", "Tech")}


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("options=('b', 'a')", {"a", "b"}),
        ("options='b;a'", {"a", "b"}),
        ("options=owner.land", {"DE", "FRA", "US"}),
        ("options='owner::land'", {"DE", "FRA", "US"}),
        ("options=(SELECT land FROM owner WHERE oid < 3)", {"DE", "FRA"}),
        ("options=(SELECT l FROM cte)", {"DE", "US"}),
        ("options=cte.l", {"DE", "US"}),
    ],
)
def test_52_options_from_anywhere(call: str, options: set[str], db: Counted) -> None:
    text = (
        "WITH cte AS (SELECT land AS l FROM owner WHERE oid > 2) "
        f"SELECT {{{{LLMMap('first', shop, {call})}}}} FROM pay WHERE id = 1"
    )
    assert {frozenset(c.constraint.options) for c in asked_of(db, text)} == {frozenset(options)}
    assert db.rows(text) == [(min(options),)]


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("return_type='int'", "integer"),
        ("return_type='FLOAT'", "number"),
        ("return_type='bool'", "boolean"),
        ("return_type='date'", "date"),
        ("return_type='substring'", "text"),
        ("return_type='list[str]', quantifier='{2}'", "list of 2 text"),
        ("quantifier='+'", "list of at least 1 text"),
        ("regex='[A-Z]+'", "/[A-Z]+/"),
    ],
)
def test_types_hold_answers(said: str, kind: str) -> None:
    counted = Counted(lambda call: None).add("t", {"x": ["a"]})
    with pytest.warns(bf.AnswerWarning):
        counted.rows(f"SELECT {{{{LLMMap('q', x, {said})}}}} FROM t")
    assert [str(c.constraint) for c in counted.model.calls] == [kind]


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("{}", "boolean"),
        ("NOT {}", "boolean"),
        ("{} = TRUE", "boolean"),
        ("{} > 3", "integer"),
        ("{} > 3.5", "number"),
        ("{} BETWEEN 1 AND 3", "integer"),
        ("{} IN (1, 2)", "integer"),
        ("{} = 'CA'", "/[A-Z]{2}/"),
        ("CASE WHEN {} THEN TRUE END", "boolean"),
    ],
)
def test_the_place_of_a_call_says_what_it_answers(where: str, kind: str) -> None:
    counted = Counted(lambda call: None).add("t", {"x": ["a"]})
    with pytest.warns(bf.AnswerWarning):
        counted.rows("SELECT x FROM t WHERE " + where.format("{{LLMMap('q', t.x)}}"))
    assert [str(c.constraint).split(",")[0] for c in counted.model.calls] == [kind]


def test_51_placeholders_point_at_values(db: Counted) -> None:
    calls = asked_of(db, "SELECT {{LLMMap('upper {} of {}', who, land)}} FROM owner WHERE oid = 1")
    assert [(c.question, c.values) for c in calls] == [("upper {} of {}", ("Ann", "DE"))]


def test_54_answers_belong_to_tuples(db: Counted) -> None:
    text = "SELECT {{LLMMap('join', name, age)}} FROM (VALUES ('Tommy', 24), ('Tommy', 3)) AS t (name, age)"
    assert unordered(db.rows(text)) == [("Tommy|24",), ("Tommy|3",)]


def test_56_a_second_run_asks_nothing(db: Counted) -> None:
    frame = db.session.sql(f"SELECT id FROM pay WHERE {sw('Z', 'shop')}")
    db.session.clear_cache()
    frame.collect()
    frame.collect()
    assert (frame.trace.usage.values, frame.trace.usage.cached) == (0, 10)


def test_57_values_of_question_marks(db: Counted) -> None:
    frame = db.session.sql(
        "SELECT id FROM pay WHERE amount > ? AND {{LLMMap(?, shop)}} AND kind IN ?",
        param_values=[900, "starts with Z", ["Rent", "Food"]],
    )
    twin = "SELECT id FROM pay WHERE amount > 900 AND shop LIKE 'Z%' AND kind IN ('Rent', 'Food')"
    assert unordered([tuple(r.values()) for r in frame.to_pylist()]) == unordered(db.rows(twin))


def test_58_the_trace_counts_what_was_asked(db: Counted) -> None:
    frame = db.session.sql(f"SELECT {length('shop')} FROM pay")
    db.session.clear_cache()
    frame.collect()
    assert frame.trace.usage.values == 10
    both = db.session.sql("SELECT {{LLMQA('size')}} AS a, {{LLMQA('length')}} AS b")
    both.collect()
    assert both.trace.usage.values == 2


def test_a_call_is_named_after_its_question_or_as_it_was_written(db: Counted) -> None:
    frame = db.session.sql(
        "SELECT {{LLMMap('upper', who)}}, {{LLMMap('upper', land)}} AS l FROM owner"
    )
    assert frame.schema().names == ["upper", "l"]
    assert db.session.sql("{{LLMQA('size', (SELECT who FROM owner))}}").schema().names == [
        "LLMQA('size')"
    ]


def test_more_than_26_calls_are_no_matter(db: Counted) -> None:
    items = ", ".join(f"{{{{LLMMap('length', who || '{i}')}}}} AS c{i}" for i in range(30))
    assert len(db.rows(f"SELECT {items} FROM owner WHERE oid = 1")[0]) == 30


def test_an_empty_context_is_no_answer_and_no_call(db: Counted) -> None:
    text = "{{LLMQA('first', (SELECT who FROM owner WHERE oid > 9))}}"
    assert db.rows(text) == [(None,)]
    assert db.asked(text) == 0


# --- joins by meaning and search -----------------------------------------------------------------


def chosen(call: bf.Request) -> Value:
    """Of candidates, the first that begins as the value does; rows of a context, one after the
    other."""
    if call.constraint.kind == "choice":
        letters = (call.values[0] or "")[:2].lower()
        found = (line.split(". ", 1) for line in (call.values[1] or "").splitlines())
        return next((n for n, name in found if name[:2].lower() == letters), "none")
    return "|".join(v or "" for v in call.values)


@pytest.fixture
def library() -> Counted:
    made = Counted(chosen)
    made.add("w", {"name": ["alpha", "beta", "gamma"], "city": ["herat", "kabul", "herat"]})
    made.add(
        "documents",
        {"title": ["Alpha (mosque)", "Beta", "Gammaray"], "content": ["old stone", "new", "stone"]},
    )
    return made


@pytest.mark.parametrize(
    "join",
    [
        "w JOIN documents ON {{LLMJoin(w.name, documents.title)}}",
        "w JOIN documents ON {{LLMJoin(left_on='w::name', right_on='documents::title')}}",
        "w JOIN {{LLMJoin(left_on='w::name', right_on='documents::title')}}",
        "documents JOIN {{ LLMJoin(\n  left_on = 'w::name', right_on = 'documents::title') }}",
    ],
)
def test_33_a_join_by_meaning_asks_what_no_equality_settles(join: str, library: Counted) -> None:
    text = f"SELECT name, title FROM {join} ORDER BY name"
    assert library.rows(text) == [
        ("alpha", "Alpha (mosque)"),
        ("beta", "Beta"),
        ("gamma", "Gammaray"),
    ]
    assert library.asked(text) == 2  # beta is Beta


def test_a_join_by_meaning_inside_a_context(library: Counted) -> None:
    text = """
        {{
            LLMQA(
                'join',
                (
                    SELECT documents.title AS 'Building', documents.content FROM documents
                    JOIN {{
                        LLMJoin(left_on='w::name', right_on='documents::title')
                    }}
                    WHERE w.city = 'herat'
                )
            )
        }}"""
    told = "Building: Alpha (mosque); content: old stone|Building: Gammaray; content: stone"
    assert library.rows(text) == [(told,)]
    assert library.asked(text) == 3


def test_search_by_match(library: Counted, tmp_path: Path) -> None:
    pytest.importorskip("lance", reason="needs the extra 'search'")
    library.session.index("documents", columns=["title", "content"], path=str(tmp_path))

    def rows(text: str) -> list[tuple[object, ...]]:
        return tuples(library.session.sql(text, dialect="blendsql").to_arrow_table())

    found = (
        "SELECT title FROM documents WHERE documents MATCH 'old OR mosque' ORDER BY rank LIMIT 5"
    )
    assert rows(found) == [("Alpha (mosque)",)]
    every = "SELECT * FROM documents d WHERE d MATCH 'stone' AND title <> 'x' ORDER BY rank"
    assert rows(every) == [("Gammaray", "stone"), ("Alpha (mosque)", "old stone")]
    assert (
        rows(every.replace("ORDER BY rank", "ORDER BY rank DESC LIMIT 1"))[0][0] == "Alpha (mosque)"
    )
    asked = "{{LLMQA('join', (SELECT * FROM documents WHERE documents MATCH 'stone' ORDER BY rank LIMIT 1))}}"
    assert rows(asked) == [("title: Gammaray; content: stone",)]
    each = """
        {{
            LLMQA(
                'join'
                (
                    WITH t AS (
                        SELECT name FROM w WHERE city = 'kabul'
                    ), d AS (
                        SELECT * FROM documents JOIN t WHERE documents MATCH '"' || t.name || '"' || ' OR new' ORDER BY rank LIMIT 5
                    ) SELECT d.content, t.name AS 'Home Stadium' FROM d JOIN t
                )
            )
        }}"""
    assert rows(each) == [("content: new; Home Stadium: beta",)]
    both = (
        "SELECT EXISTS (SELECT * FROM w WHERE city = 'kabul') AND ({{LLMValidate('join', "
        "(SELECT content FROM documents WHERE documents MATCH 'nothing' ORDER BY rank LIMIT 5))}})"
    )
    assert rows(both) == [(None,)]
