"""Evaluates the predicates that users write over answers, with DataFusion, over nothing else."""

from __future__ import annotations

import re

import pyarrow as pa
from datafusion import SessionConfig, SessionContext, SQLOptions

from blendfusion.errors import ArgumentError

ANSWER = "answer"
_HINT = (
    "Write a predicate over answer, as in check => 'answer BETWEEN 1 AND 9', or of a field: "
    "check => 'answer[''low''] > 0'."
)
_READING = SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)


def check_predicate(predicate: str, kind: pa.DataType) -> None:
    """Raise ArgumentError for a text that is no predicate over answers of this type."""
    try:
        found = evaluate(predicate, pa.array([], kind))
    except Exception as problem:  # DataFusion's, of several types
        reason = re.split(r"\n|\. Valid fields|, at Line", str(problem))[0].rpartition("error: ")[2]
        raise ArgumentError(f"check {predicate!r} is not possible: {reason}", hint=_HINT) from None
    if not pa.types.is_boolean(found.type):
        raise ArgumentError(f"check {predicate!r} is {found.type}, not true or false", hint=_HINT)


def holds_for(predicate: str, answers: pa.Array) -> list[bool]:
    """Whether the predicate holds for each answer; NULL counts as yes, as in CHECK of a table."""
    return [held is not False for held in evaluate(predicate, answers).to_pylist()]


def evaluate(predicate: str, answers: pa.Array) -> pa.ChunkedArray:
    """The values of a predicate, one an answer."""
    context = SessionContext(SessionConfig().with_target_partitions(1))
    context.from_arrow(pa.table({ANSWER: answers}), name="answers")
    query = f"SELECT (\n{predicate}\n) AS held FROM answers"
    table = context.sql_with_options(query, _READING).to_arrow_table()
    if table.num_rows != len(answers):
        raise ArgumentError("it does not give one value for each answer")
    return table.column(0)
