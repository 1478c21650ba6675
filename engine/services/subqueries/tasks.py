"""The subqueries of tasks: frames before a run, and the tasks with what a run reads of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from blendfusion.services.subqueries.examples import labelled_frame, read_examples
from blendfusion.services.subqueries.options import option_frame, read_options
from blendfusion.services.subqueries.sample import read_sample, sample_frame
from blendfusion.types import Constraint, Task

if TYPE_CHECKING:
    from blendfusion.run.engine import Engine, Subqueries
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.dispatcher import Dispatcher


def frames_of(engine: Engine, task: Task, known: Subqueries) -> Subqueries:
    """The frames of the subqueries of a task, ``known`` ones or new ones. Nothing runs. Raises
    QueryError for a query that does not stand alone or has other columns."""
    found: dict[tuple[str, object], BaseFrame] = {}
    if task.options_query is not None:
        one = "options", task.options_query
        found[one] = known.get(one) or option_frame(engine, task.options_query)
    if task.examples_query is not None:
        two = "examples", task
        found[two] = known.get(two) or labelled_frame(engine, task.examples_query, task)
    if task.sample_query is not None:
        three = "sample", task
        width = len(task.columns)
        found[three] = known.get(three) or sample_frame(engine, task.sample_query, width)
    return found


def settled_task(task: Task, frames: Subqueries, dispatcher: Dispatcher) -> Task:
    """The task with the options, examples and sample that its subqueries give; ``dispatcher``
    answers the calls in them. Raises QueryError for too many or no rows."""
    for (what, _), frame in frames.items():
        if what == "options":
            found = read_options(frame, task.options_query or "", dispatcher)
            task = _with_options(task, found)
        elif what == "examples":
            picked = read_examples(frame, task.examples_query or "", task, dispatcher)
            task = replace(task, examples=picked, examples_query=None)
        else:
            sample = read_sample(frame, task.sample_query or "", dispatcher)
            task = replace(task, sample=sample, sample_query=None)
    return task


def _with_options(task: Task, options: Sequence[str] | None) -> Task:
    """``task`` with these for the options that its subquery gave; None: with texts."""
    constraint = task.constraint
    if options is None:
        choice = Constraint("text")
    else:
        choice = replace(constraint.item or constraint, query=None, options=tuple(options))
    if constraint.item is not None:
        choice = replace(constraint, item=choice)
    return replace(task, constraint=choice)
