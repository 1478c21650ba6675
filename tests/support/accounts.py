"""Payments, shares, firms and owners: the tables of BlendSQL's query shapes, in our SQL and in its
own."""

from __future__ import annotations

from scripts import Counted

SHOPS = ["Zara", "Zoom", "Paypal", "Aldi", "Lidl", "Zalando", "Uber", "Zeiss", "Ikea", "Apple"]
KINDS = ["Gifts", "Rent", "Food", "Rent", "Travel"]
SECTORS = ["Tech", "Energy", "Health", "Tech"]

DISTINCT_SHOPS = "SELECT count(DISTINCT shop) FROM pay"
JOINED = "pay JOIN owner ON pay.id % 5 = owner.oid"


def accounts(script: object) -> Counted:
    """A session over the tables, whose model is ``script``."""
    counted = Counted(script)
    # The written order of predicates, so that what is asked is one number.
    counted.session.sql("SET blendfusion.rules_off = 'predicate_order'")
    n = 60
    counted.add(
        "pay",
        {
            "id": list(range(n)),
            "shop": [SHOPS[i * 7 % 10] for i in range(n)],
            "kind": [KINDS[i % 5] for i in range(n)],
            "amount": [(i * 37) % 1500 for i in range(n)],
        },
    )
    counted.add(
        "held",
        {
            "symbol": ["AAA", "AB", "BBB", "ZZZ", "ZA", "AAA", "QQQ"],
            "shares": [1, 20, 3, 40, 5, 60, 7],
            "account": [1, 1, 2, 2, 3, 3, 4],
        },
    )
    counted.add(
        "firm",
        {
            "sym": ["AAA", "AB", "BBB", "ZZZ", "ZA", "XXX"],
            "name": ["Alpha", "Abe", "Beta", "Zulu", "Zack", "Xena"],
            "sector": [SECTORS[i % 4] for i in range(6)],
        },
    )
    return counted.add(
        "owner",
        {
            "oid": [1, 2, 3, 4],
            "who": ["Ann", "Bob", "Zoe", "Zed"],
            "land": ["DE", "FRA", "DE", "US"],
        },
    )
