"""Conditions on casts and quotients, below sorts, limits and windows: DataFusion 55 alone would take
a column of which many values pass for a constant, and leave it out of the keys."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

import blendfusion as bf

CONDITIONS = {
    "ts": [
        "CAST(ts AS DATE) = DATE '2024-05-01'",
        "ts::date = '2024-05-02'",
        "CAST(ts AS DATE) BETWEEN DATE '2024-05-01' AND DATE '2024-05-01'",
        "CAST(ts AS DATE) >= DATE '2024-05-02' AND CAST(ts AS DATE) < DATE '2024-05-03'",
        "CAST(ts AS TIMESTAMP(0)) = TIMESTAMP '2024-05-01 03:00:00'",
        "CAST(ts AS DATE) IN (DATE '2024-05-01')",
    ],
    "i": ["i / 3 = 0", "i / 3 = 2", "i / 2 + 1 = 1", "i / 3 BETWEEN 1 AND 1", "(i + 1) / 3 = 1"],
    "f": ["CAST(f AS BIGINT) = 1", "CAST(f AS INT) = 0", "CAST(f * 2 AS INT) = 3"],
    "d": [
        "CAST(d AS BIGINT) = 1",
        "CAST(d AS DECIMAL(3, 0)) = 2",
        "CAST(d AS INT) IN (0)",
        "d::int BETWEEN 1 AND 1",
    ],
}


def make_rows(rng: random.Random) -> list[dict[str, Any]]:
    start = datetime.datetime(2024, 5, 1)
    return [
        {
            "n": n,
            "ts": start + datetime.timedelta(minutes=rng.randrange(3 * 24 * 60)),
            "i": rng.randrange(-9, 10),
            "f": rng.uniform(-2, 3),
            "d": Decimal(rng.randrange(-200, 300)).scaleb(-2),
        }
        for n in range(60)
    ]


@pytest.fixture
def session() -> bf.Session:
    return bf.connect(bf.ScriptedModel(lambda call: True, fingerprint="yes"), cache=None)


CASES = [(column, condition) for column, some in CONDITIONS.items() for condition in some]
FORMS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda column, condition: f"SELECT n, {column} AS x FROM t WHERE {condition}",
    "derived": lambda column, condition: (
        f"SELECT n, x FROM (SELECT n, {column} AS x, ({condition}) AS passes FROM t) WHERE passes"
    ),
    "joined": lambda column, condition: (
        f"SELECT t.n, {column} AS x FROM t JOIN u ON t.n = u.m WHERE {condition}"
    ),
    "asked": lambda column, condition: (
        f"SELECT n, {column} AS x FROM t WHERE llm_filter('q?', CAST(n AS VARCHAR)) AND {condition}"
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("column", "condition"), CASES)
def test_keys_of_orders_and_windows_stay(
    session: bf.Session, column: str, condition: str, form: str
) -> None:
    rows = make_rows(random.Random(f"{condition} {form}"))
    session.from_arrow(pa.Table.from_pylist(rows), "t")
    session.from_arrow(pa.table({"m": list(range(60))}), "u")
    query = FORMS[form](column, condition)
    passing = session.sql(query).to_pylist()
    assert len({row["x"] for row in passing}) > 1 or "TIMESTAMP" in condition
    by_x = sorted(passing, key=lambda row: (row["x"], -row["n"]))
    assert session.sql(f"{query} ORDER BY x, n DESC").to_pylist() == by_x
    assert session.sql(f"{query} ORDER BY x, n DESC LIMIT 3").to_pylist() == by_x[:3]
    numbered = session.sql(
        f"SELECT n, row_number() OVER (PARTITION BY x ORDER BY n DESC) AS place FROM ({query})"
    ).to_pylist()
    expected = {
        row["n"]: place
        for _, group in groupby(by_x, key=lambda row: row["x"])
        for place, row in enumerate(group, 1)
    }
    assert {row["n"]: row["place"] for row in numbered} == expected


def test_verbs_of_frames(session: bf.Session) -> None:
    rows = make_rows(random.Random(1))
    frame = session.from_arrow(pa.Table.from_pylist(rows), "t")
    day = frame.filter("CAST(ts AS DATE) = DATE '2024-05-01'").sort("ts").select("ts").to_pydict()
    expected = sorted(row["ts"] for row in rows if row["ts"].day == 1)
    assert day["ts"] == expected
    assert len(expected) > 5


def whole(value: Decimal) -> Decimal:
    return Decimal(int(value))


def rounded(value: Decimal) -> Decimal:
    return value.quantize(Decimal(1), ROUND_HALF_UP)


CASTS: dict[str, Callable[[Decimal], Decimal]] = {
    "CAST(d AS INT)": whole,
    "CAST(d AS BIGINT)": whole,
    "TRY_CAST(d AS SMALLINT)": whole,
    "d::int": whole,
    "CAST(d AS DECIMAL(4, 0))": rounded,
}
COMPARISONS: dict[str, Callable[[Decimal], bool]] = {
    "= 1": lambda value: value == 1,
    "<> 1": lambda value: value != 1,
    "> 0": lambda value: value > 0,
    "<= -1": lambda value: value <= -1,
    "IN (0, 2)": lambda value: value in (0, 2),
    "NOT IN (0, 2)": lambda value: value not in (0, 2),
    "BETWEEN 1 AND 2": lambda value: 1 <= value <= 2,
}
PLACES = {
    "where": "SELECT n FROM t WHERE {}",
    "column": "SELECT n FROM (SELECT n, ({}) AS passes FROM t) WHERE passes",
    "case": "SELECT n FROM t WHERE CASE WHEN {} THEN 1 ELSE 0 END + n > n",
    "subquery": "SELECT n FROM t WHERE n IN (SELECT n FROM t WHERE {})",
    "asked": "SELECT n FROM t WHERE llm_filter('q?', CAST(n AS VARCHAR)) AND {}",
    "filter": "SELECT n FROM t GROUP BY n HAVING count(*) FILTER (WHERE {}) > 0",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_casts_of_decimals_stay_in_comparisons(
    session: bf.Session, comparison: str, place: str
) -> None:
    """DataFusion 55 alone would compare the decimals with the literal."""
    rows = make_rows(random.Random(f"{comparison} {place}"))
    table = pa.Table.from_pylist(rows)
    decimals = table.column("d").cast(pa.decimal128(10, 2))
    session.from_arrow(table.set_column(table.column_names.index("d"), "d", decimals), "t")
    for cast, value_of in CASTS.items():
        found = session.sql(PLACES[place].format(f"{cast} {comparison}")).to_pydict()["n"]
        passes = COMPARISONS[comparison]
        assert sorted(found) == [row["n"] for row in rows if passes(value_of(row["d"]))], cast


TRIES: dict[str, Callable[[int | None], bool]] = {
    "> 5": lambda value: value is not None and value > 5,
    "<> 1": lambda value: value is not None and value != 1,
    "NOT IN (1, 3)": lambda value: value is not None and value not in (1, 3),
    "IS NULL": lambda value: value is None,
    "IS DISTINCT FROM 7": lambda value: value != 7,
    "IS NOT DISTINCT FROM NULL": lambda value: value is None,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("comparison", TRIES)
def test_what_cannot_be_cast_is_null_in_comparisons(
    session: bf.Session, comparison: str, place: str
) -> None:
    """DataFusion 55 alone would compare the number that is too large."""
    numbers = [None, 1, 7, 200, 2**40, -(2**40), 3, 127, 128]
    session.from_arrow(pa.table({"n": list(range(9)), "i": pa.array(numbers, pa.int64())}), "t")
    for kind, most in (("TINYINT", 2**7), ("INT", 2**31)):
        query = PLACES[place].format(f"TRY_CAST(i AS {kind}) {comparison}")
        found = session.sql(query).to_pydict()["n"]
        cast = [None if i is None or not -most <= i < most else i for i in numbers]
        assert sorted(found) == [n for n, i in enumerate(cast) if TRIES[comparison](i)], kind
