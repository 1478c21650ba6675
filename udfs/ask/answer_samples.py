"""The answers to labelled values by which a model was chosen, beside those of later runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, sqrt
from typing import TYPE_CHECKING, TypeAlias
from unicodedata import normalize

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.calibrations import wording_of

if TYPE_CHECKING:
    from blendfusion.models.wrappers.cache import CachedModel

FALSE_ALARMS = 0.01
"""The most probable share of runs over values like the labelled ones that are warned of."""
LEAST = 20
"""Fewer new values are not compared."""
BINS = 20
"""Confidences are counted in bins of equal width from 0 to 1."""


@dataclass(frozen=True)
class AnswerSample:
    """The answers of a model to labelled values: the number of each answer, and of probabilities
    in each bin. ``wording`` is a digest of the question."""

    model: str
    wording: str
    answers: Mapping[str, int]
    confidences: Sequence[int]

    def difference(self, new: AnswerCounts) -> str:
        """How the answers of a run differ; '' where chance explains it."""
        labels = sorted(self.answers, key=lambda label: (-self.answers[label], label))
        labels += sorted(new.answers.keys() - self.answers.keys())
        old = [self.answers.get(label, 0) for label in labels]
        now = [new.answers[label] for label in labels]
        if _differ(old, now):
            most = max(range(len(labels)), key=lambda i: abs(old[i] / sum(old) - now[i] / sum(now)))
            here, there = now[most] / sum(now), old[most] / sum(old)
            return f"the share of one answer is {here:.2f}, there {there:.2f}"
        if _differ(self.confidences, new.confidences):
            there, here = _mean(self.confidences), _mean(new.confidences)
            return f"their mean probability is {here:.2f}, there {there:.2f}"
        return ""


@dataclass
class AnswerCounts:
    """The answers of a run to distinct values."""

    answers: Counter[str] = field(default_factory=Counter)
    confidences: list[int] = field(default_factory=lambda: [0] * BINS)

    def note(self, answer: str, confidence: float | None) -> None:
        """Count one answer, in any letter case, with its probability if that is known."""
        self.answers[" ".join(normalize("NFKC", answer).casefold().split())] += 1
        if confidence is not None:
            self.confidences[min(int(confidence * BINS), BINS - 1)] += 1

    def __len__(self) -> int:
        return self.answers.total()


Named: TypeAlias = tuple[str, AnswerSample]
"""The name of a stored question, and its sample."""


class AnswerSamples:
    """The samples of a session's stored questions, by wording and model."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Named] = {}

    def keep(self, name: str, sample: AnswerSample) -> None:
        """Keep the sample of a question, in the place of one of the same wording and model."""
        self._held[sample.wording, sample.model] = name, sample

    def of(self, model: CachedModel, task: Task) -> Named | None:
        """The sample for a model and a task; None where there is none."""
        if not self._held:
            return None
        return self._held.get((wording_of(task), model.name))


class ComparedRun:
    """Compares the answers of one run with the samples of its session."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[AnswerSample, AnswerCounts]] = {}
        self._met: set[tuple[str, Values]] = set()

    def note(self, named: Named, answers: Mapping[Values, Answer]) -> None:
        """Count answers, those to equal values once."""
        name, sample = named
        _, counts = self._counts.setdefault(name, (sample, AnswerCounts()))
        for values, answer in answers.items():
            if answer.text is not None and (name, values) not in self._met:
                self._met.add((name, values))
                counts.note(answer.text, answer.probability)

    def differences(self) -> Iterator[str]:
        """A text for each question whose answers or probabilities are others than those to the
        labelled values; for equal distributions with a probability of at most
        ``FALSE_ALARMS``."""
        for name, (sample, counts) in self._counts.items():
            found = sample.difference(counts) if len(counts) >= LEAST else ""
            if found:
                labelled = sum(sample.answers.values())
                yield (
                    f"'{name}' was chosen by {labelled:,} labelled values, but the answers of "
                    f"{sample.model} to {len(counts):,} values are others: {found}. Its accuracy is "
                    "not certain here: label some of these values, and choose again."
                )


def _differ(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether two samples come from different distributions: Smirnov's test (1939) with Massart's
    constant, which ties make conservative. Half of ``FALSE_ALARMS`` is for each of two tests."""
    n, m = sum(old), sum(new)
    if not n or not m:
        return False
    apart = farthest = 0.0
    for before, now in zip(old, new, strict=True):
        apart += before / n - now / m
        farthest = max(farthest, abs(apart))
    return farthest > sqrt(log(4 / FALSE_ALARMS) / 2 * (n + m) / (n * m))


def _mean(bins: Sequence[int]) -> float:
    return sum((i + 0.5) / BINS * number for i, number in enumerate(bins)) / sum(bins)
