"""Slots of accepted questions take stored values and clear numbers, or the question is drafted."""

from __future__ import annotations

import random

import pytest

from blendfusion.services.ask.schema.catalog import Catalog, Column, Table
from blendfusion.services.ask.stated_numbers import numbers
from blendfusion.services.ask.templates import Templates, template_of

COUNTRIES = ("Germany", "France", "New York", "St. Kitts", "C", "C++", "R&D", "-5", "5")
ORDERS = Catalog(
    (
        Table(
            "orders",
            (
                Column("amount", "DOUBLE"),
                Column("country", "TEXT", values=COUNTRIES, complete=True),
                Column("note", "TEXT", free_text=True),
            ),
        ),
    )
)
COUNT = "SELECT count(*) FROM orders WHERE "


def filled(question: str, accepted: str, predicate: str) -> str | None:
    templates = Templates()
    templates.accept(accepted, COUNT + predicate)
    found = templates.fill(question, ORDERS)
    return None if found is None or found.sql is None else found.sql.removeprefix(COUNT)


@pytest.mark.parametrize(
    ("stated", "literal"),
    [
        ("3,000", "3000"),
        ("10,000", "10000"),
        ("1 200", "1200"),
        ("1\u202f200", "1200"),
        ("1'200", "1200"),
        ("1,234,567.5", "1234567.5"),
        ("-300", "-300"),
        ("\u2212300", "-300"),
        ("3.5", "3.5"),
        ("0.125", "0.125"),
        ("two", "2"),
        ("Twenty", "20"),
        ("90 thousand", "90000"),
        ("3.000", None),
        ("1.234.567", None),
        ("2,5", None),
        ("12,34,567", None),
        ("3k", None),
        ("$300", None),
        ("300 %", None),
        ("300 or 400", None),
        ("about 300", None),
        ("- 300", None),
        ("1/2", None),
        ("1e5", None),
        ("0x10", None),
        ("½", None),
        ("the average", None),
    ],
)
def test_a_slot_of_a_number_takes_a_clear_number(stated: str, literal: str | None) -> None:
    expected = None if literal is None else f"amount > {literal}"
    question = f"How many orders are above {stated}?"
    assert filled(question, "How many orders are above 300?", "amount > 300") == expected


def test_numbers_in_every_spelling_are_the_number() -> None:
    random.seed(48)
    for _ in range(300):
        cents = random.choice((0, 0, random.randrange(1, 100)))
        whole = random.randrange(10 ** random.randrange(1, 10))
        part = f".{cents:02}" if cents else ""
        sign = random.choice(("", "", "-"))
        for spelled in (f"{sign}{whole}{part}", f"{sign}{whole:,}{part}"):
            (found,) = numbers(f"is it {spelled}?")
            assert found.literal == f"{sign}{whole}{part}", spelled
        (blank,) = numbers(f"is it {sign}{whole:,}{part}?".replace(",", " "))
        assert blank.literal == f"{sign}{whole}{part}"


@pytest.mark.parametrize(
    ("stated", "value"),
    [
        ("France", "France"),
        ("france", "France"),
        ("new  york", "New York"),
        ("NY", "New York"),
        ("N.Y.", "New York"),
        ("'France'", "France"),
        ("St Kitts", "St. Kitts"),
        ("C", "C"),
        ("C++", "C++"),
        ("R&D", "R&D"),
        ("-5", "-5"),
        ("5", "5"),
        ("Germany or France", None),
        ("Germany and France", None),
        ("anywhere but Germany", None),
        ("not Germany", None),
        ("non-Germany", None),
        ("Germany (without France)", None),
        ("everywhere except Germany", None),
        ("Germany's neighbours", None),
        ("Spain", None),
        ("C#", None),
        ("R D", None),
    ],
)
def test_a_slot_of_a_column_with_known_values_takes_these_alone(
    stated: str, value: str | None
) -> None:
    question = f"How many orders are from {stated}?"
    found = filled(question, "How many orders are from Germany?", "country = 'Germany'")
    assert found == (None if value is None else f"country = '{value}'")


@pytest.mark.parametrize(
    ("stated", "literal"),
    [
        ("Rain", "'%Rain%'"),
        ("O'Hara", "'%O''Hara%'"),
        ("no rain", None),
        ("rain or snow", None),
        ("100%", None),
    ],
)
def test_a_slot_of_other_texts_takes_a_short_one_as_it_is_written(
    stated: str, literal: str | None
) -> None:
    found = filled(f"Which note has {stated}?", "Which note has Sun?", "note LIKE '%Sun%'")
    assert found == (None if literal is None else f"note LIKE {literal}")


@pytest.mark.parametrize(
    ("accepted", "question"),
    [
        ("How many orders with amount > 300?", "How many orders with amount < 300?"),
        ("How many orders with amount = 300?", "How many orders with amount != 300?"),
        ("How many orders above 300 are there?", "How many orders above $300 are there?"),
        ("How many orders above 300 are there?", "How many orders above 300+ are there?"),
        ("How many orders above 300 are there?", "How many orders above 3rd are there?"),
    ],
)
def test_signs_are_words_of_a_question(accepted: str, question: str) -> None:
    assert filled(question, accepted, "amount > 300") is None


def test_a_sign_of_the_accepted_question_may_be_repeated() -> None:
    accepted = "How many orders are above $300?"
    question = "How many orders are above $3,000?"
    assert filled(question, accepted, "amount > 300") == "amount > 3000"
    assert filled(question.replace("$", "€"), accepted, "amount > 300") is None


@pytest.mark.parametrize(
    ("predicate", "other"),
    [
        ("year = 2023", "year = 2024"),
        ("year = 2023 OR year = 2023 + 1", None),
        ("year >= 2023 AND year < 2024", None),
        ("year = 2023 AND shipped = 2023", None),
        ("day >= '2023-01-01'", None),
        ("year <= 2023 AND NOT year < 2023", "year <= 2024 AND NOT year < 2024"),
    ],
)
def test_no_literal_of_the_old_question_stays(predicate: str, other: str | None) -> None:
    """A literal that follows from the stated one, or equals it, would keep its old value."""
    assert filled("Orders of 2024?", "Orders of 2023?", predicate) == other


def test_a_model_chooses_among_spellings_or_the_question_is_drafted() -> None:
    templates = Templates()
    templates.accept("How many orders are from Germany?", f"{COUNT}country = 'Germany'")
    found = templates.fill("How many orders are from Germny?", ORDERS)
    assert found is not None
    assert found.sql is None
    assert found.holds(f"{COUNT}country = 'Germany'")
    assert not found.holds(f"{COUNT}country = 'Germny'")
    assert template_of("Who is it?", f"{COUNT}country = 'Germany'") is None
