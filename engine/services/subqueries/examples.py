"""Picks worked examples from a table of labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendfusion.errors import QueryError
from blendfusion.models.embedders.cache import UnknownVectorError
from blendfusion.models.prompts.parse_reply import read_answer
from blendfusion.services.subqueries.example_selection import pick
from blendfusion.services.subqueries.subquery_rows import option_text, rows_of, text_rows
from blendfusion.types import Constraint, Example, Task
from blendfusion.udfs.declare.sample import filled_rows

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher

MAX_CHARACTERS = 1_000
"""Maximum length of an example, unless all are longer: every value follows the examples in the
prompt."""

Row = tuple[str, ...]


def labelled_frame(engine: Engine, query: str, task: Task) -> BaseFrame:
    """A frame of the rows that ``query`` gives: the values of ``task``, then the right answer, as
    texts.

    Nothing runs. Raises QueryError for a query that does not stand alone or has other columns.
    """
    width = 1 if task.aggregate else len(task.columns)
    hint = "Select the values in the order of the call, then the right answer."
    return text_rows(engine, query, option_text("examples", query), width + 1, hint)


def read_examples(
    frame: BaseFrame, query: str, task: Task, dispatcher: Dispatcher
) -> tuple[Example, ...]:
    """The examples that are picked from the rows of ``frame``; rows with a NULL or a blank text are
    left out. The same rows give the same ones, in whatever order they come.

    Calls in the query are answered by ``dispatcher``, whose embedder tells which rows are typical.
    Raises QueryError for no rows, too many, or an answer outside of the task's constraint."""
    every = rows_of(frame, option_text("examples", query), dispatcher)
    rows = sorted(filled_rows(every))
    if not rows:
        raise QueryError(
            f"{option_text('examples', query)} gives no examples",
            hint="Each row needs all values and the right answer, none of them NULL or blank.",
        )
    short = [row for row in rows if sum(map(len, row)) <= MAX_CHARACTERS]
    found = [Example(row[:-1], _answer(row[-1], task.constraint, query)) for row in short or rows]
    return tuple(found[place] for place in _pick(found, dispatcher))


def _pick(examples: Sequence[Example], dispatcher: Dispatcher) -> list[int]:
    answers = [example.answer for example in examples]
    without = pick(answers, None)
    if len(without) == len(examples):
        return without
    try:
        vectors = dispatcher.embedder_for(None).embed(
            ["\n".join(example.values) for example in examples]
        )
    except UnknownVectorError:  # an estimate embeds nothing, and needs only their number
        return without
    return pick(answers, vectors)


def _answer(reply: str, constraint: Constraint, query: str) -> str:
    """The answer of an example in canonical form."""
    text = read_answer(reply, constraint)
    if text is None:
        raise QueryError(
            f"{option_text('examples', query)} gives the answer {reply!r}, which is not {constraint}",
            hint="The last column holds right answers: write them as the call gives them.",
        )
    return text
