"""Keys between tables that nobody declared are found by names and values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from blendfusion.text_to_sql.schema.keys import keys_between

PEOPLE = {"person_id": [1001, 1050, 1420], "name": ["Ann", "Tim", "Eve"]}
COUNTRIES = {"country_id": [1, 2, 3], "title": ["Chad", "Peru", "Laos"]}
CODES = {"code": ["AAA", "BBB", "CCC"], "city": ["Bonn", "Rome", "Oslo"]}


def keys(**tables: dict[str, list[object]]) -> list[str]:
    return [str(key) for key in keys_between({n: pa.table(t) for n, t in tables.items()})]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"people": PEOPLE, "visits": {"person_id": [1001, 1001]}}, "visits.person_id = people.person_id"),
        ({"people": PEOPLE, "visits": {"Person_ID": [1050, None, 1050]}}, "visits.Person_ID = people.person_id"),
        (
            {"people": {"person_id": [1, 2], "person_name": ["Ann", "Tim"]}, "visits": {"person_id": [1, 1]}},
            "visits.person_id = people.person_id",
        ),
        ({"countries": COUNTRIES, "makers": {"country": [2, 2, 1]}}, "makers.country = countries.country_id"),
        ({"airports": CODES, "flights": {"FromAirport": ["BBB", "BBB"]}}, "flights.FromAirport = airports.code"),
        ({"tv_channel": {"id": [7, 8]}, "shows": {"channel": [8, 8]}}, "shows.channel = tv_channel.id"),
        ({"addresses": {"address_id": [1, 2]}, "s": {"home_address_id": [1, 1]}}, "s.home_address_id = addresses.address_id"),
        # By values alone: the only key that holds these, which are not numbered from one.
        ({"people": PEOPLE, "friends": {"liked_id": [1420, 1420]}}, "friends.liked_id = people.person_id"),
        # Names of a table that all begin alike, as TPC-H has them.
        (
            {
                "orders": {"o_orderkey": [1, 4], "o_total": [2.5, 3.5]},
                "lineitem": {"l_orderkey": [1, 1, 4], "l_tax": [0.1, 0.2, 0.3]},
            },
            "lineitem.l_orderkey = orders.o_orderkey",
        ),
    ],
)  # fmt: skip
def test_a_reference_is_found(tables: dict[str, dict[str, list[object]]], expected: str) -> None:
    assert keys(**tables) == [expected]
    assert keys(**dict(reversed(tables.items()))) == [expected]


@pytest.mark.parametrize(
    "tables",
    [
        {"ships": {"id": [1, 2]}, "deaths": {"id": [1, 2]}},
        {"people": PEOPLE, "visits": {"person_id": [1001, 7, 8]}},
        {"cities": {"code": ["A", "A"], "n": [1, 2]}, "languages": {"code": ["A", "B"]}},
        {"countries": COUNTRIES, "cars": {"liked_id": [1, 1, 2]}},
        {"people": PEOPLE, "others": {"other_id": [1001, 1420]}, "x": {"liked_id": [1001, 1001]}},
        {"people": PEOPLE, "visits": {"person_id": ["1001", "1001"]}},
        {"people": PEOPLE, "visits": {"person_id": pa.array([], pa.int64()).to_pylist()}},
    ],
    ids=[
        "a name that each table has",
        "other values",
        "a code that repeats",
        "numbers from one on, by chance",
        "two that it can be",
        "another type",
        "no rows",
    ],
)
def test_no_reference_is_invented(tables: dict[str, dict[str, list[object]]]) -> None:
    assert keys(**tables) == []
