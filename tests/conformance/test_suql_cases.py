"""Query shapes of SUQL and HProPro, in our SQL, over small tables of ours.

What the model reads stands in the text (``mood=calm``) and, as the truth, in a column beside it
(``mood``). So each case has a twin without calls, and what must be asked is counted by plain SQL.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

import pyarrow as pa
import pytest
from scripts import Counted, spoken, unordered

import blendfusion as bf
from blendfusion.models.prompts.canonical import Value

PLACES = ["Oslo", "Bergen", "Oslo", "Narvik"]
PRICES = ["cheap", "moderate", "luxury"]
MOODS = ["calm", "casual", "loud"]
CUISINES = [["thai", "fusion"], ["coffee"], ["mexican", "grill"], [], None]
COUNTRIES = ["CO", "PE", "CL", "CO", "BO"]


def told(call: bf.Request) -> Value | None:
    """``tell key`` reads ``key=value`` in the text; every other question is ``spoken``'s."""
    word, _, key = call.question.partition(" ")
    if word != "tell":
        return spoken(call)
    found = re.search(rf"{key}=([\w.-]+)", " ".join(v or "" for v in call.values))
    if found is None:
        return None
    kind = call.constraint.kind
    if kind == "boolean":
        return found[1] == "yes"
    if kind == "date":
        return datetime.date.fromisoformat(found[1])
    return float(found[1]) if kind in ("integer", "number") else found[1]


def venues() -> pa.Table:
    """24 venues; a text stands for two of them, and the last four have nothing to read."""
    rows = []
    for i in range(24):
        text = i % 12  # venues 12 apart share their reviews
        truth = {
            "mood": MOODS[text * 5 % 7 % 3],
            "stars": text % 5 + 1,
            "score": (text * 3 % 10) / 2,
            "candles": text % 3 == 0,
            "garden": text % 4 != 1,
        }
        reviews: list[str | None] | None = [
            f"mood={truth['mood']} stars={truth['stars']} score={truth['score']} table={text}",
            f"{'candles' if truth['candles'] else 'lamps'}, "
            f"{'garden' if truth['garden'] else 'street'}",
        ]
        if i >= 20:
            reviews = (None, [], [""], [None, " "])[i - 20]
            truth = dict.fromkeys(truth)  # type: ignore[assignment]
        rows.append(
            {
                "id": i,
                "name": f"{MOODS[i % 3]}",
                "place": PLACES[i % 4],
                "price": PRICES[i % 3],
                "rating": [4.5, 3.0, 4.0, 2.5, None, 5.0, 4.5][i % 7],
                "visits": (i * 37) % 100,
                "cuisines": CUISINES[i % 5],
                "reviews": reviews,
                **truth,
            }
        )
    return pa.Table.from_pylist(rows)


def events() -> pa.Table:
    rows = []
    for i in range(30):
        kind = i % 10  # several events share a note
        note = f"weak={'yes' if kind % 3 == 0 else 'no'} {'flood' if kind % 4 == 1 else 'dry'} n={kind}"
        rows.append(
            {
                "eid": i,
                "day": datetime.date(2020, 1 + i % 3, 1 + i % 28),
                "month": 1 + i % 3,
                "country": COUNTRIES[i % 5],
                "venue": i * 2 % 26,
                "notes": None if i % 15 == 14 else note,
                "tags": None if i % 6 == 5 else ["hill", "coast"][i % 2],
                "actor": ["State", "Farmers", "State", "Miners"][i % 4],
                "weak": None if i % 15 == 14 else kind % 3 == 0,
                "flood": None if i % 15 == 14 else kind % 4 == 1,
                "n": None if i % 15 == 14 else kind,
            }
        )
    return pa.Table.from_pylist(rows)


def bearers() -> pa.Table:
    """Who carried a flag, with what one may read about the games and about the person."""
    return pa.table(
        {
            "year": ["1988", "1992", "1996", "2000", "2004", "2008"],
            "bearer": ["Ada Holm", "Bo Lind", "Cy Dahl", "Ada Holm", "Di Moe", "Eli Ness"],
            "sport": ["rowing", "judo", "rowing", "rowing", "swimming", "swimming"],
            "team": [False, False, True, False, False, False],
            "about_games": [
                f"city={c} flame" for c in ("Rana", "Voss", "Rana", "Molde", "Voss", "Bodo")
            ],
            "about_bearer": [
                "born=1960-02-03",
                "born=1971-07-09",
                None,
                "born=1960-02-03",
                "born=1983-11-30",
                "born=1979-01-31",
            ],
            "born": [
                datetime.date(1960, 2, 3),
                datetime.date(1971, 7, 9),
                None,
                datetime.date(1960, 2, 3),
                datetime.date(1983, 11, 30),
                datetime.date(1979, 1, 31),
            ],
            "result": ["t=2.45", "t=1.10", "t=2.30", "t=2.05", "t=2.50", "t=1.59"],
            "seconds": [2.45, 1.10, 2.30, 2.05, 2.50, 1.59],
        }
    )


