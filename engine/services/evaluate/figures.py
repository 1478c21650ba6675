"""The figures of answers beside labels: shares, errors, calibration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendfusion.services.evaluate.intervals import LEVEL, bootstrap, count_bootstrap, wilson

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]

WILSON, BOOTSTRAP = "Wilson", "bootstrap"
BINS = 10


class Figure(NamedTuple):
    """A figure with its interval at ``level`` 0.95, by the named method, over ``rows`` rows."""

    name: str
    value: float
    low: float
    high: float
    method: str
    rows: int


def share(name: str, found: int, sampled: int) -> Figure:
    """The share of ``found`` in ``sampled``; NaN without a sample."""
    value = found / sampled if sampled else float("nan")
    return Figure(name, value, *wilson(found, sampled, LEVEL), WILSON, sampled)


def confusion(answers: Sequence[int], labels: Sequence[int], classes: int) -> Counts:
    """The number of rows by label (rows of the table) and answer (columns)."""
    table = np.zeros((classes, classes), np.int64)
    np.add.at(table, (np.asarray(labels, np.intp), np.asarray(answers, np.intp)), 1)
    return table


def yes_no_figures(table: Counts) -> list[Figure]:
    """The figures of yes and no; ``table`` counts no first, as ``confusion`` does."""
    (_, false_yes), (false_no, true_yes) = (map(int, row) for row in table)
    total, right = int(table.sum()), int(table.trace())
    return [
        share("accuracy", right, total),
        _counted("balanced_accuracy", _macro_recall, table),
        share("precision", true_yes, true_yes + false_yes),
        share("recall", true_yes, true_yes + false_no),
        _counted("f1", lambda t: _f1_of_each(t)[1], table),
    ]


def label_figures(table: Counts) -> list[Figure]:
    """The figures of several labels. Micro averages of precision, recall and F1 all equal the
    accuracy, as each row has one label."""
    return [
        share("accuracy", int(table.trace()), int(table.sum())),
        _counted("macro_precision", _macro_precision, table),
        _counted("macro_recall", _macro_recall, table),
        _counted("macro_f1", lambda t: _mean(_f1_of_each(t)), table),
        share("micro_f1", int(table.trace()), int(table.sum())),
    ]


def number_figures(
    answers: Sequence[float], labels: Sequence[float], within: float
) -> list[Figure]:
    """The share of answers within ``within`` of their labels, and the mean absolute error."""
    errors = np.abs(np.asarray(answers, float) - np.asarray(labels, float))
    figures = [share("accuracy", int((errors <= within).sum()), len(errors))]
    if len(errors):
        interval = bootstrap(lambda rows: float(errors[rows].mean()), len(errors))
        figures.append(Figure("mae", float(errors.mean()), *interval, BOOTSTRAP, len(errors)))
    return figures


def confidence_figures(confidences: Sequence[float], right: Sequence[bool]) -> list[Figure]:
    """The expected calibration error (Naeini, Cooper and Hauskrecht 2015) in ten bins of equal
    width."""
    stated, held = np.asarray(confidences, float), np.asarray(right, bool)
    if not len(stated):
        return []

    def error(rows: NDArray[np.intp]) -> float:
        return calibration_error(stated[rows], held[rows])

    value = calibration_error(stated, held)
    return [
        Figure("calibration_error", value, *bootstrap(error, len(stated)), BOOTSTRAP, len(held))
    ]


def area_figures(yes: Sequence[float], labels: Sequence[bool]) -> list[Figure]:
    """The area under the ROC curve of the probabilities of yes; nothing without both labels."""
    scores, truth = np.asarray(yes, float), np.asarray(labels, bool)
    if not len(truth) or truth.all() or not truth.any():
        return []

    def of(rows: NDArray[np.intp]) -> float:
        return area(scores[rows], truth[rows])

    interval = bootstrap(of, len(truth))
    return [Figure("area", area(scores, truth), *interval, BOOTSTRAP, len(truth))]


def calibration_error(confidences: Numbers, right: NDArray[np.bool_]) -> float:
    """The mean distance of confidence and accuracy over ten bins, weighted by rows.

    >>> calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    bins = bin_of(confidences)
    counts = np.bincount(bins, minlength=BINS)
    stated = np.bincount(bins, confidences, BINS)
    held = np.bincount(bins, right.astype(float), BINS)
    return float(np.abs(stated - held).sum() / counts.sum())


def bin_of(confidences: Numbers) -> NDArray[np.intp]:
    """The number of each confidence's bin, from 0."""
    return np.minimum((confidences * BINS).astype(np.intp), BINS - 1)


def area(scores: Numbers, labels: NDArray[np.bool_]) -> float:
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


def per_class(table: Counts) -> tuple[list[Figure], list[Figure], Numbers]:
    """Precision, recall and F1 of each class, in the order of the table."""
    found, answered, labelled = np.diag(table), table.sum(0), table.sum(1)
    precision = [share("precision", int(f), int(n)) for f, n in zip(found, answered, strict=True)]
    recall = [share("recall", int(f), int(n)) for f, n in zip(found, labelled, strict=True)]
    return precision, recall, _f1_of_each(table)


def _counted(name: str, figure: Callable[[Counts], float], table: Counts) -> Figure:
    total = int(table.sum())
    if not total:
        return Figure(name, float("nan"), float("nan"), float("nan"), BOOTSTRAP, 0)
    return Figure(name, figure(table), *count_bootstrap(figure, table), BOOTSTRAP, total)


def _f1_of_each(table: Counts) -> Numbers:
    total = table.sum(0) + table.sum(1)
    return _ratio(2 * np.diag(table), total)


def _macro_precision(table: Counts) -> float:
    return _mean(_ratio(np.diag(table), table.sum(0)))


def _macro_recall(table: Counts) -> float:
    return _mean(_ratio(np.diag(table), table.sum(1)))


def _ratio(found: Counts, of: Counts) -> Numbers:
    ratios: Numbers = np.divide(found, of, out=np.full(len(of), np.nan), where=of > 0)
    return ratios


def _mean(values: Numbers) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
