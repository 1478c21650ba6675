"""JSON schemas as the fields of an extraction."""

from __future__ import annotations

import datetime
import json
from typing import Any, Literal

import pydantic
import pytest

from blendfusion.errors import ArgumentError
from blendfusion.udfs.declare.json_schema import json_fields
from blendfusion.udfs.declare.struct_schema import fields_of, schema_text, text_of


class Maker(pydantic.BaseModel):
    name: str
    since: int | None = None


class Bike(pydantic.BaseModel):
    title: str = pydantic.Field(description="as it is printed")
    price: float
    sold: bool
    day: datetime.date
    at: datetime.datetime | None
    season: Literal["spring", "autumn"]
    makers: list[Maker]
    maker: Maker | None = None


def of(properties: dict[str, Any]) -> str:
    return json.dumps({"type": "object", "properties": properties})


def test_the_json_schema_of_a_model_has_the_fields_of_the_model() -> None:
    assert json_fields(json.dumps(Bike.model_json_schema())) == fields_of(text_of(Bike))


def test_fields_may_have_any_name() -> None:
    fields = json_fields(
        of({"the 'name\"": {"type": ["string", "null"]}, "select": {"const": "a"}})
    )
    assert [(field.name, str(field.constraint)) for field in fields_of(schema_text(fields))] == [
        ("the 'name\"", "text"),
        ("select", "one of {a}"),
    ]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ('{"type": "object"', "cannot be read"),
        ('{"type": "string"}', "is of no object"),
        (of({"a": {"type": "null"}}), "the property a: .* is no type"),
        (of({"a": {"enum": [1, 2]}}), "the property a: its values must be texts"),
        (of({"a": {"enum": []}}), "the property a: its values must be texts"),
        (of({"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}), "of several types"),
        (of({"a": {"$ref": "#/$defs/B"}}), "nothing is at '#/\\$defs/B'"),
        (of({"a": {"$ref": "other.json"}}), "nothing is at"),
        (of({"a": {"$ref": "#"}, "b": {"$ref": "#"}}), "more than 64 fields or 16 levels"),
        (of({"a": 3}), "'3' is no schema"),
        (of({"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}), "or 16 levels"),
    ],
)
def test_what_is_no_schema_of_fields_says_where(schema: str, problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem) as raised:
        json_fields(schema)
    assert raised.value.hint
