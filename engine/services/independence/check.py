"""Asks values again, alone and in company, and compares."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from blendfusion.errors import ArgumentError, QueryError
from blendfusion.models.protocol.model import Values, call_method
from blendfusion.run.observe.progress import count_noun
from blendfusion.types import Answer, Constraint, Task

if TYPE_CHECKING:
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.ask.ledger import Ledger

_TOLERANCE = 0.025
"""Servers round probabilities to two decimals, and repeat them to the second."""
_BESIDE = Task("check_independence", "Is the text longer than a sentence?", Constraint("boolean"))
"""The company of a decision model's only question."""
_SCHEMA = pa.schema(
    [
        *(("question", pa.string()), ("values", pa.list_(pa.string()))),
        *(("alone", pa.string()), ("in_company", pa.string())),
        *(("probability_alone", pa.float64()), ("probability_in_company", pa.float64())),
        ("moved", pa.bool_()),
    ]
)

_Together: TypeAlias = Callable[[Sequence[Task], Sequence[Values]], list[list[Answer]]]


@dataclass(frozen=True, slots=True)
class Independence:
    """How many answers depend on their company.

    ``rows``: for each value that was asked again its question, its values, both answers with the
    probabilities that the model gives, and whether the answer moved: another text, or a probability
    or a share of a score's scale that differs by more than 0.025. It is NULL where the model failed
    at one of the two.
    """

    rows: pa.Table

    @property
    def asked(self) -> int:
        """The number of values that were asked again, and answered both times."""
        return int(self.rows.num_rows - self.rows["moved"].null_count)

    @property
    def moved(self) -> int:
        """The number of values whose answer or probability differs beside other values."""
        return int(self.rows["moved"].to_pylist().count(True))

    def __repr__(self) -> str:
        return f"{self.moved:,} of {count_noun(self.asked, 'answer')} moved in other company"


def check_independence(frame: BaseFrame, k: int, seed: int) -> Independence:
    """See ``Frame.check_independence``."""
    if k < 1:
        raise ArgumentError(f"k={k} is not possible", hint="At least one value is asked again.")
    frame.to_arrow_table()
    by_task: dict[Task, dict[Values, None]] = {}
    for task, values, _ in frame.trace.batches:
        by_task.setdefault(task.in_full, {}).update(dict.fromkeys(values))
    model = frame.session.model
    questions = {t: list(v) for t, v in by_task.items() if model.abilities.unanswerable(t) is None}
    if not questions:
        raise QueryError("the run asked nothing that can be asked again")
    ledger = frame.session.ledger.for_query()
    ledger.open(model)
    draw = random.Random(seed)
    rows: list[dict[str, object]] = []
    for task, values in questions.items():
        some = draw.sample(values, min(k, len(values)))
        alone = [_ask(ledger, model, task, [row])[0] for row in some]
        company = _in_company(ledger, model, task, some, [*questions], draw)
        rows += map(_row, [task] * len(some), some, alone, company)
    return Independence(pa.Table.from_pylist(rows, _SCHEMA))


def _in_company(
    ledger: Ledger,
    model: CachedModel,
    task: Task,
    values: list[Values],
    tasks: list[Task],
    draw: random.Random,
) -> list[Answer]:
    """The answers beside other questions, or other values in another order."""
    together: _Together | None = getattr(model.inner, "answer_together", None)
    if together is not None:
        others = [other for other in tasks if other != task] or [_BESIDE]
        ledger.admit(task, len(values), model)
        begun = perf_counter()
        answers = [found[0] for found in together([task, *others], values)]
        ledger.settle(task, len(values), answers, perf_counter() - begun)
        return answers
    order = draw.sample(range(len(values)), len(values))
    found = _ask(ledger, model, task, [values[place] for place in order])
    by_place = dict(zip(order, found, strict=True))
    return [by_place[place] for place in range(len(values))]


def _ask(ledger: Ledger, model: CachedModel, task: Task, values: list[Values]) -> list[Answer]:
    """The answers of the model itself, whatever is stored."""
    answers: list[Answer] = []
    while len(answers) < len(values):
        size = ledger.admit(task, len(values) - len(answers), model)
        begun = perf_counter()
        some = values[len(answers) : len(answers) + size]
        given = call_method(model.inner.answer, task, some)
        ledger.settle(task, size, given, perf_counter() - begun)
        answers += given
    return answers


def _row(task: Task, values: Values, alone: Answer, company: Answer) -> dict[str, object]:
    return {
        "question": task.question,
        "values": list(values),
        "alone": alone.text,
        "in_company": company.text,
        "probability_alone": alone.probability,
        "probability_in_company": company.probability,
        "moved": None if alone.error or company.error else _differ(task, alone, company),
    }


def _differ(task: Task, one: Answer, other: Answer) -> bool:
    """Whether two answers differ by more than rounding and repetition explain."""
    figures = _shares(task, one), _shares(task, other)
    if figures[0] and figures[1]:
        return any(abs(p - q) > _TOLERANCE for p, q in zip(*figures, strict=True))
    sure = one.probability, other.probability
    far = None not in sure and abs((sure[0] or 0) - (sure[1] or 0)) > _TOLERANCE
    return far or one.text != other.text


def _shares(task: Task, answer: Answer) -> list[float]:
    """The probabilities of a distribution, or the place of a score on its scale, from 0 to 1; empty
    for other answers."""
    constraint = task.constraint
    if answer.text is None:
        return []
    if constraint.distribution:
        stated = json.loads(answer.text)
        return [float(stated[option]) for option in sorted(stated)]
    if constraint.kind == "score" and constraint.scale is not None:
        low, high = constraint.scale
        return [(float(answer.text) - low) / (high - low)]
    return []
