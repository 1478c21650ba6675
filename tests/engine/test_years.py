"""Dates and moments of every year are answers: in every function, comparison and field."""

from __future__ import annotations

import datetime

import pytest

import blendfusion as bf
from blendfusion.types import Request

DAYS = {"first": (1, 1, 1), "old": (1492, 10, 12), "late": (1815, 6, 9), "last": (9999, 12, 31)}


def answer(request: Request) -> object:
    day = datetime.date(*DAYS[str(request.values[0])])
    moment = datetime.datetime(day.year, day.month, day.day, 12, 30)
    kinds = {"date": day, "timestamp": moment, "list": [day], "struct": {"d": day, "m": moment}}
    return kinds[request.constraint.kind]


def column(expression: str, value: str) -> object:
    session = bf.connect(bf.ScriptedModel(answer), cache=None)  # type: ignore[arg-type]
    session.from_pydict({"x": [value], "m": [datetime.datetime(1700, 1, 1)]}, name="t")
    [row] = session.sql(f"SELECT {expression} AS z FROM t").to_pylist()
    return row["z"]


@pytest.mark.parametrize("value", DAYS)
def test_an_answer_of_any_year_is_a_value(value: str) -> None:
    day = datetime.date(*DAYS[value])
    moment = datetime.datetime(day.year, day.month, day.day, 12, 30)
    assert column("llm_date('When?', x, evidence => false)", value) == day
    assert column("llm_map('When?', x)::date", value) == day
    assert column("llm_map('When?', x)::timestamp", value) == moment
    assert column("CAST(llm_map('When?', x) AS TIMESTAMP)", value) == moment
    assert column("max(llm_map('When?', x)::timestamp)", value) == moment
    assert column("llm_list('When?', x, returns => 'list[date]')", value) == [day]
    fields = {"d": day, "m": moment}
    assert column("llm_extract(x, 'd DATE, m TIMESTAMP', evidence => false)", value) == fields


@pytest.mark.parametrize(
    ("comparison", "true_of"),
    [
        ("llm_map('When?', x) < DATE '1900-01-01'", ("first", "old", "late")),
        ("llm_map('When?', x) < TIMESTAMP '1900-01-01 00:00:00'", ("first", "old", "late")),
        ("llm_map('When?', x)::timestamp > m", ("late", "last")),
        ("llm_map('When?', x)::timestamp BETWEEN '1800-01-01' AND '1900-01-01'", ("late",)),
        ("date_part('year', llm_date('When?', x, evidence => false)) = 1492", ("old",)),
    ],
)
def test_a_comparison_holds_for_any_year(comparison: str, true_of: tuple[str, ...]) -> None:
    assert tuple(value for value in DAYS if column(comparison, value)) == true_of
