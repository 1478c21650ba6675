"""Expressions of other systems, with the values that their documentation gives, or refused.

A line of ``dialect_values/DIALECT.txt`` is an expression (with FROM and what follows, if it needs rows), an arrow,
and its value as Python writes it: one value, or the list of a column. ``refused`` is a QueryError with a place and a
hint, ``error`` any error. Nothing else is right: a value that differs is a wrong result that nobody sees."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import blendfusion as bf
from blendfusion.services.dialects.functions.systems import SYSTEMS

PAGES = Path(__file__).with_name("dialect_values")
NAMES = {"date": datetime.date, "datetime": datetime.datetime, "Decimal": Decimal}
ROWS = pa.table(
    {
        "n": [1, 3, None],
        "s": ["ba", "c", None],
        "b": [True, False, None],
        "f": [1.5, 2.25, None],
        "m": [datetime.datetime(2024, 1, 5, 10, 20, 30), None, None],
        "t": ["3", "null", "0"],
        "o": [{"a": 7}, {"a": 8}, None],
    }
)


def lines(dialect: str) -> list[tuple[str, str]]:
    text = (PAGES / f"{dialect}.txt").read_text("utf-8").splitlines()
    pairs = (line.rpartition(" → ") for line in text if line and not line.startswith("#"))
    return [(expression, value) for expression, _, value in pairs]


CASES = [(dialect, *pair) for dialect in SYSTEMS for pair in lines(dialect)]


@pytest.fixture(scope="module")
def session() -> bf.Session:
    made = bf.connect(bf.ScriptedModel(lambda call: None), progress="off", cache=None)
    made.from_arrow(ROWS, name="r")
    return made


@pytest.mark.parametrize(("dialect", "expression", "value"), CASES)
def test_an_expression_means_what_it_means_there(
    dialect: str, expression: str, value: str, session: bf.Session
) -> None:
    query = f"SELECT {expression}"
    if value == "refused":
        with pytest.raises(bf.QueryError, match=r"column \d+: ") as refused:
            session.sql(query, dialect=dialect)
        assert "datafusion" not in str(refused.value).lower()
        return
    if value == "error":
        with pytest.raises(bf.BlendFusionError):
            session.sql(query, dialect=dialect).collect()
        return
    column = session.sql(query, dialect=dialect).to_arrow_table().column(0)
    found = column.to_pylist()
    assert _alike(found if len(found) != 1 else found[0], eval(value, NAMES)), found


def _alike(found: object, wanted: object) -> bool:
    if isinstance(wanted, float) and isinstance(found, int | float):
        return math.isclose(found, wanted, rel_tol=1e-12)
    if isinstance(wanted, bool):
        return found is wanted
    return found == wanted


@pytest.mark.parametrize("dialect", SYSTEMS)
def test_every_function_of_a_table_has_a_value(dialect: str) -> None:
    given = " ".join(expression for expression, _ in lines(dialect)).upper()
    missing = [name for name in SYSTEMS[dialect].spellings if f"{name}(" not in given]
    assert not missing
