"""Chooses the cheapest model, or cascade of models, whose accuracy labelled rows certify.

Each model answers the labelled rows alone. Its accuracy has a lower bound (Clopper and Pearson),
and all these bounds hold together with a probability of 1 - delta / 2. A cascade agrees with its
last model on a share of the values, with the same probability, so it is at least as right as that
model's bound less the share on which they may differ. The cheapest of all that reach the target is
chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pyarrow as pa

from blendfusion.budget import Budget
from blendfusion.errors import ArgumentError
from blendfusion.language.query_text.stored_calls import StoredCall
from blendfusion.models.guarantees.accuracy import Targets, lower
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.prepare.function_registry import ingredients
from blendfusion.services.evaluate.calibrate import only_call
from blendfusion.services.evaluate.evaluation import Comparison, Evaluation
from blendfusion.services.evaluate.improve import check_call
from blendfusion.services.evaluate.question_file import StoredQuestion
from blendfusion.services.evaluate.run import evaluate_calls, table_of, with_option
from blendfusion.udfs.ask.answer_samples import AnswerCounts, AnswerSample
from blendfusion.udfs.ask.calibrations import wording_of
from blendfusion.udfs.declare.arguments import sql_string

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

_MANY = 1 << 24
"""The labelled rows are a sample of so many."""
_CLOSED = ("boolean", "label")
_MEASURED: WeakKeyDictionary[BaseSession, dict[str, float]] = WeakKeyDictionary()
"""The seconds of a value that each model took, as measured last."""


@dataclass(frozen=True)
class Candidate:
    """A model, or a cascade of several, the smallest first.

    ``accuracy`` is its lower bound on rows like the labelled ones; ``agreement`` the share of
    values to which a cascade must give the answer of its last model, None for one model. ``cost``
    is that of a value; of a cascade an estimate, without its sample.
    """

    models: tuple[str, ...]
    accuracy: float
    cost: float
    agreement: float | None = None

    def __str__(self) -> str:
        """
        >>> print(Candidate(("small", "large"), accuracy=0.9, cost=0.25, agreement=0.95))
        small, large (0.950 of large's answers): accuracy ≥ 0.900, cost 0.25
        """
        agrees = f" ({self.agreement:.3f} of {self.models[-1]}'s answers)" if self.agreement else ""
        named = ", ".join(self.models)
        return f"{named}{agrees}: accuracy ≥ {self.accuracy:.3f}, cost {self.cost:.3g}"


@dataclass(frozen=True)
class ModelChoice:
    """The outcome of ``session.choose_model``.

    ``question`` holds the call with the chosen models. ``met`` is whether the target is certain;
    if not, the model with the highest bound is chosen. ``candidates`` are all that reach the
    target, the cheapest first, then the other models. ``evaluations`` are those of the models
    alone.
    """

    question: StoredQuestion
    met: bool
    candidates: tuple[Candidate, ...]
    evaluations: Comparison

    @property
    def chosen(self) -> Candidate:
        return self.candidates[0]

    def __repr__(self) -> str:
        verdict = "the cheapest that is accurate enough" if self.met else "none is accurate enough"
        lines = [f"{self.question.name}: {verdict}", *(f"  {one}" for one in self.candidates)]
        return "\n".join([*lines, "", repr(self.evaluations)])


def choose_model(
    session: BaseSession,
    name: str,
    source: object,
    call: str,
    label: str,
    *,
    models: Sequence[str],
    accuracy: float,
    delta: float,
    costs: Mapping[str, float] | None,
    within: float,
    budget: Budget | None,
    version: int,
) -> ModelChoice:
    """The cheapest model or cascade for a call: see ``Session.choose_model``."""
    check_call(session, call)
    if not models or isinstance(models, str) or len({*models}) < len(models):
        hint = "models=['smollm2', 'large'], say."
        raise ArgumentError(f"models={models!r} are no models to choose from", hint=hint)
    if not (0 < accuracy < 1 and 0 < delta < 1):
        raise ArgumentError(f"accuracy={accuracy!r}, delta={delta!r}", hint="Shares, such as 0.9.")
    _, table = table_of(session, source)
    columns = StoredCall(call).values(ingredients(session))
    found = evaluate_calls(
        session,
        _distinct(table, columns, label),
        {model: with_option(session, call, "model", sql_string(model)) for model in models},
        label,
        models=(),
        kind=None,
        within=within,
        budget=budget,
    )
    each = _costs(session, found, costs)
    alone = [
        Candidate((one.name,), _lower_bound(one, delta / 2 / len(models)), each[one.name])
        for one in found
    ]
    alone.sort(key=lambda one: one.cost)
    enough = [one for one in alone if one.accuracy >= accuracy]
    enough += _cascades(found, alone, accuracy)
    others = sorted(
        (one for one in alone if one.accuracy < accuracy), key=lambda one: -one.accuracy
    )
    candidates = (*sorted(enough, key=lambda one: one.cost), *others)
    chosen = candidates[0]
    figures = {
        "rows": float(found[0].rows - found[0].unlabelled),
        "accuracy_at_least": round(chosen.accuracy, 4),
        "cost": round(chosen.cost, 6),
    }
    text = _with_models(session, call, chosen, delta / 2)
    sample = _sample(session, call, found[chosen.models[0]])
    question = StoredQuestion(name, text, version, measured=figures, sample=sample)
    return ModelChoice(question, bool(enough), candidates, found)


def _distinct(table: pa.Table, columns: Sequence[str], label: str) -> pa.Table:
    """The labelled rows, of those with equal values the first."""
    names = [column.strip('"') for column in columns]
    missing = [name for name in (*names, label) if name not in table.column_names]
    if missing:
        raise ArgumentError(f"the table has no column '{missing[0]}'")
    labelled = table.filter(table[label].is_valid())
    seen: dict[tuple[object, ...], int] = {}
    for row, values in enumerate(zip(*(labelled[n].to_pylist() for n in names), strict=True)):
        seen.setdefault(values, row)
    return labelled.take(pa.array(seen.values(), pa.int64()))


def _costs(
    session: BaseSession, found: Comparison, given: Mapping[str, float] | None
) -> dict[str, float]:
    """The cost of a value by the name of its model. Where its answers are stored ones, the cost is
    that of the session's run that asked for them."""
    if given is not None:
        stated = {one.name: given[one.name] for one in found if one.name in given}
    elif all(one.cost is not None and one.usage.values for one in found):
        stated = {one.name: (one.cost or 0.0) / one.usage.values for one in found}
    else:
        measured = _MEASURED.setdefault(session, {})
        measured |= {
            one.name: one.usage.seconds / one.usage.values for one in found if one.usage.values
        }
        stated = {one.name: measured[one.name] for one in found if one.name in measured}
    unknown = [one.name for one in found if one.name not in stated]
    if unknown:
        raise ArgumentError(
            f"the cost of {unknown[0]} is not known",
            hint="State what a value costs of each model, in any unit: costs={'small': 1, 'large': 20}.",
        )
    return stated


def _lower_bound(one: Evaluation, delta: float) -> float:
    """A lower bound of the share of right answers; a row without an answer is not right."""
    right = sum(right is True for right in one.right)
    return lower(_MANY, one.rows, right, delta) / _MANY if one.rows else 0.0


def _cascades(
    found: Comparison, alone: Sequence[Candidate], accuracy: float
) -> Iterator[Candidate]:
    """The cascades whose last model is more accurate than the target."""
    if found[0].compared.kind not in _CLOSED:
        return
    for place, last in enumerate(alone):
        if last.accuracy <= accuracy:
            continue
        small = [one for one in alone[:place] if _tells(found[one.models[0]])]
        agreement = 1 - (last.accuracy - accuracy)
        for size in range(1, len(small) + 1):
            for some in combinations(small, size):
                levels = [*some, last]
                names = tuple(one.models[0] for one in levels)
                cost = _estimate_cost(found, levels, agreement)
                yield Candidate(names, accuracy, cost, agreement)


def _tells(one: Evaluation) -> bool:
    """Whether the model tells how probable its answers are."""
    return any(sure is not None for sure in one.compared.confidences)


def _estimate_cost(found: Comparison, levels: Sequence[Candidate], agreement: float) -> float:
    """The cost of a value in a cascade, if each model decides its surest answers as long as too few
    of them differ from the last model's on the labelled rows."""
    *small, last = levels
    right = found[last.models[0]].compared.answers
    target = Targets(accuracy=agreement).shared(len(small)).accuracy or agreement
    left, cost = list(range(len(right))), 0.0
    for one in small:
        cost += one.cost * len(left)
        held = found[one.models[0]].compared
        sure = sorted(left, key=lambda row: -(held.confidences[row] or 0.0))
        wrong = decided = 0
        for place, row in enumerate(sure, start=1):
            wrong += held.answers[row] != right[row]
            if wrong <= (1 - target) * len(right):
                decided = place
        left = sure[decided:]
    return (cost + last.cost * len(left)) / max(1, len(right))


def _sample(session: BaseSession, call: str, first: Evaluation) -> AnswerSample | None:
    """The answers of the model that answers first; None where they are not of a closed set."""
    compared = first.compared
    if compared.kind not in _CLOSED:
        return None
    counts = AnswerCounts()
    for answer, sure in zip(compared.answers, compared.confidences, strict=True):
        if answer is not None:
            counts.note(str(answer), sure)
    model = session.models.of(ModelNames((first.name,)), session.options)
    wording = wording_of(only_call(session, call).task)
    return AnswerSample(model.name, wording, counts.answers, counts.confidences)


def _with_models(session: BaseSession, call: str, chosen: Candidate, delta: float) -> str:
    """The call with the models of a candidate, and the promise of a cascade."""
    if chosen.agreement is None:
        return with_option(session, call, "model", sql_string(chosen.models[0]))
    listed = ", ".join(map(sql_string, chosen.models))
    text = with_option(session, call, "model", f"[{listed}]")
    text = with_option(session, text, "accuracy", f"{ceil(chosen.agreement * 1e6) / 1e6:g}")
    return with_option(session, text, "delta", f"{delta:g}")
