"""A calibration in a TOML file, which can be reviewed and committed."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.services.evaluate.toml_file import (
    SavedAsToml,
    are_figures,
    check_name,
    read_toml,
    toml_text,
    with_measured,
)
from blendfusion.udfs.ask.calibrations import Calibration

_TEXTS = ("name", "question", "model", "wording", "fingerprint")
_NUMBERS = ("version", "values")
_HINT = (
    "It needs the texts name, question, model, wording and fingerprint, the whole numbers version "
    "and values, and points [[stated, share], …] from 0 to 1, both ascending."
)


class StoredCalibration(Calibration, SavedAsToml):
    """A calibration with its file: ``calibration.save("late.toml")``, and
    ``session.register_calibration("late.toml")``.

    ``points`` are pairs of a stated probability of yes and the share of yes among labelled values.
    ``measured`` has the calibration errors ``before`` and ``after`` with 95 % intervals, each of
    values that the map was not made of.
    """

    def to_toml(self) -> str:
        """The text of the file: the same calibration gives the same text."""
        lines = [f"{name} = {toml_text(getattr(self, name))}" for name in _TEXTS]
        lines += [f"{name} = {getattr(self, name)}" for name in _NUMBERS]
        points = ", ".join(f"[{stated!r}, {share!r}]" for stated, share in self.points)
        lines.append(f"points = [{points}]")
        return with_measured(lines, self.measured)

    def __repr__(self) -> str:
        measured = self.measured
        errors = (
            f"calibration error {measured['before']:.3f} before, {measured['after']:.3f} after; "
            if {"before", "after"} <= measured.keys()
            else ""
        )
        return (
            f"{self.name}@{self.version}: {self.model} on {self.question!r}, {self.values:,} "
            f"labelled values; {errors}{len(self.points)} points"
        )


def read_calibration(path: str | os.PathLike[str]) -> StoredCalibration:
    """The calibration of a file. Raises ArgumentError, which names the file."""
    file = Path(path)
    held = read_toml(file)
    known = {*_TEXTS, *_NUMBERS, "points", "measured"}
    wrong = next((key for key in held if key not in known), None)
    if wrong is not None:
        raise ArgumentError(f"'{file}': unknown field '{wrong}'", hint=_HINT)
    texts = all(isinstance(held.get(key), str) for key in _TEXTS)
    numbers = all(type(held.get(key)) is int for key in _NUMBERS)
    figures = are_figures(held.get("measured", {}))
    if not (texts and numbers and figures and _are_points(held.get("points"))):
        raise ArgumentError(f"'{file}' holds no calibration", hint=_HINT)
    check_name(held["name"], "calibration")
    points = tuple((float(stated), float(share)) for stated, share in held.pop("points"))
    return StoredCalibration(points=points, **held)


def _are_points(given: Any) -> bool:
    """Whether these are pairs of numbers from 0 to 1, both ascending, shares above 0 and below
    1."""
    if not isinstance(given, list) or not given:
        return False
    for pair in given:
        numbers = isinstance(pair, list) and all(type(x) in (int, float) for x in pair)
        if not numbers or len(pair) != 2 or not (0 <= pair[0] <= 1 and 0 < pair[1] < 1):
            return False
    return all(a[0] < b[0] and a[1] <= b[1] for a, b in pairwise(given))
