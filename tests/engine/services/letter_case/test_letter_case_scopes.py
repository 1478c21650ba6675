"""Names in any letter case by the scope of each SELECT: other schemas, fields of structs, derived tables."""

from __future__ import annotations

import random
import re

import pytest

import blendfusion as bf

WORDS = (
    "reviewText",
    "City",
    "Id",
    "Maker",
    "typeName",
    "Deep",
    "Value",
    "Reviews",
    "shops",
    "store",
)
"""The names of the tables and columns that the queries read."""


@pytest.fixture(scope="module")
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: True), cache=None, progress="off")
    made.sql("CREATE SCHEMA store")
    maker = [{"typeName": "x", "Deep": {"Value": 1}}, {"typeName": "y", "Deep": {"Value": 2}}]
    rows = {"Id": [1, 2], "City": ["Oslo", "Rome"], "reviewText": ["good", "bad"], "Maker": maker}
    made.from_pydict(rows, name="shops")
    made.sql('CREATE TABLE store."Reviews" AS SELECT * FROM shops')
    return made


QUERIES = [
    ("SELECT r.reviewText FROM store.Reviews r WHERE r.Id = 1", [("good",)]),
    ("SELECT reviewText FROM store.Reviews WHERE llm_filter('q', reviewText) AND Id = 2", [("bad",)]),
    ("SELECT store.Reviews.City FROM store.Reviews WHERE Reviews.Id = 2", [("Rome",)]),
    ("SELECT Maker.typeName FROM shops WHERE Id = 1", [("x",)]),
    ("SELECT s.Maker.Deep.Value AS v FROM shops s ORDER BY v DESC", [(2,), (1,)]),
    ("SELECT City FROM (SELECT City AS city FROM shops) ORDER BY City", [("Oslo",), ("Rome",)]),
    ("WITH c AS (SELECT City AS city, Id FROM store.Reviews) SELECT City FROM c WHERE Id = 1", [("Oslo",)]),
    ("WITH c AS (SELECT * FROM store.Reviews) SELECT a.City FROM c a JOIN shops b ON a.Id = b.Id AND b.Id = 2", [("Rome",)]),
    ("SELECT City FROM shops s WHERE EXISTS (SELECT 1 FROM store.Reviews r WHERE r.City = s.City AND reviewText = 'bad')", [("Rome",)]),
    ("SELECT DISTINCT City AS city FROM (SELECT City FROM shops) INTERSECT SELECT City FROM store.Reviews WHERE Id = 1", [("Oslo",)]),
    ("SELECT City, count(*) AS n FROM store.Reviews GROUP BY City HAVING min(Id) > 1 ORDER BY City", [("Rome", 1)]),
    ("SELECT x.kind FROM (SELECT Maker.typeName AS kind FROM shops) AS x WHERE x.kind = 'y'", [("y",)]),
]  # fmt: skip


@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_a_name_is_found_in_its_scope(query: str, rows: list[tuple[object, ...]], session: bf.Session) -> None:  # fmt: skip
    assert rows_of(session, query) == rows


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("query", "rows"), QUERIES)
def test_in_any_letters(query: str, rows: list[tuple[object, ...]], seed: int, session: bf.Session) -> None:  # fmt: skip
    dice = random.Random(f"{seed} {query}")

    def other(word: re.Match[str]) -> str:
        return dice.choice([word[0], word[0].lower(), word[0].upper(), word[0].swapcase()])

    names = re.compile(rf"(?<!')\b(?:{'|'.join(WORDS)})\b(?!')", re.IGNORECASE)
    assert rows_of(session, names.sub(other, query)) == rows


def rows_of(session: bf.Session, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in session.sql(query).to_pylist()]


def test_an_unknown_column_of_another_schema_stays_unknown(session: bf.Session) -> None:
    with pytest.raises(bf.QueryError, match=r"unknown column 'r\.nothing'"):
        session.sql("SELECT r.Nothing FROM store.reviews r")
