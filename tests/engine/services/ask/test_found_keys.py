"""Keys between tables that nobody declared are found by names and values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from blendfusion.services.ask.schema.keys import _Field, keys_between

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
        ({"owners": {"id": [7, 8], "ids": [1, 1]}, "pets": {"owner_id": [8, 8]}}, "pets.owner_id = owners.id"),
        ({"tv_channel": {"id": [7, 8]}, "shows": {"channel": [8, 8]}}, "shows.channel = tv_channel.id"),
        ({"addresses": {"address_id": [1, 2]}, "s": {"home_address_id": [1, 1]}}, "s.home_address_id = addresses.address_id"),
        # By values alone: the only key that holds these, which are not numbered from one.
        ({"people": PEOPLE, "friends": {"liked_id": [1420, 1420]}}, "friends.liked_id = people.person_id"),
        ({"people": PEOPLE, "friends": {"liked_id": [1420, 1001]}}, "friends.liked_id = people.person_id"),
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
        {"people": PEOPLE, "others": {"other_id": [1001, 7]}, "x": {"liked_id": [1001, 1001]}},
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


@pytest.mark.parametrize(
    ("keys", "references"),
    [
        (pa.array([1001, 1050], pa.int32()), pa.array([1050, 1050], pa.int64())),
        (pa.array([1001, 1050], pa.uint16()), pa.array([1050, None])),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "b"], pa.string_view())),
        (pa.array(["a", "b"], pa.large_string()), pa.array(["b", None]).dictionary_encode()),
        (pa.array([1001, 1050]), pa.array([1050, 1050]).dictionary_encode()),
    ],
)  # fmt: skip
def test_keys_and_references_may_have_other_types(keys: pa.Array, references: pa.Array) -> None:
    tables = {"owners": pa.table({"id": keys}), "pets": pa.table({"owner_id": references})}
    assert [str(key) for key in keys_between(tables)] == ["pets.owner_id = owners.id"]


def test_texts_are_no_identifiers() -> None:
    texts = pa.table({"text_key": [f"{place} {'long ' * 60}" for place in range(3)]})
    names = {"texts": texts, "copies": texts}
    assert [*keys_between(names)] == []


def test_many_columns_are_not_compared_with_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    refers_to = _Field.refers_to

    def counted(one: _Field, key: _Field) -> bool:
        compared.append(one.place)
        return refers_to(one, key)

    monkeypatch.setattr(_Field, "refers_to", counted)
    rows = range(30)
    tables = {f"t{n}": pa.table({"id": [n + 1_000 * row for row in rows]}) for n in range(60)}
    held = {f"{name}_code": [5_017, 6_017, 5_017] for name in "abcdefgh"}
    strange = {f"{name}_code": [999, 29_999, 29_999] for name in "ijklmnop"}
    found = [str(key) for key in keys_between(tables | {"codes": pa.table(held | strange)})]
    assert found == [f"codes.{name} = t17.id" for name in held]
    assert len(compared) == len(held)