@pytest.fixture(scope="module")
def db() -> Counted:
    counted = Counted(told)
    counted.add("venue", venues()).add("event", events()).add("bearer", bearers())
    # The written order of predicates, so that what is asked is one number.
    counted.session.sql("SET blendfusion.rules_off = 'predicate_order'")
    return counted


@dataclass(frozen=True)
class Case:
    sql: str
    twin: str
    """The same without calls."""
    asked: str
    """SQL that gives the number of values that must be asked."""
    ordered: bool = False


def candles(column: str = "reviews") -> str:
    return f"llm_filter('holds candles', {column})"


def garden(column: str = "reviews") -> str:
    return f"llm_filter('holds garden', {column})"


def mood(column: str = "reviews") -> str:
    return f"llm_map('tell mood', {column})"


def weak(column: str = "notes") -> str:
    return f"llm_bool('tell weak', {column})"


def texts(where: str, *, of: str = "reviews", table: str = "venue") -> str:
    """How many different texts may be asked about: those of the rows that hold one."""
    known = "candles IS NOT NULL" if of == "reviews" else f"{of} IS NOT NULL"
    return f"SELECT count(DISTINCT CAST({of} AS VARCHAR)) FROM {table} WHERE {known} AND ({where})"


CASES = {
    "1 cheap filters first": Case(
        f"SELECT id FROM venue WHERE place = 'Oslo' AND rating >= 4 AND {candles()}",
        "SELECT id FROM venue WHERE place = 'Oslo' AND rating >= 4 AND candles",
        texts("place = 'Oslo' AND rating >= 4"),
    ),
    "2 the call written first": Case(
        f"SELECT id FROM venue WHERE {candles()} AND rating >= 4 AND place = 'Oslo'",
        "SELECT id FROM venue WHERE place = 'Oslo' AND rating >= 4 AND candles",
        texts("place = 'Oslo' AND rating >= 4"),
    ),
    "6 the second filter sees survivors": Case(
        f"SELECT id FROM venue WHERE {candles()} AND {garden()}",
        "SELECT id FROM venue WHERE candles AND garden",
        f"SELECT ({texts('TRUE')}) + ({texts('candles')})",
    ),
    "7 a limit above an aggregate": Case(
        f"SELECT count(*) FROM venue WHERE {candles()} LIMIT 3",
        "SELECT count(*) FROM venue WHERE candles",
        texts("TRUE"),
    ),
    "8 a limit above groups": Case(
        f"SELECT place, count(*) AS n FROM venue WHERE {candles()} GROUP BY 1 "
        "ORDER BY 2 DESC, 1 LIMIT 1",
        "SELECT place, count(*) AS n FROM venue WHERE candles GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1",
        texts("TRUE"),
    ),
    "10 a disjunction of two calls": Case(
        f"SELECT id FROM venue WHERE {candles()} OR {garden()}",
        "SELECT id FROM venue WHERE candles OR garden",
        f"SELECT ({texts('TRUE')}) + ({texts('candles IS NOT TRUE')})",
    ),
    "11 what a cheap disjunct keeps is not asked": Case(
        f"SELECT id FROM venue WHERE ({candles()} OR 'fusion' = ANY(cuisines)) AND place = 'Oslo'",
        "SELECT id FROM venue WHERE (candles OR 'fusion' = ANY(cuisines)) AND place = 'Oslo'",
        texts("place = 'Oslo' AND ('fusion' = ANY(cuisines)) IS NOT TRUE"),
    ),
    "12 a cheap disjunct that may be NULL": Case(
        f"SELECT id FROM venue WHERE rating >= 3 OR {candles()}",
        "SELECT id FROM venue WHERE rating >= 3 OR candles",
        texts("(rating >= 3) IS NOT TRUE"),
    ),
    "13 NOT (=)": Case(
        f"SELECT id FROM venue WHERE NOT ({mood()} = 'calm')",
        "SELECT id FROM venue WHERE NOT (mood = 'calm')",
        texts("TRUE"),
    ),
    "13 <>": Case(
        f"SELECT id FROM venue WHERE {mood()} <> 'calm'",
        "SELECT id FROM venue WHERE mood <> 'calm'",
        texts("TRUE"),
    ),
    "13 NOT IN": Case(
        f"SELECT id FROM venue WHERE {mood()} NOT IN ('calm')",
        "SELECT id FROM venue WHERE mood <> 'calm'",
        texts("TRUE"),
    ),
    "13 NOT of a filter": Case(
        f"SELECT id FROM venue WHERE NOT {candles()}",
        "SELECT id FROM venue WHERE NOT candles",
        texts("TRUE"),
    ),
    "14 IS NULL": Case(
        f"SELECT id FROM venue WHERE {mood()} IS NULL",
        "SELECT id FROM venue WHERE mood IS NULL",
        texts("TRUE"),
    ),
    "14 IS NOT NULL": Case(
        f"SELECT id FROM venue WHERE {mood()} IS NOT NULL",
        "SELECT id FROM venue WHERE mood IS NOT NULL",
        texts("TRUE"),
    ),
    "15 one question for two literals": Case(
        f"SELECT id FROM venue WHERE (price = 'cheap' OR price = 'moderate') "
        f"AND ({mood()} = 'calm' OR {mood()} = 'casual') AND {garden()}",
        "SELECT id FROM venue WHERE price IN ('cheap', 'moderate') AND mood IN ('calm', 'casual') "
        "AND garden",
        "SELECT (" + texts("price <> 'luxury'") + ") + "
        "(" + texts("price <> 'luxury' AND mood IN ('calm', 'casual')") + ")",
    ),
    "16 IN a list of literals": Case(
        f"SELECT id FROM venue WHERE {mood()} IN ('calm', 'loud')",
        "SELECT id FROM venue WHERE mood IN ('calm', 'loud')",
        texts("TRUE"),
    ),
    "17 an open question in WHERE, SELECT, CASE and HAVING": Case(
        f"SELECT {mood()} = 'calm' AS is_calm, CASE WHEN {mood()} = 'calm' THEN 1 ELSE 0 END AS one, "
        f"count(*) FROM venue WHERE {mood()} = 'calm' OR place = 'Oslo' GROUP BY {mood()} "
        f"HAVING {mood()} = 'calm' OR count(*) > 1",
        "SELECT mood = 'calm', CASE WHEN mood = 'calm' THEN 1 ELSE 0 END, count(*) FROM venue "
        "WHERE mood = 'calm' OR place = 'Oslo' GROUP BY mood HAVING mood = 'calm' OR count(*) > 1",
        texts("TRUE"),
    ),
    "18 selected and filtered is one question": Case(
        f"SELECT id, {candles()} FROM venue WHERE {candles()} AND place = 'Oslo'",
        "SELECT id, candles FROM venue WHERE candles AND place = 'Oslo'",
        texts("place = 'Oslo'"),
    ),
    "19 a summary above a limit": Case(
        "SELECT id, llm_map('upper', reviews) FROM venue ORDER BY rating DESC NULLS LAST, id LIMIT 3",
        "SELECT id, upper(CAST(reviews AS VARCHAR)) FROM venue "
        "ORDER BY rating DESC NULLS LAST, id LIMIT 3",
        "SELECT count(DISTINCT CAST(reviews AS VARCHAR)) FROM "
        "(SELECT reviews FROM venue ORDER BY rating DESC NULLS LAST, id LIMIT 3)",
        ordered=True,
    ),
    "20 a cast": Case(
        "SELECT id FROM venue WHERE llm_map('tell stars', reviews)::int > 3 AND place = 'Oslo'",
        "SELECT id FROM venue WHERE stars > 3 AND place = 'Oslo'",
        texts("place = 'Oslo'"),
    ),
    "21 BETWEEN": Case(
        "SELECT id FROM venue WHERE llm_map('tell stars', reviews) BETWEEN 2 AND 4",
        "SELECT id FROM venue WHERE stars BETWEEN 2 AND 4",
        texts("TRUE"),
    ),
    "21 a whole number": Case(
        "SELECT id FROM venue WHERE llm_map('tell stars', reviews) > 3",
        "SELECT id FROM venue WHERE stars > 3",
        texts("TRUE"),
    ),
    "21 a number": Case(
        "SELECT id FROM venue WHERE llm_map('tell score', reviews) >= 2.5",
        "SELECT id FROM venue WHERE score >= 2.5",
        texts("TRUE"),
    ),
    "21 = TRUE": Case(
        "SELECT id FROM venue WHERE llm_map('holds candles', reviews) = TRUE",
        "SELECT id FROM venue WHERE candles = TRUE",
        texts("TRUE"),
    ),
    "21 IN whole numbers": Case(
        "SELECT id FROM venue WHERE llm_map('tell stars', reviews) IN (1, 4)",
        "SELECT id FROM venue WHERE stars IN (1, 4)",
        texts("TRUE"),
    ),
    "22 an answer compared with a column": Case(
        f"SELECT id FROM venue WHERE {mood()} = name",
        "SELECT id FROM venue WHERE mood = name",
        texts("TRUE"),
    ),
    "22 an answer compared with a literal on the left": Case(
        f"SELECT id FROM venue WHERE 'calm' = {mood()}",
        "SELECT id FROM venue WHERE 'calm' = mood",
        texts("TRUE"),
    ),
    "22 an answer among the items of a list column": Case(
        f"SELECT id FROM venue WHERE {mood()} = ANY(cuisines)",
        "SELECT id FROM venue WHERE mood = ANY(cuisines)",
        texts("cuisines IS NOT NULL"),
    ),
    "22 two answers compared": Case(
        "SELECT b.bearer FROM bearer a JOIN bearer b ON a.sport = b.sport AND a.year < b.year "
        "WHERE llm_map('tell city', a.about_games) = llm_map('tell city', b.about_games)",
        "SELECT 'Cy Dahl'",
        "SELECT (SELECT count(DISTINCT v) FROM (SELECT a.about_games AS v FROM bearer a JOIN "
        "bearer b ON a.sport = b.sport AND a.year < b.year UNION ALL SELECT b.about_games FROM "
        "bearer a JOIN bearer b ON a.sport = b.sport AND a.year < b.year))",
    ),
    "23 an expression as context": Case(
        "SELECT eid FROM event WHERE "
        "llm_filter('holds flood', COALESCE(notes, '') || ' ' || COALESCE(tags, '')) "
        "AND country = 'CO'",
        "SELECT eid FROM event WHERE flood AND country = 'CO'",
        "SELECT count(DISTINCT trim(COALESCE(notes, '') || ' ' || COALESCE(tags, ''))) FROM event "
        "WHERE country = 'CO' AND (notes IS NOT NULL OR tags IS NOT NULL)",
    ),
    "24 lists without text": Case(
        f"SELECT id, {candles()} FROM venue WHERE id >= 19",
        "SELECT id, candles FROM venue WHERE id >= 19",
        "SELECT 1",
    ),
    "30 no calls": Case(
        "SELECT id FROM venue WHERE price = 'luxury' AND name ILIKE '%A%'",
        "SELECT id FROM venue WHERE price = 'luxury' AND name ILIKE '%A%'",
        "SELECT 0",
    ),
    "31 a selective join": Case(
        f"SELECT eid FROM venue JOIN event ON id = venue WHERE place = 'Bergen' AND {weak()}",
        "SELECT eid FROM venue JOIN event ON id = venue WHERE place = 'Bergen' AND weak",
        "SELECT count(DISTINCT notes) FROM venue JOIN event ON id = venue WHERE place = 'Bergen'",
    ),
    "31 a join that repeats rows": Case(
        f"SELECT b.eid FROM event a JOIN event b ON a.country = b.country WHERE {weak('b.notes')}",
        "SELECT b.eid FROM event a JOIN event b ON a.country = b.country WHERE b.weak",
        texts("TRUE", of="notes", table="event"),
    ),
    "32 a self-join with a call on one side": Case(
        "SELECT a.seconds - b.seconds FROM bearer a, bearer b WHERE a.year = '1988' "
        "AND b.year > '1992' AND llm_date('tell born', b.about_bearer) = DATE '1960-02-03'",
        "SELECT a.seconds - b.seconds FROM bearer a, bearer b WHERE a.year = '1988' "
        "AND b.year > '1992' AND b.born = DATE '1960-02-03'",
        "SELECT count(DISTINCT about_bearer) FROM bearer WHERE year > '1992'",
    ),
    "33 a left join without a partner": Case(
        f"SELECT id, eid, {weak()} FROM venue LEFT JOIN event ON id = venue AND country = 'CO'",
        "SELECT id, eid, weak FROM venue LEFT JOIN event ON id = venue AND country = 'CO'",
        "SELECT count(DISTINCT notes) FROM venue LEFT JOIN event ON id = venue AND country = 'CO'",
    ),
    "34 IN a subquery with a call": Case(
        f"SELECT name FROM venue WHERE id IN (SELECT venue FROM event WHERE month = 1 AND {weak()})",
        "SELECT name FROM venue WHERE id IN (SELECT venue FROM event WHERE month = 1 AND weak)",
        "SELECT count(DISTINCT notes) FROM event WHERE month = 1 AND venue IN (SELECT id FROM venue)",
    ),
    "34 a correlated EXISTS": Case(
        f"SELECT name FROM venue WHERE EXISTS (SELECT 1 FROM event WHERE venue = id AND {weak()})",
        "SELECT name FROM venue WHERE EXISTS (SELECT 1 FROM event WHERE venue = id AND weak)",
        "SELECT count(DISTINCT notes) FROM event WHERE venue IN (SELECT id FROM venue)",
    ),
    "35 a scalar subquery": Case(
        f"SELECT id FROM venue WHERE rating > (SELECT avg(rating) FROM venue WHERE {candles()})",
        "SELECT id FROM venue WHERE rating > (SELECT avg(rating) FROM venue WHERE candles)",
        texts("rating IS NOT NULL"),
    ),
    "36 two CTEs on one base": Case(
        "WITH base AS (SELECT eid, notes FROM event WHERE month = 2), "
        f"weak AS (SELECT eid FROM base WHERE {weak()}), "
        f"rest AS (SELECT eid FROM base WHERE NOT {weak()}) "
        "SELECT (SELECT count(*) FROM weak) AS a, (SELECT count(*) FROM rest) AS b",
        "SELECT (SELECT count(*) FROM event WHERE month = 2 AND weak) AS a, "
        "(SELECT count(*) FROM event WHERE month = 2 AND NOT weak) AS b",
        texts("month = 2", of="notes", table="event"),
    ),
    "37 a computed column of a CTE": Case(
        "WITH low AS (SELECT eid AS number, LOWER(notes) AS line, month FROM event WHERE month = 1) "
        f"SELECT number, month FROM low WHERE {weak('line')}",
        "SELECT eid, month FROM event WHERE month = 1 AND weak",
        texts("month = 1", of="notes", table="event"),
    ),
    "38 flags under CASE": Case(
        f"SELECT month, SUM(CASE WHEN {weak()} AND actor = 'State' THEN 1 END), "
        f"SUM(CASE WHEN actor = 'State' AND {weak()} AND country = 'CO' THEN 1 END) "
        "FROM event GROUP BY month",
        "SELECT month, SUM(CASE WHEN weak AND actor = 'State' THEN 1 END), "
        "SUM(CASE WHEN weak AND actor = 'State' AND country = 'CO' THEN 1 END) "
        "FROM event GROUP BY month",
        texts("actor = 'State'", of="notes", table="event"),
    ),
    "39 HAVING on the text of a group": Case(
        "SELECT country FROM event GROUP BY country "
        "HAVING llm_filter('holds flood', string_agg(notes, ';' ORDER BY eid)) AND count(*) > 2",
        "SELECT country FROM event GROUP BY country HAVING bool_or(flood)",
        "SELECT count(DISTINCT country) FROM event",
    ),
    "39 cheap HAVING first": Case(
        "SELECT month, country FROM event GROUP BY month, country "
        "HAVING llm_qa('size', notes, returns => 'int') > 1 AND min(eid) < 4",
        "SELECT month, country FROM event GROUP BY month, country "
        "HAVING count(notes) > 1 AND min(eid) < 4",
        "SELECT count(*) FROM (SELECT month, country FROM event GROUP BY month, country "
        "HAVING min(eid) < 4 AND count(notes) > 0)",
    ),
    "40 one row of a key": Case(
        "SELECT llm_map('tell city', about_games) FROM bearer WHERE year = '2000'",
        "SELECT 'Molde'",
        "SELECT 1",
    ),
    "41 an extraction for the hits of a filter": Case(
        "SELECT bearer, llm_date('tell born', about_bearer) FROM bearer "
        "WHERE llm_filter('holds city=Voss', about_games)",
        "SELECT bearer, born FROM bearer WHERE bearer IN ('Bo Lind', 'Di Moe')",
        "SELECT count(DISTINCT about_games) + 2 FROM bearer",
    ),
    "42 the latest of a few dates": Case(
        "SELECT MAX(llm_map('tell born', about_bearer)::date) FROM bearer WHERE year IN ('1992', '2008')",
        "SELECT DATE '1979-01-31'",
        "SELECT 2",
    ),
    "43 unknown dates do not win": Case(
        "SELECT year FROM bearer ORDER BY llm_map('tell born', about_bearer)::date DESC LIMIT 1",
        "SELECT '2004'",
        "SELECT count(DISTINCT about_bearer) FROM bearer",
    ),
    "44 UNION ALL": Case(
        f"SELECT eid FROM event WHERE month = 1 AND {weak()} UNION ALL "
        f"SELECT eid FROM event WHERE month <= 2 AND {weak()}",
        "SELECT eid FROM event WHERE month = 1 AND weak UNION ALL "
        "SELECT eid FROM event WHERE month <= 2 AND weak",
        texts("month <= 2", of="notes", table="event"),
    ),
    "44 EXCEPT": Case(
        f"SELECT country FROM event WHERE {weak()} EXCEPT "
        "SELECT country FROM event WHERE llm_filter('holds flood', notes) AND month = 1",
        "SELECT country FROM event WHERE weak EXCEPT "
        "SELECT country FROM event WHERE flood AND month = 1",
        "SELECT 14",  # of each country texts until one passes, instead of all 18
    ),
    "45 a window over answers": Case(
        "SELECT eid FROM (SELECT eid, row_number() OVER (PARTITION BY country "
        "ORDER BY llm_int('tell n', notes), eid) AS r FROM event WHERE month < 3) WHERE r = 1",
        "SELECT eid FROM (SELECT eid, row_number() OVER (PARTITION BY country "
        "ORDER BY n, eid) AS r FROM event WHERE month < 3) WHERE r = 1",
        texts("month < 3", of="notes", table="event"),
    ),
    "47 an impossible filter": Case(
        f"SELECT id, {mood()} FROM venue WHERE 1 = 0 AND {candles()}",
        "SELECT id, mood FROM venue WHERE 1 = 0",
        "SELECT 0",
    ),
    "47 a filter that no row passes": Case(
        f"SELECT id, {mood()} FROM venue WHERE price = 'free' AND {candles()}",
        "SELECT id, mood FROM venue WHERE price = 'free'",
        "SELECT 0",
    ),
    "49 the oldest of the slow single rowers": Case(
        "SELECT bearer FROM bearer WHERE sport = 'rowing' AND NOT team "
        "AND llm_float('tell t', result) > 2.1 "
        "ORDER BY llm_date('tell born', about_bearer) LIMIT 1",
        "SELECT 'Ada Holm'",
        "SELECT 2 + 1",
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_rows_are_those_of_plain_sql_and_values_those_that_must_be_asked(
    title: str, db: Counted
) -> None:
    case = CASES[title]
    rows, expected = db.rows(case.sql), db.rows(case.twin)
    if case.ordered:
        assert rows == expected
    assert unordered(rows) == unordered(expected)
    assert db.asked(case.sql) == db.number(case.asked)


HITS = f"FROM venue WHERE rating >= 3 AND {candles()}"
TRUE_HITS = "FROM venue WHERE rating >= 3 AND candles"


def until(db: Counted, nth: int, order: str) -> int:
    """How many texts must be read, in an order, before the ``nth`` hit is seen."""
    last = db.number(
        f"SELECT r FROM (SELECT row_number() OVER (ORDER BY {order}) AS r, candles, "
        f"rating FROM venue WHERE rating >= 3) WHERE candles ORDER BY r "
        f"LIMIT 1 OFFSET {nth - 1}"
    )
    return db.number(
        "SELECT count(DISTINCT CAST(reviews AS VARCHAR)) FROM (SELECT reviews, candles, "
        f"row_number() OVER (ORDER BY {order}) AS r FROM venue WHERE rating >= 3) "
        f"WHERE r <= {last} AND candles IS NOT NULL"
    )


@pytest.mark.parametrize(("count", "offset"), [(3, 0), (2, 3), (1, 0)], ids=["3", "4", "one"])
def test_3_4_a_limit_is_filled_and_stops_soon_after(count: int, offset: int, db: Counted) -> None:
    limited = db.rows(f"SELECT id {HITS} LIMIT {count} OFFSET {offset}")
    every = db.rows(f"SELECT id {HITS}")
    assert limited == every[offset : offset + count]
    ideal = until(db, offset + count, "id")
    asked = db.asked(f"SELECT id {HITS} LIMIT {count} OFFSET {offset}")
    assert ideal <= asked <= 2 * ideal  # a chunk is at most twice the one before


def test_3_a_limit_that_cannot_be_filled_reads_everything(db: Counted) -> None:
    sql = f"SELECT id {HITS} LIMIT 20"
    assert unordered(db.rows(sql)) == unordered(db.rows(f"SELECT id {TRUE_HITS}"))
    assert db.asked(sql) == db.number(texts("rating >= 3"))


@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_5_the_first_hit_in_a_cheap_order(direction: str, db: Counted) -> None:
    order = f"visits {direction}, id"
    sql = f"SELECT id {HITS} ORDER BY {order} LIMIT 1"
    assert db.rows(sql) == db.rows(f"SELECT id {TRUE_HITS} ORDER BY {order} LIMIT 1")
    ideal = until(db, 1, order)
    assert ideal <= db.asked(sql) <= 2 * ideal


def test_6_two_filters_in_a_cheap_order(db: Counted) -> None:
    end = "ORDER BY visits DESC, rating DESC LIMIT 3"
    sql = f"SELECT id {HITS} AND {garden()} {end}"
    assert db.rows(sql) == db.rows(f"SELECT id {TRUE_HITS} AND garden {end}")
    assert db.asked(sql) <= db.number(
        f"SELECT ({texts('rating >= 3')}) + ({texts('rating >= 3 AND candles')})"
    )


def test_9_a_limit_above_distinct(db: Counted) -> None:
    every = db.rows(f"SELECT DISTINCT place {TRUE_HITS}")
    rows = db.rows(f"SELECT DISTINCT place {HITS} LIMIT 2")
    assert len(rows) == len(set(rows)) == 2
    assert set(rows) <= set(every)
    assert db.asked(f"SELECT DISTINCT place {HITS} LIMIT 2") <= db.number(texts("rating >= 3"))


def test_13_all_ways_to_say_no_agree(db: Counted) -> None:
    ways = [
        f"{mood()} <> 'calm'",
        f"NOT ({mood()} = 'calm')",
        f"{mood()} NOT IN ('calm')",
        f"({mood()} = 'calm') IS FALSE",
        f"CASE WHEN {mood()} = 'calm' THEN FALSE ELSE {mood()} IS NOT NULL END",
    ]
    results = [unordered(db.rows(f"SELECT id FROM venue WHERE {way}")) for way in ways]
    assert results == [results[0]] * len(ways)


def test_14_the_first_answer_that_there_is_ends_the_work(db: Counted) -> None:
    assert db.asked(f"SELECT id FROM venue WHERE {mood()} IS NOT NULL LIMIT 1") == 1


def test_14_no_answer_is_null_and_not_text() -> None:
    silent = Counted(told).add("t", {"id": [1, 2], "x": ["mood=calm", "nothing"]})
    with pytest.warns(bf.AnswerWarning, match="1 value"):
        assert silent.rows(f"SELECT id FROM t WHERE {mood('x')} IS NULL") == [(2,)]


def test_15_both_literals_are_said_of_one_question(db: Counted) -> None:
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(f"SELECT id FROM venue WHERE {mood()} = 'calm' OR {mood()} = 'casual'")
    assert {call.constraint.literals for call in db.model.calls} == {("calm", "casual")}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("llm_map('tell stars', reviews)::int > 3", "integer"),
        ("llm_map('tell stars', reviews) BETWEEN 2 AND 4", "integer"),
        ("3 < llm_map('tell stars', reviews)", "integer"),
        ("llm_map('tell score', reviews) >= 2.5", "number"),
        ("llm_map('tell score', reviews) BETWEEN 1 AND 2.5", "number"),
        ("llm_map('holds candles', reviews) = TRUE", "boolean"),
        ("llm_map('holds candles', reviews)", "boolean"),
        (f"{mood()} IN ('calm', 'loud')", "text"),
    ],
)
def test_20_21_the_place_settles_the_type_that_is_decoded(sql: str, kind: str, db: Counted) -> None:
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(f"SELECT id FROM venue WHERE {sql}")
    assert {call.constraint.kind for call in db.model.calls} == {kind}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("id FROM venue WHERE llm_map('tell stars', reviews) = id", "integer"),
        ("id FROM venue WHERE id <> llm_map('tell stars', reviews)", "integer"),
        ("id FROM venue WHERE llm_map('tell score', reviews) >= rating", "number"),
        ("id FROM venue WHERE llm_map('tell stars', reviews) BETWEEN id AND rating", "number"),
        ("id FROM venue WHERE llm_map('holds candles', reviews) = (visits > 50)", "boolean"),
        ("year FROM bearer WHERE llm_map('tell born', about_bearer) > born", "date"),
        ("id FROM venue WHERE llm_map('tell stars', reviews) IN (SELECT id FROM venue)", "integer"),
        ("id FROM venue WHERE id IN (SELECT llm_map('tell stars', reviews) FROM venue)", "integer"),
        ("id FROM venue WHERE llm_map('tell stars', reviews) = ANY([id, visits])", "integer"),
        ("id FROM venue WHERE id = (SELECT llm_qa('size', reviews) AS n FROM venue)", "integer"),
        ("id FROM venue WHERE 30 > (SELECT llm_qa('size', reviews) FROM venue)", "integer"),
        (f"id FROM venue WHERE {mood()} = name", "text"),
    ],
)
def test_22_an_answer_beside_a_column_is_of_its_type(sql: str, kind: str, db: Counted) -> None:
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(f"SELECT {sql}")
    assert {call.constraint.kind for call in db.model.calls} == {kind}


