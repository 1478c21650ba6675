"""Measures what a model's probabilities of a yes are worth, and keeps a map that corrects them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from blendfusion.budget import Budget
from blendfusion.errors import ArgumentError, QueryError
from blendfusion.run.reports.trace import Trace
from blendfusion.services.evaluate.calibration_file import StoredCalibration, read_calibration
from blendfusion.services.evaluate.evaluation import Evaluation
from blendfusion.services.evaluate.figures import Figure, confidence_figures
from blendfusion.services.evaluate.improve import check_call
from blendfusion.services.evaluate.run import evaluate_calls
from blendfusion.services.evaluate.toml_file import check_name
from blendfusion.udfs.ask.calibrations import (
    Calibration,
    Calibrations,
    fingerprint_of,
    wording_of,
)
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.run.hooks import BaseSession

Numbers: TypeAlias = NDArray[np.float64]
Points: TypeAlias = tuple[tuple[float, float], ...]

_LEAST = 20
"""The least number of different labelled values."""
_PARTS = 5
"""Each part of the values is measured with a map of the other parts."""
_DIGITS = 6


def calibrate(
    session: BaseSession,
    call: str,
    labels: object,
    *,
    label: str,
    name: str,
    budget: Budget | None,
    version: int | None,
) -> StoredCalibration:
    """A map from the probabilities of ``call`` to shares of labels: see ``Session.calibrate``."""
    check_call(session, call)
    made = only_call(session, call)
    _check_plain(made)
    check_name(name, "calibration")
    found = evaluate_calls(
        session, labels, call, label, models=(), kind="boolean", within=0, budget=budget
    )[0]
    model = _only_model(session, made)
    yes, shares, values = _by_value(found, made)
    kept = session.runs.kept.of(Calibrations)
    calibration = StoredCalibration(
        name,
        made.task.question,
        model.name,
        isotonic(yes, shares),
        kept.latest(name) + 1 if version is None else version,
        wording_of(made.task),
        fingerprint_of(model),
        len(yes),
        _measure(found, yes, shares, values),
    )
    kept.keep(calibration)
    return calibration


def register_calibration(
    session: BaseSession, source: Calibration | str | os.PathLike[str]
) -> Calibration:
    """A stored map becomes known: see ``Session.register_calibration``."""
    held = source if isinstance(source, Calibration) else read_calibration(source)
    session.runs.kept.of(Calibrations).keep(held)
    return held


def only_call(session: BaseSession, text: str) -> Call:
    """The one call of a SQL text over columns of texts."""
    return session.calls.reading(session.engine, f"SELECT {text}")().calls[0]


def _check_plain(call: Call) -> None:
    """Raise ArgumentError for a call whose results are not the model's own yes and no."""
    if call.task.constraint.kind != "boolean":
        raise ArgumentError(
            f"{call.text} is no yes/no question",
            hint="llm_filter, llm_bool and llm_probability are calibrated.",
        )
    shown = dict(call.shown)
    wrong = next((o for o in ("calibrated", "threshold", "confidence") if o in shown), None)
    if wrong is not None:
        raise ArgumentError(
            f"{call.text}: a calibration is of what the model says, without {wrong}",
            hint=f"Leave out {wrong} => {shown[wrong]}.",
        )


