"""Random queries of analysts (``support/analytic_queries.py``) have DuckDB's rows, plain and with
calls.

``pytest tests/engine/test_analytic_queries.py --cases 27000`` runs 2,000; ANALYTIC_FROM=100000 others.
"""

from __future__ import annotations

import datetime
import math
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache

import duckdb
import pytest
from analytic_queries import Analytic, analytic_query, tables
from scripts import Counted, spoken, tuples

import blendfusion as bf

DATABASES = 12
PARTS = 5
FIRST = int(os.environ.get("ANALYTIC_FROM", "0"))


@cache
def database(number: int) -> tuple[duckdb.DuckDBPyConnection, Counted]:
    other, db = duckdb.connect(), Counted(spoken)
    for name, table in tables(number).items():
        other.register(name, table)
        db.add(name, table)
    return other, db


def comparable(rows: Iterable[Sequence[object]], *, ordered: bool) -> list[tuple[object, ...]]:
    """Rows in which numbers of all types are equal to seven digits, and a date is its midnight."""
    found = [tuple(_value(value) for value in row) for row in rows]
    return found if ordered else sorted(found, key=repr)


def _value(value: object) -> object:
    if isinstance(value, list | tuple):
        return tuple(_value(one) for one in value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float | Decimal):
        number = float(value)
        return "nan" if math.isnan(number) else float(f"{number:.7g}") + 0.0
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day).isoformat()
    return value


def texts(query: Analytic) -> Iterable[str]:
    """The query, and the one with calls."""
    yield query.sql
    if query.asking != query.sql:
        yield query.asking


def carried_out(db: Counted, text: str) -> tuple[bf.Frame, list[tuple[object, ...]]]:
    """The frame of a query, which may run plain, and its rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", bf.PlanWarning)
        frame = db.session.sql(text)
        return frame, tuples(frame.to_arrow_table())


@pytest.mark.parametrize("part", range(PARTS))
def test_rows(part: int, cases: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FIRST + part, FIRST + cases * 3 // 40, PARTS):
        query = analytic_query(seed)
        other, db = database(seed % DATABASES)
        try:
            rows = other.execute(query.sql).fetchall()
        except duckdb.BinderException:  # a window in HAVING
            seen["refused"] += 1
            continue
        right = comparable(rows, ordered=query.ordered)
        for text in texts(query):
            try:
                frame, rows = carried_out(db, text)
                found = comparable(rows, ordered=query.ordered)
            except Exception as problem:
                raise AssertionError((seed, text)) from problem
            assert found == right, (seed, text)
            seen["asking"] += bool(frame.prepared.calls)
            seen["plain"] += frame.prepared.reason is not None
        seen["queries"] += 1
    assert seen["refused"] <= 0.02 * seen["queries"] + 2
    assert seen["asking"] >= 0.2 * seen["queries"] - 2
    assert seen["plain"] <= 0.06 * seen["asking"] + 2, "too many queries run plain"


DIALECTS = {
    "CAST(1.5 AS INT)": (1, 2),  # DataFusion cuts, DuckDB rounds
    "7 / 2": (3, 3.5),
    "CAST(1 AS DECIMAL(10, 2)) / 3": (0.333333, 1 / 3),  # a decimal, a double
    "round(avg(CAST(v AS DECIMAL(4, 2))), 2)": (9.98, 9.97),  # the same
}


@pytest.mark.parametrize("expression", DIALECTS)
def test_what_the_two_systems_mean_differently(expression: str) -> None:
    """The generator leaves these out; docs/dialects.md has them."""
    sql = f"SELECT {expression} AS z FROM (VALUES (0.05), (19.90)) AS t(v)"
    ours, theirs = DIALECTS[expression]
    found = bf.connect(bf.ScriptedModel(spoken)).sql(sql).to_pylist()[0]["z"]
    assert float(found) == pytest.approx(float(ours))
    row = duckdb.connect().execute(sql).fetchone()
    assert row is not None
    assert float(row[0]) == pytest.approx(float(theirs))
