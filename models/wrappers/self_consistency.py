"""Asks a question in several ways, and takes the majority answer.

Small models change their minds with the order of examples and options and with the words around
them. Self-consistency (Wang et al., "Self-Consistency Improves Chain of Thought Reasoning", 2023)
draws several answers at random; here the prompts differ and nothing is random, so equal questions
have equal answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.protocol.model import Model, OnAnswer, Values
from blendfusion.models.stores.memory import FROM_CACHE
from blendfusion.types import Answer, Task, Usage


def answer_consistently(
    model: Model, task: Task, values: Sequence[Values], on_answer: OnAnswer
) -> list[Answer]:
    """The answers that ``Task.consistency`` prompts agree on most, passed on when all prompts are
    answered.

    ``model`` stores answers: each prompt is a task of its own, so that an interrupted run repeats
    none."""
    ways = [replace(task, consistency=1, variant=way) for way in range(task.consistency)]
    answered = [model.answer(way, values) for way in ways]
    options = closed_set(task.constraint) or ()
    answers = [majority(given, options) for given in zip(*answered, strict=True)]
    for place, answer in enumerate(answers):
        on_answer(place, answer)
    return answers


def majority(given: Sequence[Answer], options: Sequence[str] = ()) -> Answer:
    """The answer of most of ``given``, the answers to one value; among equals, the earlier one.

    Answers count by their probabilities if all have them: the rest of the probability goes to the
    other options in equal parts. The probability of the result is the mean, or the share of the
    answers.

    >>> answers = [Answer("a"), Answer("b"), Answer("b")]
    >>> majority(answers).text
    'b'
    """
    usage = Usage.total(answer.usage for answer in given)
    known = usage.cached == len(given)
    usage = FROM_CACHE if known else replace(usage, values=1, cached=0, failed=0)
    valid = [answer for answer in given if answer.error is None]
    if not valid:
        return given[0].with_usage(replace(usage, failed=1))
    votes: dict[str | None, float] = defaultdict(float)
    sure = [exp(answer.logprob) for answer in valid if answer.logprob is not None]
    weighed = len(options) > 1 and len(sure) == len(valid)
    for place, answer in enumerate(valid):
        share = sure[place] if weighed else 1.0
        votes[answer.text] += share
        if weighed:
            for option in options:
                votes[option] += (1 - share) / (len(options) - 1) if option != answer.text else 0.0
    best = max((answer.text for answer in valid), key=lambda text: round(votes[text], 9))
    first = next(answer for answer in valid if answer.text == best)
    logprob = log(min(1.0, votes[best] / len(valid))) if options else None
    return replace(first, logprob=logprob).with_usage(usage)
