"""Canonical answers become Arrow values of the declared type; every text that is admitted
decodes."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.constraints.constraint import holds
from blendfusion.models.prompts.canonical import canonical
from blendfusion.types import Constraint
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.returns import arrow_type


def listed(kind: str) -> Constraint:
    return Constraint("list", item=Constraint(kind))  # type: ignore[arg-type]


DAY = datetime.date(2024, 2, 29)


@pytest.mark.parametrize(
    ("text", "constraint", "value"),
    [
        ("true", Constraint("boolean"), True),
        ("false", Constraint("boolean"), False),
        ("-12", Constraint("integer"), -12),
        ("2.5", Constraint("number"), 2.5),
        ("2024-02-29", Constraint("date"), DAY),
        ("2024-02-29T12:30:00", Constraint("timestamp"), datetime.datetime(2024, 2, 29, 12, 30)),
        ("b", Constraint("choice", options=("a", "b")), "b"),
        ("CA", Constraint("regex", pattern="[A-Z]{2}"), "CA"),
        ('["a", "b \\"c\\""]', listed("text"), ["a", 'b "c"']),
        ("[]", listed("text"), []),
        ("[1, 2]", listed("integer"), [1, 2]),
        ("[0.5, 2]", listed("number"), [0.5, 2.0]),
        ('["2024-02-29"]', listed("date"), [DAY]),
        (None, Constraint("integer"), None),
        (None, listed("text"), None),
    ],
)
def test_an_answer_becomes_a_value(text: str | None, constraint: Constraint, value: object) -> None:
    array = decode([text], arrow_type(constraint))
    assert array.type == arrow_type(constraint)
    assert array.to_pylist() == [value]


VALUES = {
    "boolean": st.booleans(),
    "integer": st.integers(-(10**9), 10**9),
    "date": st.dates(),
    "timestamp": st.datetimes().map(lambda t: t.replace(microsecond=0)),
    "text": st.text(st.characters(categories=["L", "N", "Zs"]), min_size=1, max_size=20),
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_what_is_admitted_decodes_to_what_was_meant(kind: str, data: st.DataObject) -> None:
    constraint = Constraint(kind)  # type: ignore[arg-type]
    value = data.draw(VALUES[kind])
    text = canonical(value, constraint)
    if holds(constraint, text):
        assert decode([text], arrow_type(constraint)).to_pylist() == [value]


def test_no_answers_are_an_empty_array_of_the_type() -> None:
    assert decode([], pa.date32()).type == pa.date32()