def test_22_a_call_is_one_call_however_it_is_spaced(db: Counted) -> None:
    db.session.clear_cache()
    db.model.calls.clear()
    db.rows(
        "SELECT id FROM venue WHERE llm_map('tell stars', reviews) < id "
        "AND LLM_MAP( 'tell stars',reviews ) > 1.5"
    )
    assert {call.constraint.kind for call in db.model.calls} == {"number"}


def test_20_what_cannot_be_cast_is_null_and_the_query_goes_on() -> None:
    def vague(call: bf.Request) -> Value | None:
        return "about four" if "many" in (call.values[0] or "") else told(call)

    counted = Counted(vague, show_values="on").add(
        "t", {"id": [1, 2, 3], "x": ["n=4", "many", "n=2"]}
    )
    sql = "SELECT id, llm_map('tell n', x)::int FROM t WHERE COALESCE(llm_map('tell n', x)::int, 9) > 3"
    with pytest.warns(bf.AnswerWarning, match="'about four'"):
        assert counted.rows(sql) == [(1, 4), (2, None)]


def test_24_a_list_that_holds_text_beside_nothing_is_asked(db: Counted) -> None:
    counted = Counted(told).add("t", {"x": [["", None, "mood=calm"], ["", None], [[]]][:2]})
    assert counted.rows(f"SELECT {mood('x')} FROM t") == [("calm",), (None,)]
    assert counted.asked(f"SELECT {mood('x')} FROM t") == 1


