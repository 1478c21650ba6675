"""``llm_extract``: several fields from a row at once, as a struct."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.json_schema import is_json, json_fields
from blendfusion.udfs.declare.options import (
    CHECK,
    CRITERION,
    EVIDENCE,
    EXAMPLES,
    MODEL,
    ON_ERROR,
    REASONING,
    REASONS,
    RETRIES,
)
from blendfusion.udfs.declare.parameter import Parameter
from blendfusion.udfs.declare.struct_schema import FORM, fields_of, schema_text, text_of


def _schema(given: Literal, name: str) -> str:
    """The fields as in CREATE TABLE."""
    if not isinstance(given, str):
        raise ArgumentError(
            f"the {name} must be text, not {given!r}", hint=f"Write the fields as in {FORM}."
        )
    return schema_text(fields_of(schema_text(json_fields(given)) if is_json(given) else given))


SCHEMA = Parameter(
    "schema",
    """The fields, as in CREATE TABLE: ``"name TEXT, year INT COMMENT 'of release', tags LIST,
season IN ('spring', 'summer')"``, or the JSON schema of an object; in Python also a
``pyarrow.Schema`` or struct type, whose fields may have a "description" in their metadata, or a
pydantic model class. Types are TEXT, INT (BIGINT), FLOAT (DOUBLE), DECIMAL(10, 2), BOOLEAN, DATE,
TIMESTAMP, lists and structs of these, and closed sets. Other widths of types, validators and
defaults are ignored.""",
    _schema,
    annotation="SchemaLike",
    from_python=text_of,
)


def _answers(read: Mapping[str, Any]) -> Constraint:
    return Constraint("struct", fields=fields_of(read["schema"]))


LLM_EXTRACT = Ingredient(
    name="llm_extract",
    summary="several fields at once: `'name TEXT, year INT'`",
    example="SELECT found['part'], found['days'] FROM (SELECT llm_extract(text, 'part TEXT, "
    "days INT') AS found FROM reviews)",
    leading=(),
    values=("value",),
    beside=True,
    trailing=(SCHEMA,),
    options=(CRITERION, EXAMPLES, EVIDENCE, CHECK, RETRIES, REASONING, REASONS, MODEL, ON_ERROR),
    answers=_answers,
    reads=True,
    result="STRUCT of the fields",
    doc="""The fields of ``schema`` in the value, as a STRUCT in their order; a field that the value
does not mention is NULL, and so is a number or a date that a single text does not state, unless
``evidence => false``. One request per value, however many fields are read. Several values, such
as a text and an image, are one question: ``llm_extract(text, photo, schema)`` in SQL, a list of
columns in Python.""",
)
