"""``llm_extract``: several fields from a row at once, as a struct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datafusion import Expr

from blendfusion.errors import ArgumentError
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient, Literal
from blendfusion.udfs.declare.json_schema import is_json, json_fields
from blendfusion.udfs.declare.struct_schema import FORM, SchemaLike, fields_of, text_of, written
from blendfusion.udfs.register.expr import ColumnLike, ModelNamed, expression


def _answers(named: Mapping[str, Literal]) -> Constraint:
    schema = named["schema"]
    if not isinstance(schema, str):
        raise ArgumentError(
            f"llm_extract: the schema must be text, not {schema!r}",
            hint=f"Write the fields as in {FORM}.",
        )
    fields = written(json_fields(schema)) if is_json(schema) else schema
    return Constraint("struct", fields=fields_of(fields))


LLM_EXTRACT = Ingredient(
    name="llm_extract",
    summary="several fields from a row at once",
    leading=(),
    trailing=("schema",),
    named=("question", "examples", "model", "on_error"),
    answers=_answers,
    max_values=1,
)


def llm_extract(
    value: ColumnLike,
    schema: SchemaLike,
    *,
    question: str | None = None,
    examples: Sequence[Sequence[object]] | None = None,
    model: ModelNamed = None,
    on_error: OnError | None = None,
) -> Expr:
    """The fields of ``schema`` in the value, as a STRUCT in their order; a field that the value
    does
    not mention is NULL. One request per value, however many fields are read.

    ``schema`` is text as in CREATE TABLE, ``"name TEXT, year INT COMMENT 'of release', tags LIST,
    season IN ('spring', 'summer')"``, or the JSON schema of an object; or a ``pyarrow.Schema`` or
    struct type, whose fields may have a "description" in their metadata; or a pydantic model class.
    Types are TEXT, INT (BIGINT), FLOAT (DOUBLE), BOOLEAN, DATE, TIMESTAMP, lists and structs of
    these, and closed sets. Widths of types, validators and defaults are ignored.

    NULL and blank values give NULL without a call. ``question`` adds what the fields alone do not
    express. ``examples`` are worked examples, ``[["a value", {"name": …}], …]``.
    ``model``: name(s) of registered models; several form a failover chain.
    ``on_error``: the result for a row without a valid answer: NULL ("null"), an error of the query
    ("raise"), or a struct of ``value`` and ``error`` ("keep"); None: the session's option.
    """
    return expression(
        LLM_EXTRACT,
        (value,),
        schema=text_of(schema),
        question=question,
        examples=examples,
        model=model,
        on_error=on_error,
    )
