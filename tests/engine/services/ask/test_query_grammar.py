"""The grammar of a catalogue's queries: what models write is in it, and all that is in it plans."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest
from amounts import long_after
from grammar_walks import prefix_of, walk

import blendfusion as bf
from blendfusion.models.constraints.grammar import admits
from blendfusion.services.ask.grammar.lark import grammar_of
from blendfusion.services.ask.grammar.terminals import DATE
from blendfusion.services.ask.read_catalog import read_catalog
from blendfusion.udfs.register.user_functions import known_ingredients

WALKS = 80
pytestmark = pytest.mark.filterwarnings("ignore::blendfusion.errors.PlanWarning")


def _never(request: bf.Request) -> str:
    raise AssertionError(f"a plan asks no model: {request}")


@pytest.fixture(scope="module")
def session() -> bf.Session:
    session = bf.connect(bf.ScriptedModel(_never), cache=None, progress="off")
    tables = {
        "singers": {
            "singer_id": [1, 2, 3],
            "name": ["Joe Sharp", "Ann O'Hara", "Tim"],
            "Country": ["France", "Peru", "France"],
            "age": [30, 41, 25],
            "born": pa.array(["1990-01-01", "1985-05-05", None]).cast(pa.date32()),
            "order": ["a/b", "c\\d", "e"],
        },
        "concerts": {
            "concert_id": [1, 2],
            "singer_id": [1, 3],
            "venue": ["Bercy", "Arena (old)"],
            "seats sold": [100.5, 20.0],
        },
        "towns": {"town_id": [1], "concert_id": [1], "name": ["Ulm"], "is_old": [True]},
    }
    for name, columns in tables.items():
        session.from_arrow(pa.table(columns), name=name)
    return session


@pytest.fixture(scope="module")
def grammar(session: bf.Session) -> str:
    catalog = read_catalog(session)
    return grammar_of(catalog, known_ingredients().values(), "Which singers come from Chile?")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM singers",
        "select Name , age\nfrom Singers\nwhere Age >= 30 order by age desc limit 3",
        "SELECT count(*) FROM singers WHERE Country = 'France'",
        "SELECT count(*) AS num_singers FROM singers WHERE country = 'Chile'",
        "SELECT name FROM singers WHERE name LIKE '%Joe%' OR age BETWEEN 20 AND 30",
        "SELECT T1.name, COUNT(*) FROM singers AS T1 JOIN concerts AS T2 ON T1.singer_id = T2.singer_id "
        "GROUP BY T1.name HAVING count(*) > 1 ORDER BY COUNT(*) DESC NULLS LAST LIMIT 1",
        "SELECT s.name FROM singers s INNER JOIN concerts c ON s.singer_id = c.singer_id WHERE c.venue = 'Bercy'",
        "SELECT concerts.venue FROM concerts JOIN towns ON concerts.concert_id = towns.concert_id",
        "SELECT country, count(*), avg(age) FROM singers GROUP BY country",
        "SELECT name FROM singers WHERE singer_id NOT IN (SELECT singer_id FROM concerts)",
        "SELECT name FROM singers WHERE age > (SELECT avg(age) FROM singers)",
        "SELECT country FROM singers WHERE age > 40 INTERSECT SELECT country FROM singers WHERE age < 30",
        'SELECT max(born), min("seats sold") FROM singers',
        "SELECT DISTINCT \"order\" FROM singers WHERE born >= '1990-01-01'",
        "SELECT name FROM singers WHERE llm_filter('Is it a French name?', name, on_error => 'null')",
        "SELECT llm_classify(name, ['first name', 'family name']), llm_int('How long?', name) FROM singers",
    ],
)
def test_what_models_write_is_in_the_grammar(session: bf.Session, grammar: str, query: str) -> None:
    if "seats sold" in query:  # of another table: no scope has both
        assert not admits(grammar, query)
        return
    assert prefix_of(grammar, query) == query
    assert admits(grammar, query)
    session.sql(query, read_only=True)


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("SELECT salary FROM singers", "SELECT s"),
        ("DROP TABLE singers", ""),
        ("SELECT name FROM singers; DROP TABLE singers", "SELECT name FROM singers"),
        ("SELECT name FROM secret", "SELECT name FROM s"),
        ("SELECT age FROM concerts", "SELECT age FROM concerts"),  # with a join behind it
        (
            "SELECT name FROM singers WHERE country = 'Italy'",
            "SELECT name FROM singers WHERE country = '",
        ),
        ("SELECT name FROM singers WHERE age = 'old'", "SELECT name FROM singers WHERE age = "),
        ("SELECT sum(name) FROM singers", "SELECT sum("),
    ],
)
def test_the_longest_beginning_that_the_grammar_allows(grammar: str, query: str, fits: str) -> None:
    assert prefix_of(grammar, query) == fits


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT name FROM singers ORDER BY {}", 4),
        ("SELECT name, {} FROM singers", 14),
        ("SELECT name FROM singers WHERE age IN ({})", 30),
    ],
)
def test_lists_have_a_maximum_length(grammar: str, query: str, most: int) -> None:
    item = "7" if "IN" in query else "age"
    assert admits(grammar, query.format(", ".join([item] * most)))
    assert not admits(grammar, query.format(", ".join([item] * (most + 1))))


def test_keywords_are_in_one_letter_case(grammar: str) -> None:
    for word in ("lower", "LOWER", "Lower"):
        assert admits(grammar, f"Select {word}(name) From singers limit 3")
    assert prefix_of(grammar, "SELECT lOwEr(name) FROM singers") == "SELECT l"


def test_random_walks_plan_and_ask_nothing(session: bf.Session, grammar: str) -> None:
    dice = random.Random(7)
    for _ in range(WALKS):
        query = walk(grammar, dice)
        session.sql(query, read_only=True)


@pytest.mark.parametrize("tables", long_after(1, [21, 30]))
def test_a_catalogue_of_many_tables_has_a_grammar_too(tables: int) -> None:
    session = bf.connect(bf.ScriptedModel(_never), cache=None, progress="off")
    columns = {f"column_{i}": ["a"] if i % 2 else [i] for i in range(12)}
    for i in range(tables):
        keys = {f"table_{i}_id": [1], f"table_{(i + 1) % tables}_id": [1]}
        session.from_arrow(pa.table({**keys, **columns}), name=f"table_{i}")
    grammar = grammar_of(read_catalog(session), known_ingredients().values())
    assert admits(grammar, "SELECT column_1 FROM table_7 WHERE column_0 > 3")
    joined = "SELECT count(*) FROM table_1 JOIN table_2 ON table_1.table_2_id = table_2.table_2_id"
    assert admits(grammar, joined)
    dice = random.Random(8)
    for _ in range(10):
        session.sql(walk(grammar, dice), read_only=True)


@pytest.mark.parametrize(
    "day", ["0001-01-01", "0987-12-31", "1492-10-12", "2024-02-29", "9999-12-31"]
)
def test_a_literal_may_be_any_day(day: str) -> None:
    assert re.fullmatch(DATE, f"'{day}'")


@pytest.mark.parametrize(
    "day", ["0000-01-01", "2023-02-29", "2024-04-31", "2024-13-01", "24-01-01"]
)
def test_a_literal_is_a_day_that_there_is(day: str) -> None:
    assert not re.fullmatch(DATE, f"'{day}'")
