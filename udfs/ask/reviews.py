"""Values that people are to answer, and the answers that they gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.constraints.constraint import holds
from blendfusion.types import Answer, Constraint, Task, Usage

if TYPE_CHECKING:
    from blendfusion.models.protocol.model import Values
    from blendfusion.udfs.ask.requests import Requests
    from blendfusion.udfs.declare.call import Call

PEOPLE = "people"
"""The name of those who answered, in the place of a model's."""
REVIEW = pa.schema(
    [
        ("question", pa.string()),
        ("value", pa.string()),
        ("answer", pa.string()),
        ("confidence", pa.float64()),
        ("reason", pa.string()),
        ("label", pa.string()),
    ]
)
_YES = {"true": "true", "t": "true", "yes": "true", "y": "true", "1": "true"}
_NO = {"false": "false", "f": "false", "no": "false", "n": "false", "0": "false"}


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One value of a question: the model's answer, why it does not count, and a person's label."""

    answer: str | None = None
    confidence: float | None = None
    reason: str | None = None
    label: str | None = None


class Review:
    """The rows of one table for review, by question and value, in the order in which they came."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], ReviewRow] = {}
        self.constraints: dict[str, Constraint] = {}

    def note(self, task: Task, value: Values, row: ReviewRow) -> None:
        """A value is to be reviewed; a label that it has stays."""
        key = (task.question, spelled_value(value))
        known = self.rows.get(key)
        self.rows[key] = row if known is None else replace(row, label=known.label)

    def label(self, question: str, value: str, label: str) -> None:
        """Keep a person's answer. Raises QueryError for one that is no answer to the question."""
        constraint = self.constraints.get(question)
        if constraint is not None:
            label = read_label(constraint, label)
        row = self.rows.get((question, value), ReviewRow())
        self.rows[question, value] = replace(row, label=label)

    def only_question(self) -> str:
        """The question of all rows. Raises QueryError where there are several, or none."""
        questions = {question for question, _ in self.rows} | self.constraints.keys()
        if len(questions) != 1:
            raise QueryError(
                f"this review has {len(questions)} questions",
                hint="Labels need the column question beside value and label.",
            )
        return questions.pop()

    def table(self) -> pa.Table:
        """All rows, with NULL in place of the labels that are missing."""
        rows = [
            (question, value, row.answer, row.confidence, row.reason, row.label)
            for (question, value), row in self.rows.items()
        ]
        columns = zip(*rows, strict=True) if rows else [()] * len(REVIEW)
        return pa.table([pa.array(c, f.type) for c, f in zip(columns, REVIEW, strict=True)], REVIEW)


class Reviews:
    """The reviews of a session, by their names."""

    def __init__(self) -> None:
        self.of_name: dict[str, Review] = {}

    def review_of(self, name: str) -> Review:
        """The review of this name, which begins empty."""
        return self.of_name.setdefault(name, Review())

    def tables(self, names: Iterable[str]) -> dict[str, pa.Table]:
        """The rows of those reviews that have one of these names."""
        wanted = self.of_name.keys() & {*names}
        return {name: self.of_name[name].table() for name in wanted}


def answers_of_people(
    call: Call, values: Sequence[Values], dispatcher: Requests
) -> Mapping[Values, Answer]:
    """The answers that people gave to ``call``, of those values that have one."""
    if not call.review:
        return {}
    review = dispatcher.kept.of(Reviews).review_of(call.review)
    question, constraint = call.task.question, call.task.constraint
    found = {}
    for value in values:
        row = review.rows.get((question, spelled_value(value)))
        if row is not None and row.label is not None:
            text = read_label(constraint, row.label)
            found[value] = Answer(text, logprob=0.0, spent=((PEOPLE, Usage()),))
    return found


def review_answers(
    call: Call,
    values: Sequence[Values],
    before: Sequence[Answer],
    after: Sequence[Answer],
    dispatcher: Requests,
) -> None:
    """The values whose answers do not count ``after`` they were looked at are to be reviewed, with
    the answers of ``before``."""
    if dispatcher.guesses_answers:
        return
    review = dispatcher.kept.of(Reviews).review_of(call.review)
    review.constraints[call.task.question] = call.task.constraint
    for value, first, last in zip(values, before, after, strict=True):
        if last.error is not None:
            row = ReviewRow(first.text, first.probability, last.error)
            review.note(call.task, value, row)


def read_label(constraint: Constraint, label: str) -> str:
    """A person's answer as a model's would be. Raises QueryError for one that is none.

    >>> read_label(Constraint("boolean"), "Yes")
    'true'
    """
    text = label.strip()
    if constraint.kind == "boolean":
        text = (_YES | _NO).get(text.casefold().removesuffix(".0"), text)
    if constraint.kind == "choice":
        alike = [o for o in constraint.options if o.casefold() == text.casefold()]
        text = text if text in constraint.options or len(alike) != 1 else alike[0]
    if not constraint.query and not holds(constraint, text):
        raise QueryError(
            f"a label is no answer to the question, which is {constraint}",
            hint="Labels of yes/no questions are yes and no; others are one of the options.",
        )
    return text


def spelled_value(value: Values) -> str:
    """The value as a text: several as a JSON array."""
    return value[0] or "" if len(value) == 1 else json.dumps(value, ensure_ascii=False)
