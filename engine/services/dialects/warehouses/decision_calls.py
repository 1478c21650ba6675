"""Writes the questions of decision functions as our calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from blendfusion.datafusion.arrow_types import is_bytes
from blendfusion.errors import ArgumentError
from blendfusion.language.query_text.query_tree import Source
from blendfusion.language.query_text.rewriter import Pieces
from blendfusion.language.query_text.source_map import Piece
from blendfusion.services.dialects.common.columns import Columns, plain_name
from blendfusion.services.dialects.warehouses.calls import (
    Call,
    Written,
    escape_braces,
    list_labels,
)
from blendfusion.udfs.declare.arguments import sql_string
from blendfusion.udfs.declare.decision_questions import DecisionQuestion, read_questions

Values = Sequence["Pieces | str"]
"""The values of a call, each as our SQL."""


def ask(ours: str, question: str, values: Values, *options: str) -> Written:
    """``ours('question', value, …, option, …)``."""
    yield f"{ours}({sql_string(escape_braces(question))}"
    for value in values:
        yield ", "
        yield from [value] if isinstance(value, str) else value
    yield "".join(f", {option}" for option in options) + ")"


def answer(question: DecisionQuestion, values: Values, *options: str) -> Written:
    """The answer: the probability of a yes, the option, or the expected level."""
    if question.kind == "yes_no":
        return ask("llm_probability", question.text, values, *options)
    meanings = question.meanings or ("",) * len(question.options)
    listed = list_labels([*zip(question.options, meanings, strict=True)])
    if question.kind == "score":
        return ask("llm_score", question.text, values, f"levels => {listed}", *options)
    return ask("llm_map", question.text, values, f"options => {listed}", *options)


def distribution(question: DecisionQuestion, values: Values) -> Written:
    """The map of each option or level to its probability."""
    if question.kind == "yes_no":
        return ask("llm_filter", question.text, values, "confidence => 'all'")
    return answer(question, values, "confidence => 'all'")


def struct_of(fields: Iterable[tuple[str, Written]]) -> Written:
    """``named_struct('name', value, …)``."""
    for at, (name, written) in enumerate(fields):
        yield f"{', ' if at else 'named_struct('}{sql_string(name)}, "
        yield from written
    yield ")"


def threshold_of(call: Call, name: str) -> str:
    """The option ``threshold`` of an argument that is a literal number; 0.5 without it."""
    given = call.reader.source_text(*call.arguments[name]) if call.has(name) else "0.5"
    try:
        least = float(given)
    except ValueError:
        least = 0.0
    if not 0 < least <= 1:
        raise call.refusal(name, f"{name} must be a literal number above 0, at most 1, here")
    return f"threshold => {given}"


def texts_of(call: Call, name: str) -> list[str]:
    """The texts of the argument ``name``, a list of literals."""
    return [text for text, _ in call.texts(name)]


_JSON_HINT = """Write '{"late": {"type": "noul", "instructions": "Is it late?"}}'."""


@contextmanager
def naming_argument(call: Call, name: str, hint: str | None = None) -> Iterator[None]:
    """Errors of a question as those of the argument ``name``."""
    try:
        yield
    except ArgumentError as problem:
        message = problem.message.replace(f"the question '{name}'", name)
        raise call.refusal(name, message, hint) from None


def question_from(call: Call, name: str, spec: object) -> DecisionQuestion:
    """The question of a mapping; its errors point at the argument ``name``."""
    with naming_argument(call, name):
        return read_questions({name: spec})[0]


def questions_from(call: Call, name: str) -> tuple[DecisionQuestion, ...]:
    """The questions of an argument that is a JSON text."""
    with naming_argument(call, name, _JSON_HINT):
        return read_questions(call.text(name))


def criteria_of(call: Call, name: str) -> object:
    """An argument that is a list or an object, also as JSON in a text."""
    given = call.literal(name, "a literal list or object")
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        raise call.refusal(name, f"{name} is no JSON") from None


def row_values(call: Call, name: str) -> Values:
    """An argument as values: the columns of the relation that it names, the items of a list in
    parentheses, or an expression. Raises QueryError for a relation with bytes."""
    start, stop = call.arguments[name]
    reader = call.reader
    if reader.opens(start) and reader.close[start] == stop - 1:
        return [call.weaver.weave(*part) for part in reader.parts(start + 1, stop - 1)]
    if stop == start + 1 and reader.is_name(start):
        source = reader.relation(reader.name(start), start)
        if source is not None:
            return _columns_of(call, name, source)
    return [call.value(name)]


def _columns_of(call: Call, name: str, source: Source) -> Values:
    at = call.arguments[name][0]
    columns = Columns(call.weaver, call.known)
    query = f"SELECT * FROM {columns.relation(source)}"
    schema = columns.schema(query, at)
    if schema is None:
        raise columns.unknown_schema(query, at)
    for field in schema:
        if is_bytes(field.type):
            raise call.refusal(
                name,
                f"column '{field.name}' holds bytes",
                "Write the columns to read: (name, text).",
            )
    alias = call.reader.source_text(at, at + 1)
    span = call.reader.span(at, at + 1)
    return [[Piece(f"{alias}.{plain_name(field.name)}", *span)] for field in schema]
