"""Amounts of money in the notations of several countries."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest
from datafusion import SessionContext
from seconds import least_seconds

import blendfusion as bf
from blendfusion.udfs.register.parse_money import amount_of


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1.234,50", "1234.50"),
        ("1,234.50", "1234.50"),
        ("1234.5", "1234.5"),
        ("12,00", "12.00"),
        ("EUR 675.80", "675.80"),
        ("€ 1.234", "1234"),
        ("1.234.567,89 €", "1234567.89"),
        ("1,23,456.70", "123456.70"),
        ("Fr. 1'234.50", "1234.50"),
        ("CHF 12.–", "12"),
        ("1 234,50 kr", "1234.50"),
        ("1\u00a0234,50\u00a0€", "1234.50"),
        ("-12,50", "-12.50"),
        ("$-12.50", "-12.50"),
        ("-$12.50", "-12.50"),
        ("12,50-", "-12.50"),
        ("($1,234.56)", "-1234.56"),
        ("+7", "7"),
        ("0,99", "0.99"),
        ("", None),
        ("n/a", None),
        ("12.50 and 13.50", None),
        ("order 12", None),
        ("1.23.45", None),
        ("1,2,3", None),
        ("1.234,567,8", None),
        ("12.5.2024", None),
        ("2024-05-01", None),
        ("(5", None),
        ("10%", None),
    ],
)
def test_an_amount_is_read(text: str, amount: str | None) -> None:
    found = amount_of(text)
    assert (None if found is None else str(found)) == amount


@pytest.mark.parametrize("text", ["1{}hello world", "({}hello world", "-{}hello", "1{}2{}x y"])
def test_a_text_with_many_blanks_is_read_at_once(text: str) -> None:
    blanks = " \t" * 2_000
    assert least_seconds(lambda: amount_of(text.format(blanks, blanks)), 0.5) < 0.5
    assert amount_of(text.format(blanks, blanks)) is None
    assert amount_of(f"1{blanks}234,50{blanks}kr") == Decimal("1234.50")


def test_what_is_written_in_either_notation_is_read_back() -> None:
    dice = random.Random(7)
    for _ in range(2_000):
        amount = Decimal(dice.randrange(10 ** dice.randrange(1, 12))) / 100
        amount = amount.quantize(Decimal("0.01"))
        english = f"{amount:,.2f}"
        german = english.translate(str.maketrans(",.", ".,"))
        swiss, french = english.replace(",", "'"), german.replace(".", "\u202f")
        for text in (english, german, swiss, french, f"{amount:.2f}"):
            mark = dice.choice(["", "€ ", "USD ", "$"])
            assert amount_of(mark + text) == amount, text


def test_it_is_a_function_of_queries_beside_calls() -> None:
    session = bf.connect(bf.ScriptedModel(lambda call: "1" in call.values[0]), cache=None)
    session.from_pydict({"x": ["1.234,50", "EUR 12,00", "n/a", None, "$0.50"]}, "t")
    found = session.sql(
        "SELECT parse_money(x) AS m FROM t WHERE llm_filter('Is it?', x) ORDER BY m"
    ).to_arrow_table()
    assert found["m"].type == pa.decimal128(18, 4)
    assert found["m"].to_pylist() == [Decimal("12.0000"), Decimal("1234.5000")]
    total = session.sql("SELECT CAST(sum(parse_money(x)) AS DOUBLE) AS s FROM t").to_pylist()
    assert total == [{"s": 1247.0}]
    context = SessionContext()
    bf.register(context, model=bf.ScriptedModel(lambda call: True))
    assert context.sql("SELECT parse_money('7,5') AS m").to_pydict() == {"m": [Decimal("7.5000")]}
    huge = session.sql("SELECT parse_money('999999999999999,00') AS m").to_pylist()
    assert huge == [{"m": None}]
