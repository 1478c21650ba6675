"""Bounds are exact, and what is certified fails as rarely as it says: on made-up populations, many
times."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from amounts import long_after
from hypothesis import given
from hypothesis import strategies as st

from blendfusion.models.guarantees.accuracy import (
    LEAST_VALUES,
    NO,
    UNKNOWN,
    YES,
    Certificate,
    Decisions,
    Targets,
    lower,
    upper,
)
from blendfusion.models.guarantees.precision_recall import RankedPair


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_an_upper_bound_is_too_low_as_rarely_as_it_says(delta: float) -> None:
    """All populations of up to 14 values, all samples of them, by counting."""
    for size in range(15):
        for drawn in range(size + 1):
            bounds = [upper(size, drawn, found, delta) for found in range(drawn + 1)]
            for marked in range(size + 1):
                ways = [
                    comb(marked, found) * comb(size - marked, drawn - found)
                    for found in range(drawn + 1)
                    if bounds[found] < marked
                ]
                assert Fraction(sum(ways), comb(size, drawn)) <= Fraction(delta)


@given(st.integers(1, 3000), st.data())
def test_it_is_the_largest_that_the_sample_does_not_rule_out(
    size: int, data: st.DataObject
) -> None:
    drawn = data.draw(st.integers(0, size))
    found = data.draw(st.integers(0, drawn))
    bound = upper(size, drawn, found, 0.05)

    def tail(marked: int) -> Fraction:
        ways = (
            comb(marked, k) * comb(size - marked, drawn - k)
            for k in range(max(0, found - 40), found + 1)
        )
        return Fraction(sum(ways), comb(size, drawn))

    assert found <= bound <= size - (drawn - found)
    if found <= 40:  # else the sum above is a part of the tail
        assert bound == size - (drawn - found) or tail(bound + 1) <= Fraction(5, 100)
        assert bound == found or tail(bound) > Fraction(5, 100) * (1 - Fraction(1, 10**6))


@given(st.integers(1, 10**6), st.data())
def test_large_numbers_neither_break_nor_contradict(size: int, data: st.DataObject) -> None:
    drawn = data.draw(st.integers(0, min(size, 5000)))
    found = data.draw(st.integers(0, drawn))
    low, high = lower(size, drawn, found, 0.05), upper(size, drawn, found, 0.05)
    assert found <= low <= high <= size
    assert drawn == 0 or low <= max(found, round(size * found / drawn)) <= high + 1


class Population:
    """Values whose oracle says yes or no, and a proxy that knows a little of it."""

    def __init__(self, size: int, share: float, strength: float, seed: int) -> None:
        made = np.random.default_rng(seed)
        self.yes = made.random(size) < share
        signal = made.normal(size=size) + strength * np.where(self.yes, 1, -1)
        self.scores = 1 / (1 + np.exp(-np.round(signal, 1)))  # with equal ones among them
        self.said = self.scores >= 0.5
        self.sure = np.maximum(self.scores, 1 - self.scores)

    def kept(self, targets: Targets, seed: int) -> tuple[bool, float]:
        """Whether a cascade kept its promise, and the share of values that it saved."""
        size = len(self.yes)
        order = np.random.default_rng(seed).permutation(size)
        made = Certificate if targets.recall is None else RankedPair
        certificate = made(self.scores if targets.binary else self.sure, targets, order)
        labels = np.where(self.yes if targets.binary else self.said == self.yes, YES, NO)
        while len(places := certificate.next_to_label):
            certificate.tell(places, labels[places])
        decided = certificate.decided.of(certificate.scores) & ~certificate.labelled
        assert decided.sum() == certificate.decided.saved
        if not targets.binary:
            right = np.where(decided, self.said == self.yes, True).mean()
            return bool(right >= (targets.accuracy or 0)), decided.mean()
        above = certificate.decided.above
        affirmed = np.where(decided, self.scores >= above if above is not None else False, self.yes)
        both = (affirmed & self.yes).sum()
        recall = both >= (targets.recall or 1.0) * self.yes.sum()
        precision = both >= (targets.precision or 1.0) * affirmed.sum()
        return bool(recall and precision), decided.mean()


@pytest.mark.parametrize("size", [150, 900])
@pytest.mark.parametrize(
    "targets",
    [
        Targets(accuracy=0.9, delta=0.1),
        Targets(precision=0.9, delta=0.1),
        Targets(recall=0.8, precision=0.8, delta=0.1),
        Targets(recall=0.95, precision=0.6, delta=0.1),
    ],
    ids=str,
)
def test_a_promise_is_broken_as_rarely_as_it_says(targets: Targets, size: int) -> None:
    kept = [
        Population(size, share, strength, seed).kept(targets, seed)[0]
        for share in (0.5, 0.1)
        for strength in (0.3, 1.0)
        for seed in range(60)
    ]
    assert 1 - np.mean(kept) <= 0.1


@pytest.mark.parametrize("seed", long_after(1, range(3)))
def test_the_hardest_population_breaks_it_as_rarely_as_it_says(seed: int) -> None:
    """Just too many errors at every threshold: what is decided at all breaks the promise, or
    nearly."""
    made = np.random.default_rng(seed)
    size, wrong = 2000, 202
    places = np.zeros(size, dtype=bool)
    places[made.choice(size // 2, wrong, replace=False)] = True
    scores = np.linspace(1.0, 0.5, size)
    broken = 0
    for _ in range(400):
        certificate = Certificate(scores, Targets(accuracy=0.9), made.permutation(size))
        while len(chosen := certificate.next_to_label):
            certificate.tell(chosen, np.where(places[chosen], NO, YES))
        decided = certificate.decided.of(scores) & ~certificate.labelled
        broken += (places & decided).sum() > 0.1 * size
    assert broken / 400 <= 0.05


@pytest.mark.parametrize(
    ("targets", "least"),
    [
        (Targets(accuracy=0.9), 0.6),
        (Targets(recall=0.9, precision=0.9), 0.5),
        (Targets(precision=0.9), 0.3),
    ],
    ids=str,
)
def test_a_good_proxy_saves_much(targets: Targets, least: float) -> None:
    saved = [Population(5000, 0.5, 1.5, seed).kept(targets, seed)[1] for seed in range(5)]
    assert np.mean(saved) > least


def test_a_useless_proxy_saves_little_and_costs_one_look() -> None:
    yes = np.random.default_rng(1).random(5000) < 0.5
    certificate = Certificate(np.full(5000, 0.5), Targets(precision=0.95), np.arange(5000))
    looks = 0
    while len(places := certificate.next_to_label):
        looks += 1
        certificate.tell(places, np.where(yes[places], YES, NO))
    assert (certificate.decided, looks) == (Decisions(), 1)


def test_few_values_are_not_sampled() -> None:
    certificate = Certificate(
        np.linspace(0, 1, LEAST_VALUES - 1), Targets(accuracy=0.9), np.arange(LEAST_VALUES - 1)
    )
    assert len(certificate.next_to_label) == 0
    assert not certificate.decided.of(certificate.scores).any()


def test_an_oracle_that_does_not_answer_counts_against_the_proxy() -> None:
    sure = np.linspace(1, 0.5, 400)
    certificate = Certificate(
        sure, Targets(accuracy=0.9), np.random.default_rng(0).permutation(400)
    )
    while len(places := certificate.next_to_label):
        certificate.tell(places, np.full(len(places), UNKNOWN))
    assert certificate.decided.saved <= 0.1 * 400


def test_values_of_one_score_are_decided_together() -> None:
    scores = np.repeat([0.9, 0.6], 500)
    certificate = Certificate(
        scores, Targets(accuracy=0.9), np.random.default_rng(0).permutation(1000)
    )
    while len(places := certificate.next_to_label):
        certificate.tell(places, np.where(places < 500, YES, places % 2))
    assert certificate.decided.above == 0.9


def test_both_sides_of_the_hardest_population_are_kept_as_rarely_broken_as_it_says() -> None:
    """Scores that say nothing: positives and negatives lie everywhere alike."""
    size, broken = 1000, 0
    for seed in range(300):
        made = np.random.default_rng(seed)
        yes = made.random(size) < 0.5
        pair = RankedPair(
            np.linspace(0, 1, size), Targets(recall=0.9, precision=0.6), made.permutation(size)
        )
        while len(places := pair.next_to_label):
            pair.tell(places, np.where(yes[places], YES, NO))
        above = 2.0 if pair.decided.above is None else pair.decided.above
        decided = pair.decided.of(pair.scores) & ~pair.labelled
        affirmed = np.where(decided, pair.scores >= above, yes)
        recall, precision = (
            (affirmed & yes).sum() / yes.sum(),
            (affirmed & yes).sum() / affirmed.sum(),
        )
        broken += recall < 0.9 or precision < 0.6
    assert broken / 300 <= 0.05


def test_a_pair_of_useless_scores_decides_nothing() -> None:
    yes = np.random.default_rng(1).random(2000) < 0.5
    pair = RankedPair(np.full(2000, 0.5), Targets(recall=0.9, precision=0.9), np.arange(2000))
    while len(places := pair.next_to_label):
        pair.tell(places, np.where(yes[places], YES, NO))
    assert pair.decided == Decisions()
    assert pair.labelled.sum() <= 1000


def test_a_pair_counts_what_the_oracle_does_not_answer_as_no() -> None:
    scores = np.linspace(0, 1, 400)
    targets = Targets(recall=0.9, precision=0.9)
    pair = RankedPair(scores, targets, np.random.default_rng(0).permutation(400))
    while len(places := pair.next_to_label):
        pair.tell(places, np.full(len(places), UNKNOWN))
    assert (pair.positives, pair.decided) == (0, Decisions())


def test_known_positives_leave_room_for_more_errors() -> None:
    yes = np.random.default_rng(2).random(600) < 0.3
    scores = np.where(yes, 0.6, 0.4) + np.random.default_rng(3).normal(size=600) * 0.15
    order = np.random.default_rng(4).permutation(600)

    def saved(affirmed: int) -> int:
        pair = RankedPair(scores, Targets(recall=0.8, precision=0.8), order, affirmed=affirmed)
        while len(places := pair.next_to_label):
            pair.tell(places, np.where(yes[places], YES, NO))
        return pair.decided.saved

    assert saved(200) > saved(0) > 0