def isotonic(stated: Numbers, shares: Numbers) -> Points:
    """The points of the map without a fall that fits the shares best (least squares, by pools of
    neighbours that fall: Ayer et al. 1955), never nearer to 0 or 1 than Laplace's rule for so many
    values.

    >>> isotonic(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 1.0, 0.0, 1.0]))
    ((0.1, 0.166667), (0.2, 0.5), (0.8, 0.5), (0.9, 0.833333))
    """
    order = np.argsort(stated, kind="stable")
    levels, of_level = np.unique(stated[order], return_inverse=True)
    weights = np.bincount(of_level).astype(float)
    means = np.bincount(of_level, shares[order]) / weights
    pools: list[tuple[float, float, int]] = []  # mean, weight, levels
    for mean, weight in zip(means, weights, strict=True):
        pool = (float(mean), float(weight), 1)
        while pools and pools[-1][0] >= pool[0]:
            before = pools.pop()
            both = before[1] + pool[1]
            mixed = (before[0] * before[1] + pool[0] * pool[1]) / both
            pool = (mixed, both, before[2] + pool[2])
        pools.append(pool)
    fitted = np.repeat([p[0] for p in pools], [p[2] for p in pools])
    least = 1 / (len(stated) + 2)
    fitted = np.clip(fitted, least, 1 - least)
    inner = np.zeros(len(fitted), bool)  # of a level stretch, its ends say all
    inner[1:-1] = (fitted[1:-1] == fitted[:-2]) & (fitted[1:-1] == fitted[2:])
    points = zip(levels[~inner], fitted[~inner], strict=True)
    return tuple((round(float(x), 9), round(float(y), _DIGITS)) for x, y in points)


def _by_value(found: Evaluation, call: Call) -> tuple[Numbers, Numbers, NDArray[np.intp]]:
    """(the stated probability of yes, the share of labels that are yes, the number) of each
    different value. Raises QueryError where there are too few, or no probabilities."""
    held, rows = found.compared, found.compared.counted_rows
    if any(held.confidences[row] is None for row in rows):
        raise QueryError(
            f"{call.text}: its model does not tell how probable its answers are",
            hint="Local models do, servers that give logprobs, and decision models.",
        )
    stated = [(row, held.confidences[row] or 0.0) for row in rows]
    yes = np.array([c if held.answers[row] else 1 - c for row, c in stated])
    labels = np.array([bool(held.labels[row]) for row in rows])
    groups = held.groups[np.array(rows, np.intp)]
    values, first, of_value = np.unique(groups, return_index=True, return_inverse=True)
    shares = np.bincount(of_value, labels) / np.bincount(of_value) if len(values) else labels
    if len(values) < _LEAST or not 0 < shares.mean() < 1:
        raise QueryError(
            f"a calibration needs {_LEAST} different labelled values, of which some are yes and "
            f"some are no: there are {len(values)}",
            hint="Label a random sample of the values to come.",
        )
    return yes[first], shares, values


def _measure(
    found: Evaluation, yes: Numbers, shares: Numbers, values: NDArray[np.intp]
) -> dict[str, float]:
    """The calibration error as stated, and with maps of other values than those it is measured
    on."""
    mapped = np.empty(len(yes))
    parts = np.random.default_rng(0).permutation(len(yes)) % _PARTS
    for part in range(_PARTS):
        others = parts != part
        made = Calibration("", "", "", isotonic(yes[others], shares[others]))
        mapped[~others] = [made.share(float(p)) for p in yes[~others]]
    figures = {"before": _error(yes, shares, values), "after": _error(mapped, shares, values)}
    measured = {"rows": float(len(found.compared.counted_rows))}
    for name, figure in figures.items():
        ends = {"": figure.value, "_low": figure.low, "_high": figure.high}
        measured |= {f"{name}{end}": round(float(of), 4) for end, of in ends.items()}
    return measured


def _error(yes: Numbers, shares: Numbers, values: NDArray[np.intp]) -> Figure:
    """How far probabilities of yes are from the shares of yes; a value counts once, by most of its
    labels."""
    labels = [bool(share >= 0.5) for share in shares]
    (figure,) = confidence_figures([*map(float, yes)], labels, values)
    return figure


def _only_model(session: BaseSession, call: Call) -> CachedModel:
    """The model of a call. Raises ArgumentError where there are several."""
    model = session.runs.dispatcher(Trace()).found_model(call)
    if len(model.levels) > 1:
        raise ArgumentError(
            f"{call.text} is answered by several models, {', '.join(model.names)}",
            hint=f"A calibration is of one: name it in the call, model => '{model.names[0]}'.",
        )
    return model
