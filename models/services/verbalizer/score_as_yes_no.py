"""The tasks that a model runs for another: for "How positive is this review?" the yes/no question
"Is this review positive?", for yes/no questions their likelihood (``query_likelihood``).

Small models separate little by the numbers of a scale, and much by the words of an idea and of its
opposite. So if the idea is known, the score is the probability of yes, on the scale
(benchmarks/lab.md).
"""

from __future__ import annotations

import re
from dataclasses import replace

from blendfusion.models.services.verbalizer.parse_question import question_idea
from blendfusion.models.services.verbalizer.query_likelihood import by_likelihood, question_behind
from blendfusion.models.services.verbalizer.ways import ALONE, Way
from blendfusion.options import Options
from blendfusion.types import Constraint, Task

_VERB = "is|are|was|were|does|do|did"
_FORMS = (
    (rf"how (?P<idea>[\w-]+) (?P<verb>{_VERB}) (?P<subject>.+)", "{verb} {subject} {idea}"),
    (r"how (?P<idea>[\w-]+)", "is it {idea}"),
    (
        rf"(?:how (?:much|strongly|clearly)|to (?:what|which) (?:extent|degree)) (?P<asked>(?:{_VERB}) .+)",
        "{asked}",
    ),
)
"""Questions for a degree, with their yes/no questions."""


def model_tasks(task: Task, options: Options, *, way: Way | None = None) -> tuple[Task, ...]:
    """The tasks that a local model runs for ``task``, whose log odds it adds up: that of
    ``rewrite_task``, and beside the words of a known idea the question behind the text, if the
    model's ``way`` weighs both, or instead of these words if they do not count. The words of an
    idea with an opposite count alone: they are better than the likelihood (benchmarks/lab.md).

    >>> sports = Task("llm_filter", "Is it about sports?", Constraint("boolean"), ("text",))
    >>> way = Way("text", likelihood=1.0, ideas=2.0)
    >>> [task.form for task in model_tasks(sports, Options(), way=way)]
    ['question', 'likelihood']
    """
    run = rewrite_task(task, options, way=way)
    if way is None or not by_likelihood(run, options):
        return (run,)
    idea = question_idea(run)
    if idea is None or idea.has_opposite or not way.ideas or len(run.columns) > 1:
        return (run,)
    behind = question_behind(run, way)
    return (behind,) if way.ideas == ALONE else (run, behind)


def rewrite_task(task: Task, options: Options, *, way: Way | None = None) -> Task:
    """The task that a local model runs for ``task``: for a score about one known idea, the yes/no
    question; for a yes/no question about no known idea, by the model's ``way``, its own likelihood
    behind the text, and the answer behind both.

    Other tasks are returned unchanged, and so are scores with examples, which have numbers.

    >>> task = Task("llm_score", "How positive is this review?", Constraint("score", scale=(0, 10)))
    >>> rewrite_task(task, Options()).question
    'Is this review positive?'
    >>> task = Task("llm_filter", "Does the customer want a refund?", Constraint("boolean"))
    >>> rewrite_task(task, Options(), way=Way("text", likelihood=1.0)).form
    'likelihood'
    """
    if way is not None and by_likelihood(task, options) and question_idea(task) is None:
        return question_behind(task, way)
    if task.constraint.kind != "score" or task.examples:
        return task
    if task.constraint.distribution or task.constraint.meanings:
        return task
    if not options.wordings or options.calibration == "none":
        return task
    question_text = " ".join(task.question.split()).removesuffix("?").rstrip()
    for form, question in _FORMS:
        found = re.fullmatch(form, question_text, re.IGNORECASE)
        if found is None:
            continue
        yes_no_text = question.format(**found.groupdict())
        yes_no_text = f"{yes_no_text[:1].upper()}{yes_no_text[1:]}?"
        yes_no = replace(task, question=yes_no_text, constraint=Constraint("boolean"))
        if question_idea(yes_no) is not None:
            return yes_no
    return task
