"""Logistic regression over vectors: class probabilities learned from a few labelled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PENALTIES = (1e-3, 1e-2, 1e-1)
"""Weights of the squared penalty relative to the mean loss; cross-validation selects one."""
_PARTS = 3
_STEPS = 100
_DIGITS = 6
"""Digits of a probability: later digits of float sums differ between machines."""


@dataclass(frozen=True)
class Classifier:
    """Weights, one column per class; the last row belongs to a constant."""

    weights: Floats

    def probabilities(self, vectors: npt.NDArray[np.floating]) -> Floats:
        """Class probabilities: one row per vector, one column per class."""
        return np.round(_softmax(_with_constant(vectors) @ self.weights), _DIGITS)


def fit_classifier(vectors: npt.NDArray[np.floating], classes: Ints, number: int) -> Classifier:
    """The classifier of vectors with known classes, numbered below ``number``. It is deterministic;
    the order of the vectors determines their folds."""
    inputs, wanted = _with_constant(vectors), np.eye(number)[classes]
    if len(classes) < 2 * _PARTS:
        return Classifier(_weights(inputs, wanted, _PENALTIES[-1:])[0])
    losses = _losses_left_out(inputs, wanted)
    best = min(range(len(_PENALTIES)), key=losses.__getitem__)
    return Classifier(_weights(inputs, wanted, _PENALTIES[best : best + 1])[0])


def number_labels(labels: Sequence[str]) -> tuple[list[str], Ints]:
    """(the distinct labels, the number of each label)."""
    names = sorted(set(labels))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[label] for label in labels], dtype=np.int64)


def _losses_left_out(inputs: Floats, wanted: Floats) -> list[float]:
    """For each penalty, the loss of each part by the weights of the other parts."""
    part = np.arange(len(inputs)) % _PARTS
    losses = [0.0] * len(_PENALTIES)
    for out in range(_PARTS):
        learned = _weights(inputs[part != out], wanted[part != out], _PENALTIES)
        for place, given in enumerate(_softmax(inputs[part == out] @ learned)):
            kept = wanted[part == out] * np.log(np.maximum(given, 1e-12))
            losses[place] -= float(kept.sum())
    return losses


def _weights(inputs: Floats, wanted: Floats, penalties: Sequence[float]) -> Floats:
    """For each penalty the weights, by gradient descent with Nesterov's momentum (1983), all of
    them at once; the curvature bounds the steps."""
    rows = len(inputs)
    bound = 0.5 * float(np.linalg.norm(inputs, 2)) ** 2 / rows
    step = np.array([1.0 / (bound + penalty) for penalty in penalties])[:, None, None]
    held = np.repeat(np.array(penalties)[:, None, None], inputs.shape[1], axis=1)
    held[:, -1] = 0.0  # no penalty on the constant, so that frequent classes stay frequent
    weights = ahead = np.zeros((len(penalties), inputs.shape[1], wanted.shape[1]))
    for turn in range(_STEPS):
        slope = inputs.T @ (_softmax(inputs @ ahead) - wanted) / rows + held * ahead
        before, weights = weights, ahead - step * slope
        ahead = weights + turn / (turn + 3) * (weights - before)
    return weights


def _with_constant(vectors: npt.NDArray[np.floating]) -> Floats:
    return np.column_stack([vectors.astype(np.float64), np.ones(len(vectors))])


def _softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=-1, keepdims=True)
    return shares
