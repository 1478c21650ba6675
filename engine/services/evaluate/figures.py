"""The figures of answers beside labels: shares, errors, calibration.

Rows that repeat a value count as far as they say more than one row does: ``groups`` has the number
of each row's value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendfusion.services.evaluate.distinct_values import Groups, effective_size, mean_error
from blendfusion.services.evaluate.intervals import (
    area_interval,
    calibration_interval,
    macro_f1_interval,
    mean_interval,
    mean_of_shares,
    wilson,
)

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]
Flags = NDArray[np.bool_]
Classes = NDArray[np.intp]

WILSON, SMOOTHED = "Wilson", "Price-Bonett"
DELTA, STUDENT, SCORE, INVERSION = "delta method", "log t", "Newcombe", "test inversion"
BINS = 10


class Figure(NamedTuple):
    """A figure with its interval at ``level`` 0.95, by the named method, over ``rows`` rows."""

    name: str
    value: float
    low: float
    high: float
    method: str
    rows: int


def share(name: str, found: Flags, groups: Groups) -> Figure:
    """The share of rows that are ``found``; NaN without rows."""
    rows = len(found)
    if not rows:
        return Figure(name, float("nan"), *wilson(0, 0), WILSON, 0)
    value, size = float(found.mean()), effective_size(found, groups)
    return Figure(name, value, *wilson(value * size, size), WILSON, rows)


def confusion(answers: Classes, labels: Classes, classes: int) -> Counts:
    """The number of rows by label (rows of the table) and answer (columns)."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (labels, answers), 1)
    return table


def yes_no_figures(answers: Flags, labels: Flags, groups: Groups) -> list[Figure]:
    """The figures of yes and no."""
    right = answers == labels
    return [
        share("accuracy", right, groups),
        _balanced_accuracy(right, labels, groups),
        share("precision", labels[answers], groups[answers]),
        share("recall", answers[labels], groups[labels]),
        f1_figure(answers, labels, groups),
    ]


def _balanced_accuracy(right: Flags, labels: Flags, groups: Groups) -> Figure:
    """The mean of the shares of right rows among those of yes and of no; of one, where there are no
    rows of the other."""
    parts = [(right[labels == of], groups[labels == of]) for of in (True, False)]
    full = [part for part in parts if len(part[0])]
    sizes = np.array([effective_size(*part) for part in full])
    found = sizes * np.array([part[0].mean() for part in full])
    return _macro("balanced_accuracy", found, sizes, len(right))


def f1_figure(answers: Flags, labels: Flags, groups: Groups) -> Figure:
    """F1 of yes, which is 2 s / (1 + s) of the share s of rows of two yes among those of any."""
    any_yes = answers | labels
    both = share("f1", (answers & labels)[any_yes], groups[any_yes])
    value, low, high = (2 * s / (1 + s) for s in both[1:4])
    return Figure("f1", value, low, high, WILSON, len(answers))


def label_figures(answers: Classes, labels: Classes, classes: int, groups: Groups) -> list[Figure]:
    """The figures of several labels. Micro averages of precision, recall and F1 all equal the
    accuracy, as each row has one label."""
    right, table = answers == labels, confusion(answers, labels, classes)
    accuracy = share("accuracy", right, groups)
    counts = table * (effective_size(right, groups) / max(1, len(right)))
    known = table.sum(0) + table.sum(1) > 0
    f1 = macro_f1_interval(counts[np.ix_(known, known)]) if known.any() else wilson(0, 0)
    return [
        accuracy,
        _macro("macro_precision", np.diag(counts), counts.sum(0), len(right)),
        _macro("macro_recall", np.diag(counts), counts.sum(1), len(right)),
        Figure("macro_f1", _mean(_f1_of_each(table)), *f1, DELTA, len(right)),
        accuracy._replace(name="micro_f1"),
    ]