def test_25_the_items_of_one_row(db: Counted) -> None:
    sql = (
        "SELECT id, line FROM (SELECT id, unnest(reviews) AS line FROM venue WHERE id = 3) "
        "WHERE llm_filter('holds candles', line) LIMIT 1"
    )
    assert db.rows(sql) == [(3, "candles, garden")]
    assert db.asked(sql) == 2


def test_25_the_first_item_of_one_row_ends_the_work(db: Counted) -> None:
    sql = (
        "SELECT id, line FROM (SELECT id, unnest(reviews) AS line FROM venue WHERE id = 3) "
        "WHERE llm_filter('holds mood', line) LIMIT 1"
    )
    assert len(db.rows(sql)) == 1
    assert db.asked(sql) == 1


def test_26_a_summary_of_the_items_of_a_group(db: Counted) -> None:
    sql = (
        "SELECT place, llm_qa('size', line, returns => 'int') FROM (SELECT place, unnest(reviews) "
        "AS line FROM venue WHERE id < 8) GROUP BY place"
    )
    assert unordered(db.rows(sql)) == [("Bergen", 4), ("Narvik", 4), ("Oslo", 8)]
    assert db.asked(sql) == 3


def test_26_a_summary_of_the_items_of_a_joined_group(db: Counted) -> None:
    sql = (
        "SELECT e.country, llm_qa('size', v.line, returns => 'int') FROM (SELECT id, unnest(reviews) "
        "AS line FROM venue) v JOIN event e ON e.venue = v.id WHERE e.month = 1 AND e.country = 'CO' "
        "GROUP BY e.country"
    )
    assert db.rows(sql) == db.rows(
        "SELECT 'CO', count(*) FROM (SELECT id, unnest(reviews) AS line FROM "
        "venue) v JOIN event e ON e.venue = v.id WHERE e.month = 1 AND e.country = 'CO' AND trim(line) <> ''"
    )
    assert db.asked(sql) == 1


