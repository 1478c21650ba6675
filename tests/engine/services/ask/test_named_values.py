"""A draft that leaves out a value which the question names has a problem."""

from __future__ import annotations

import pytest

from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.named_values import omitted_value
from blendfusion.services.ask.schema.catalog import Catalog, Column, Table

FLIGHTS = Catalog(
    (
        Table(
            "airline",
            (
                Column("name", "TEXT", values=("JetBlue Airways", "Delta", "name", "O'Hara Air")),
                Column("short", "TEXT", values=("JetBlue", "DL", "3")),
            ),
        ),
    )
)


@pytest.mark.parametrize(
    ("question", "sql", "expected"),
    [
        ("Flights of Delta?", "SELECT 1", "Delta"),
        ("Flights of Delta?", "SELECT 1 WHERE name = 'delta'", None),
        ("Flights of Delta?", "SELECT 1 WHERE name LIKE '%Delta%'", None),
        ("Flights of Delta?", "SELECT 1 WHERE llm_filter('Is it of Delta?', x)", None),
        ("Flights of jetblue airways?", "SELECT 1 WHERE name = 'JetBlue Airways'", None),
        ("Flights of jetblue airways?", "SELECT 1 WHERE short = 'JetBlue'", "JetBlue Airways"),
        ("Flights of O'Hara Air?", "SELECT 1 WHERE name = 'O''Hara Air'", None),
        ("What is the name?", "SELECT 1", None),
        ("Which 3 airlines?", "SELECT name FROM airline LIMIT 3", None),
        ("Which airline is 3?", "SELECT name FROM airline WHERE number = 3", None),
        ("Which 3 airlines?", "SELECT name FROM airline", "3"),
        ("Flights of Deltas?", "SELECT 1", None),
    ],
)
def test_the_value_that_a_draft_omits(question: str, sql: str, expected: str | None) -> None:
    found = omitted_value(question, sql, ValueIndex(FLIGHTS).links(question), FLIGHTS)
    assert (found and found.value) == expected
