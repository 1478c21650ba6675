"""What a ranking rules out: the promise holds, exactly, however many positives there are."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendfusion.models.guarantees.accuracy import NO, UNKNOWN, YES
from blendfusion.models.guarantees.recall import (
    RankedCertificate,
    certain_share,
    fewest,
    highest_place,
)


def failure(positives: int, sampled: int, recall: float, delta: float) -> float:
    """The exact probability that the threshold leaves too many of so many positives below it."""
    place = highest_place(sampled, recall, delta)
    if not place:
        return 0.0
    # Too many: more than this lie below; then less than ``place`` of the sample are among the
    # lowest of them.
    too_many = int((1 - recall) * positives + 1e-9) + 1
    ways = sum(comb(too_many, i) * comb(positives - too_many, sampled - i) for i in range(place))
    return ways / comb(positives, sampled)


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("delta", [0.2, 0.05, 0.01])
def test_the_promise_is_broken_no_more_often_than_said(recall: float, delta: float) -> None:
    for positives in (*range(1, 80), 100, 150, 250, 999):
        for sampled in range(1, positives + 1, max(1, positives // 40)):
            assert failure(positives, sampled, recall, delta) <= delta * (1 + 1e-9)


@given(
    st.integers(1, 8),
    st.floats(0.5, 0.97),
    st.floats(0.01, 0.3),
)
def test_places_bounds_and_fewest_agree(place: int, recall: float, delta: float) -> None:
    least = fewest(place, recall, delta)
    assert highest_place(least, recall, delta) == place
    assert highest_place(least - 1, recall, delta) < place
    assert certain_share(least, place, delta) >= recall - 1e-9
    assert certain_share(least, place + 1, delta) < recall


def certified(
    scores: np.ndarray, labels: np.ndarray, recall: float, seed: int
) -> RankedCertificate:
    order = np.random.default_rng(seed).permutation(len(scores)).astype(np.int64)
    certificate = RankedCertificate(scores, recall, 0.05, order)
    seen = np.zeros(len(scores), dtype=bool)
    while len(places := certificate.next_to_label):
        assert not seen[places].any()
        seen[places] = True
        certificate.tell(places, labels[places])
    decided = certificate.decided.of(scores)
    assert certificate.decided.below is None or certificate.certain_recall >= recall
    sampled = seen & (labels == YES)
    if decided.any():
        assert (
            (decided & sampled).sum() < certificate.place <= sampled.sum() == certificate.positives
        )
    return certificate


def test_simulated_samples_keep_it() -> None:
    rng = np.random.default_rng(1)
    labels = (rng.random(3_000) < 0.2).astype(np.int64)
    scores = np.round(rng.normal(size=3_000) + labels, 2)  # with ties
    recalls = []
    for seed in range(300):
        decided = certified(scores, labels, 0.9, seed).decided.of(scores)
        recalls.append(1 - labels[decided].sum() / labels.sum())
        assert 0 < decided.sum() < 2_400
    assert np.mean(np.array(recalls) < 0.9) <= 0.05


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([YES, NO, UNKNOWN])), min_size=1),
    st.sampled_from([0.5, 0.9, 1.0]),
    st.integers(0, 3),
)
def test_any_values_come_to_an_end(values: list[tuple[int, int]], recall: float, seed: int) -> None:
    scores = np.array([score for score, _ in values], dtype=np.float64)
    labels = np.array([label for _, label in values], dtype=np.int64)
    found = certified(scores, labels, recall, seed)
    if (labels == YES).sum() < fewest(1, recall, 0.05):
        assert found.decided.below is None


def test_a_sample_goes_on_by_how_many_are_found_never_by_their_scores() -> None:
    rng = np.random.default_rng(2)
    labels = (rng.random(2_000) < 0.1).astype(np.int64)

    def sizes(scores: np.ndarray) -> list[int]:
        order = np.random.default_rng(3).permutation(2_000).astype(np.int64)
        certificate, found = RankedCertificate(scores, 0.9, 0.05, order), []
        while len(places := certificate.next_to_label):
            found.append(len(places))
            certificate.tell(places, labels[places])
        return found

    assert sizes(rng.random(2_000)) == sizes(labels + rng.random(2_000)) == sizes(-labels * 1.0)


def test_ones_that_sort_well_need_few_answers() -> None:
    labels = np.array([YES] * 500 + [NO] * 9_500)
    scores = np.concatenate([np.full(500, 0.9), np.full(9_500, 0.1)])
    found = certified(scores, labels, 0.9, 0)
    assert found.decided.of(scores).sum() == 9_500
    assert (found.positives, found.place) == (
        found.positives,
        highest_place(found.positives, 0.9, 0.05),
    )


def test_scores_that_are_no_numbers_rule_nothing_out_and_break_no_promise() -> None:
    rng = np.random.default_rng(2)
    labels = (rng.random(2_000) < 0.3).astype(np.int64)
    scores = np.where(rng.random(2_000) < 0.5, np.nan, rng.normal(size=2_000) + labels)
    recalls, saved = [], []
    for seed in range(100):
        decided = certified(scores, labels, 0.8, seed).decided.of(scores)
        assert not decided[np.isnan(scores)].any()
        recalls.append(1 - labels[decided].sum() / labels.sum())
        saved.append(decided.mean())
    assert np.mean(np.array(recalls) < 0.8) <= 0.05
    assert np.min(saved) > 0.1