def test_37_a_limited_cte_under_a_limited_call(db: Counted) -> None:
    sql = (
        "WITH some AS (SELECT eid AS number, LOWER(notes) AS line, month FROM event "
        f"ORDER BY eid LIMIT 5) SELECT number, month FROM some WHERE {weak('line')} LIMIT 1"
    )
    assert db.rows(sql) == [(0, 1)]
    assert db.asked(sql) == 1
    none = sql.replace(weak("line"), "llm_filter('holds nothing', line)")
    assert db.rows(none) == []
    assert db.asked(none) == 5


def test_44_what_two_branches_share_is_asked_once(db: Counted) -> None:
    branch = f"SELECT eid FROM event WHERE month = 1 AND {weak()}"
    assert db.asked(f"{branch} UNION ALL {branch}") == db.asked(branch)
    assert db.asked(f"{branch} INTERSECT {branch}") == db.asked(branch)


def test_46_a_recursive_query_with_a_call_beside_it(db: Counted) -> None:
    sql = (
        "WITH RECURSIVE up AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM up WHERE k < 3) "
        f"SELECT k, eid FROM up JOIN event ON eid = k WHERE {weak()}"
    )
    assert unordered(db.rows(sql)) == unordered(db.rows(sql.replace(weak(), "weak")))
    assert db.asked(sql) == 3