def _macro(name: str, found: Numbers, sampled: Numbers, rows: int) -> Figure:
    found, sampled = found[sampled > 0], sampled[sampled > 0]
    if not len(found):
        return Figure(name, float("nan"), *wilson(0, 0), SMOOTHED, 0)
    value = float((found / sampled).mean())
    return Figure(name, value, *mean_of_shares(found, sampled), SMOOTHED, rows)


def number_figures(
    answers: Sequence[float], labels: Sequence[float], within: float, groups: Groups
) -> list[Figure]:
    """The share of answers within ``within`` of their labels, and the mean absolute error."""
    errors = np.abs(np.asarray(answers, float) - np.asarray(labels, float))
    figures = [share("accuracy", errors <= within, groups)]
    if len(errors):
        mean = float(errors.mean())
        interval = mean_interval(mean, *mean_error(errors, groups))
        figures.append(Figure("mae", mean, *interval, STUDENT, len(errors)))
    return figures


def confidence_figures(
    confidences: Sequence[float], right: Sequence[bool], groups: Groups
) -> list[Figure]:
    """The expected calibration error (Naeini, Cooper and Hauskrecht 2015): the mean distance of
    confidence and accuracy over ten bins of equal width, weighted by rows. Its interval is that of
    the true error, and has 0 where nothing speaks against perfect calibration; the figure itself is
    above 0 also then."""
    stated, held = np.asarray(confidences, float), np.asarray(right, bool)
    if not len(stated):
        return []
    bins = bin_of(stated)
    counts = np.bincount(bins, minlength=BINS)
    full = counts > 0
    confidence, accuracy = (
        np.bincount(bins, of, BINS)[full] / counts[full] for of in (stated, held.astype(float))
    )
    value = float(np.abs(confidence - accuracy) @ counts[full]) / len(held)
    sizes = counts[full] * (effective_size(held, groups) / len(held))
    interval = calibration_interval(confidence, accuracy, sizes)
    return [Figure("calibration_error", value, *interval, INVERSION, len(held))]


def area_figures(yes: Sequence[float], labels: Sequence[bool], groups: Groups) -> list[Figure]:
    """The area under the ROC curve of the probabilities of yes; nothing without both labels."""
    scores, truth = np.asarray(yes, float), np.asarray(labels, bool)
    if not len(truth) or truth.all() or not truth.any():
        return []
    value = area(scores, truth)
    sizes = [_different(groups[truth == of]) for of in (True, False)]
    return [Figure("area", value, *area_interval(value, *sizes), SCORE, len(truth))]


def _different(groups: Groups) -> float:
    """The effective number of rows whose values are alike."""
    return effective_size(np.ones(len(groups), bool), groups)


def bin_of(confidences: Numbers) -> NDArray[np.intp]:
    """The number of each confidence's bin, from 0."""
    return np.minimum((confidences * BINS).astype(np.intp), BINS - 1)


def area(scores: Numbers, labels: Flags) -> float:
    """The probability that a row of yes has a higher score than a row of no, ties counting half;
    NaN without both.

    >>> area(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    0.875
    """
    yes = int(labels.sum())
    no = len(labels) - yes
    if not yes or not no:
        return float("nan")
    _, place, times = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(times) - (times - 1) / 2)[place]
    return float((rank[labels].sum() - yes * (yes + 1) / 2) / (yes * no))


def figures_of_class(
    answers: Classes, labels: Classes, of: int, groups: Groups
) -> tuple[Figure, Figure, Figure]:
    """Precision, recall and F1 of one class."""
    answered, labelled = answers == of, labels == of
    return (
        share("precision", labelled[answered], groups[answered]),
        share("recall", answered[labelled], groups[labelled]),
        f1_figure(answered, labelled, groups),
    )


def _f1_of_each(table: Counts) -> Numbers:
    total = table.sum(0) + table.sum(1)
    ratios: Numbers = np.divide(
        2 * np.diag(table), total, out=np.full(len(total), np.nan), where=total > 0
    )
    return ratios


def _mean(values: Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
