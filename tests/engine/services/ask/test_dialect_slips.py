"""Drafts in the SQL of other systems are translated before they are refused."""

from __future__ import annotations

import datetime

import pytest

import blendfusion as bf

DAYS = [datetime.date(2022, 12, 31), datetime.date(2023, 3, 1)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT TOP 1 amount FROM orders ORDER BY amount DESC", [2.0]),
        ("select distinct top (1) amount from orders order by amount", [1.0]),
        ("SELECT amount FROM orders WHERE YEAR(order_date) = 2023", [2.0]),
        ("SELECT amount FROM orders WHERE strftime('%Y', order_date) = '2023'", [2.0]),
        ("SELECT DATEDIFF(day, order_date, DATE '2023-03-02') FROM orders", [61, 1]),
        ("SELECT DATEDIFF('2023-03-02', order_date) FROM orders", [61, 1]),
        ('SELECT amount FROM orders WHERE status = "open"', [1.0]),
        ('SELECT "amount", YEAR("order_date") FROM orders', [1.0, 2.0]),
        ("SELECT TOP 1 YEAR(order_date) FROM orders ORDER BY amount DESC", [2023]),
    ],
)
def test_a_draft_of_another_system_is_translated(query: str, rows: list[object]) -> None:
    drafts: list[str] = []

    def write(call: bf.Request) -> str:
        drafts.append(query)
        return query

    session = bf.connect(bf.ScriptedModel(write), cache=None, progress="off", show_values="on")
    columns = {"order_date": DAYS, "amount": [1.0, 2.0], "status": ["open", "paid"]}
    session.from_pydict(columns, name="orders")
    draft = session.ask("Which orders?", rounds=0)
    assert draft.run().column(0).to_pylist() == rows
    assert [draft.tried[0].sql, len(drafts)] == [query, 1]