@pytest.mark.parametrize("where", ["1 = 0", "price = 'free'", "id > 100", "NULL"])
def test_47_an_impossible_filter_needs_no_model(where: str) -> None:
    with bf.connect("openai:none@http://127.0.0.1:9/v1") as session:  # nobody answers there
        session.from_arrow(venues(), name="venue")
        sql = f"SELECT id, {mood()} FROM venue WHERE {where} AND {candles()}"
        assert session.sql(sql).to_pylist() == []


@pytest.mark.parametrize("title", CASES)
def test_48_a_new_row_asks_at_most_one_value_a_question(title: str, db: Counted) -> None:
    for asked in db.asked_for_a_new_row(CASES[title].sql):
        assert max(asked.values(), default=0) <= 1


def test_48_a_repeated_query_asks_nothing_and_a_new_row_one_value() -> None:
    counted = Counted(told).add("t", {"x": ["mood=calm", "mood=loud", "mood=calm"]})
    sql = f"SELECT count(*) FROM t WHERE {mood('x')} = 'calm'"
    assert counted.rows(sql) == [(2,)]
    assert len(counted.model.calls) == 2
    assert counted.rows(sql) == [(2,)]
    assert len(counted.model.calls) == 2
    counted.session.deregister_table("t")
    counted.add("t", {"x": ["mood=calm", "mood=loud", "mood=calm", "mood=calm, too"]})
    assert counted.rows(sql) == [(3,)]
    assert len(counted.model.calls) == 3
