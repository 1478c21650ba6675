"""Every interval that an evaluation prints holds the true figure in 93 to 98 of 100 samples, which
differ in size, shares, rows a value and wrong labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np
import pytest

from blendfusion.services.evaluate.figures import (
    Figure,
    area_figures,
    confidence_figures,
    label_figures,
    number_figures,
    yes_no_figures,
)

pytestmark = pytest.mark.long
Truth = tuple[Figure, float]


class Sample:
    """Rows of values that are all equally frequent. Rows of one value have one answer, and labels
    that are wrong one by one."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        rows = int(np.exp(rng.uniform(np.log(10), np.log(5_000))))
        self.each = int(rng.integers(1, 51)) if rng.random() < 0.5 else 1
        self.values = max(10, rows // self.each)
        self.groups = np.repeat(np.arange(self.values), self.each)
        self.share = rng.uniform(0.01, 0.99)
        self.right = rng.uniform(0.6, 0.99)
        self.noise = rng.choice([0.0, 0.02, 0.1])


def yes_no(s: Sample) -> Iterator[Truth]:
    yes = s.rng.random(s.values) < s.share
    answers = (yes == (s.rng.random(s.values) < s.right))[s.groups]
    labels = yes[s.groups] != (s.rng.random(len(s.groups)) < s.noise)
    # both[a, b]: the probability of answer a and label b
    true = np.array([1 - s.share, s.share])
    answered = np.array([[s.right, 1 - s.right], [1 - s.right, s.right]])
    labelled = np.array([[1 - s.noise, s.noise], [s.noise, 1 - s.noise]])
    both = np.einsum("t,ta,tb->ab", true, answered, labelled)
    recalls = both[1, 1] / both[:, 1].sum(), both[0, 0] / both[:, 0].sum()
    known = [r for r, there in zip(recalls, (labels.any(), not labels.all()), strict=True) if there]
    truth = {
        "accuracy": both.trace(),
        "balanced_accuracy": np.mean(known),
        "precision": both[1, 1] / both[1].sum(),
        "recall": recalls[0],
        "f1": 2 * both[1, 1] / (both[1].sum() + both[:, 1].sum()),
    }
    for figure in yes_no_figures(answers, labels, s.groups):
        yield figure, float(truth[figure.name])


def labels(s: Sample) -> Iterator[Truth]:
    classes = int(s.rng.integers(2, 7))
    true = s.rng.integers(0, classes, s.values)
    wrong = (true + s.rng.integers(1, classes, s.values)) % classes
    answers = np.where(s.rng.random(s.values) < s.right, true, wrong)
    for figure in label_figures(answers[s.groups], true[s.groups], classes, s.groups):
        yield figure, s.right


def numbers(s: Sample) -> Iterator[Truth]:
    off = s.rng.exponential(1, s.values)[s.groups]
    for figure in number_figures(off.tolist(), [0.0] * len(off), 0.5, s.groups):
        yield figure, 1.0 if figure.name == "mae" else 1 - float(np.exp(-0.5))


def confidences(s: Sample) -> Iterator[Truth]:
    over = s.rng.choice([0.02, 0.05, 0.2])
    stated = s.rng.uniform(0.5, 1, s.values)
    right = s.rng.random(s.values) < stated - over
    for figure in confidence_figures(stated[s.groups].tolist(), right[s.groups].tolist(), s.groups):
        yield figure, float(over)


def areas(s: Sample) -> Iterator[Truth]:
    yes = s.rng.random(s.values) < s.share
    apart = s.rng.uniform(0.2, 2)
    scores = s.rng.normal(yes * apart, 1)[s.groups]
    for figure in area_figures(scores.tolist(), yes[s.groups].tolist(), s.groups):
        yield figure, NormalDist().cdf(apart / 2**0.5)


@pytest.mark.parametrize(
    ("kind", "runs_by_default"),
    [(yes_no, 2_000), (labels, 2_000), (numbers, 2_000), (areas, 2_000), (confidences, 400)],
)
def test_intervals_hold_as_often_as_they_say(kind, runs_by_default: int, cases: int) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(48)
    held: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for _ in range(max(runs_by_default, cases)):
        for figure, truth in kind(Sample(rng)):
            if figure.value == figure.value:  # there are rows of it
                runs[figure.name] += 1
                held[figure.name] += figure.low <= truth <= figure.high
    shares = {name: held[name] / runs[name] for name in runs}
    assert all(0.93 <= share <= 0.98 for share in shares.values()), shares
