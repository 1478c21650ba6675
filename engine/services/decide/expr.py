"""``bf.decide``: several questions about one text, or about each row of a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from datafusion import Expr
from datafusion import functions as f

from blendfusion.errors import ArgumentError
from blendfusion.frame import Frame
from blendfusion.udfs.declare.decision_questions import DecisionQuestion, read_questions
from blendfusion.udfs.functions.llm_map import LLM_MAP
from blendfusion.udfs.functions.llm_probability import LLM_PROBABILITY
from blendfusion.udfs.functions.llm_score import LLM_SCORE
from blendfusion.udfs.register.expr import ColumnLike, expression


@overload
def decide(
    values: Frame,
    questions: Mapping[str, object] | str,
    *,
    name: str = "decision",
    model: str | Sequence[str] | None = None,
) -> Frame: ...


@overload
def decide(
    values: ColumnLike | Sequence[ColumnLike],
    questions: Mapping[str, object] | str,
    *,
    name: str = "decision",
    model: str | Sequence[str] | None = None,
) -> Expr: ...


def decide(
    values: Frame | ColumnLike | Sequence[ColumnLike],
    questions: Mapping[str, object] | str,
    *,
    name: str = "decision",
    model: str | Sequence[str] | None = None,
) -> Frame | Expr:
    """The answers to several questions about each row, as one struct with a field a question.

    ``values`` is a column, or several that are read together, and the result is an expression named
    ``name``; or it is a frame, all of whose columns are read, and the result is the frame with that
    column added. ``questions`` maps names to questions, or is the JSON text of such a mapping:

    - a text: a question of yes or no, whose field is the probability of a yes, as DOUBLE;
    - ``{"question": …, "options": …}``: a choice, whose field is the option, as VARCHAR. Options
      are a list, or a mapping of each option to its meaning;
    - ``{"question": …, "levels": […]}``: a score, whose field is the expected level, from 0 to
      their number less one, as DOUBLE;
    - a question as decision models take it: ``type``, ``instructions`` and ``criteria``.

    A field is NULL where its values are all NULL or blank, and where its question failed. Decision
    models that answer questions independently get all of them in one request. ``model`` names the
    models that are asked, as in any call. Raises ArgumentError for invalid questions.

    >>> import blendfusion as bf
    >>> model = bf.ScriptedModel(lambda call: {True: 0.9, False: 0.1} if call.constraint.kind == "boolean" else "bugs")
    >>> reviews = bf.connect(model).from_pydict({"text": ["It crashes!"]})
    >>> questions = {"angry": "Is the writer angry?", "team": {"question": "Which team?", "options": ["billing", "bugs"]}}
    >>> reviews.select(bf.decide("text", questions)).to_pylist()
    [{'decision': {'angry': 0.9, 'team': 'bugs'}}]
    """
    posed = read_questions(questions)
    if isinstance(values, Frame):
        columns = [f'"{column}"' for column in values.schema().names]
        if not columns:
            raise ArgumentError("decide: the frame has no column", hint="Select some columns.")
        return values.with_column(name, _struct(columns, posed, model))
    read = [values] if isinstance(values, str | Expr) else values
    return _struct(read, posed, model).alias(name)


def _struct(
    columns: Sequence[ColumnLike],
    questions: Sequence[DecisionQuestion],
    model: str | Sequence[str] | None,
) -> Expr:
    return f.named_struct([(one.name, _answer(one, columns, model)) for one in questions])


def _answer(
    question: DecisionQuestion,
    columns: Sequence[ColumnLike],
    model: str | Sequence[str] | None,
) -> Expr:
    arguments = (question.text, *columns)
    if question.kind == "yes_no":
        return expression(LLM_PROBABILITY, arguments, model=model)
    if question.kind == "score":
        return expression(LLM_SCORE, arguments, levels=[*question.options], model=model)
    return expression(LLM_MAP, arguments, options=question.choices, model=model)
