"""A classifier of vectors: it learns what can be learned, and depends on no chance."""

from __future__ import annotations

import numpy as np
import pytest

from blendfusion.models.guarantees.logistic import fit_classifier, number_labels


def clouds(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points around three centres, and the number of each one's."""
    made = np.random.default_rng(seed)
    classes = made.integers(0, 3, rows)
    centres = np.array([[2, 0, 0], [0, 2, 0], [0, 0, 2]])
    return centres[classes] + made.normal(size=(rows, 3)) * 0.5, classes


def test_it_tells_clouds_of_points_apart() -> None:
    vectors, classes = clouds(150, 1)
    others, wanted = clouds(500, 2)
    shares = fit_classifier(vectors, classes, 3).probabilities(others)
    assert (shares.argmax(axis=1) == wanted).mean() > 0.95
    assert shares.sum(axis=1) == pytest.approx(np.ones(500), abs=1e-5)


def test_what_cannot_be_told_gets_the_shares_of_the_classes() -> None:
    made = np.random.default_rng(3)
    classes = (made.random(400) < 0.2).astype(np.int64)
    shares = fit_classifier(made.normal(size=(400, 3)), classes, 2).probabilities(
        made.normal(size=(50, 3))
    )
    assert shares[:, 1] == pytest.approx(np.full(50, classes.mean()), abs=0.1)


@pytest.mark.parametrize("rows", [1, 3, 30])
def test_one_class_is_certain_and_few_rows_break_nothing(rows: int) -> None:
    vectors, _ = clouds(rows, 4)
    shares = fit_classifier(vectors, np.zeros(rows, dtype=np.int64), 1).probabilities(vectors)
    assert shares.tolist() == [[1.0]] * rows


def test_the_same_gives_the_same() -> None:
    vectors, classes = clouds(60, 5)
    one, two = (fit_classifier(vectors, classes, 3).probabilities(vectors) for _ in range(2))
    assert one.tolist() == two.tolist()


def test_labels_get_numbers_in_their_order() -> None:
    names, numbers = number_labels(["b", "a", "b"])
    assert (names, numbers.tolist()) == (["a", "b"], [1, 0, 1])
