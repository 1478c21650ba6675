"""Files of checks: calls whose figures on a labelled table must stay above, or below, a limit."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from blendfusion.errors import ArgumentError, close_matches
from blendfusion.models.protocol.gate import json_of
from blendfusion.services.evaluate.compare_answers import AnswerKind
from blendfusion.services.evaluate.evaluation import Evaluation

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

_KNOWN = ("table", "call", "label", "model", "kind", "within", "at_least", "at_most")
_FORM = "docs/evaluate.md has an example of a file of checks."


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One call with the limits of its figures."""

    name: str
    table: str
    """The name of a table, or the path of a file, relative to the file of checks."""
    call: str
    label: str
    model: str = ""
    """The name of a model; '' for the session's."""
    kind: AnswerKind | None = None
    within: float = 0.0
    at_least: Mapping[str, float]
    """The lowest allowed value of each figure: the lower bound of its interval must reach it.
    ``answered``, which is known of all rows, is at least 1 unless it is limited."""
    at_most: Mapping[str, float]
    """The highest allowed value of each figure: the upper bound of its interval must keep to it."""

    def run(self, session: BaseSession, table: str) -> tuple[Evaluation, list[str]]:
        """The evaluation on a table of the session, and a line for each figure beyond its limit."""
        from blendfusion.services.evaluate.run import evaluate_calls

        models = [self.model] if self.model else []
        comparison = evaluate_calls(
            session,
            table,
            self.call,
            self.label,
            models=models,
            kind=self.kind,
            within=self.within,
            budget=None,
        )
        return comparison[0], self.failures(comparison[0])

    def failures(self, evaluation: Evaluation) -> list[str]:
        """A line for each figure beyond its limit. Raises ArgumentError for an unknown figure."""
        lows = {"answered": 1.0, **self.at_least}
        limits = [(name, low, "below") for name, low in lows.items()]
        limits += [(name, high, "above") for name, high in self.at_most.items()]
        found = []
        for name, limit, side in limits:
            figure = evaluation.figures.get(name)
            if figure is None:
                hint = close_matches(name, evaluation.figures)
                raise ArgumentError(f"check '{self.name}': no figure '{name}'", hint=hint)
            known = name == "answered"
            value, low, high = figure[1:4]
            bound = value if known else low if side == "below" else high
            beyond = bound < limit if side == "below" else bound > limit
            if beyond or math.isnan(bound):
                outside = value < limit if side == "below" else value > limit
                verb = "is" if outside or math.isnan(value) else "may be"
                found.append(
                    f"{self.name}: {name} {value:.3f} {verb} {side} {limit:g} "
                    f"({figure.rows:,} rows, 95 % interval {low:.3f} to {high:.3f})"
                )
        return found


def read_checks(file: Path) -> list[Check]:
    """The checks of a TOML or JSON file, by name, in its order. Raises ArgumentError."""
    try:
        text = file.read_text("utf-8")
        held = json_of(text) if file.suffix == ".json" else tomllib.loads(text)
    except OSError as problem:
        raise ArgumentError(f"cannot read '{file}': {problem.strerror}", hint=_FORM) from None
    except ValueError as problem:  # of either format, and of bytes that are not UTF-8
        raise ArgumentError(f"'{file}' cannot be read: {problem}", hint=_FORM) from None
    except RecursionError:
        raise ArgumentError(f"'{file}' is nested too deeply", hint=_FORM) from None
    if not isinstance(held, dict) or not held:
        raise ArgumentError(f"'{file}' has no check", hint=_FORM)
    return [_check(file, name, fields) for name, fields in held.items()]


def _check(file: Path, name: str, fields: Any) -> Check:
    def wrong(message: str, hint: str = _FORM) -> ArgumentError:
        return ArgumentError(f"'{file}', check '{name}': {message}", hint=hint)

    if not isinstance(fields, dict):
        raise wrong("is no table of fields")
    for key in fields:
        if key not in _KNOWN:
            raise wrong(f"unknown field '{key}'", close_matches(key, _KNOWN))
    for key in ("table", "call", "label"):
        if not isinstance(fields.get(key), str):
            raise wrong(f"the field '{key}' must be text")
    if not isinstance(fields.get("model", ""), str):
        raise wrong("the field 'model' must be text")
    if fields.get("kind") not in (None, *get_args(AnswerKind)):
        raise wrong(f"the kind {fields['kind']!r} is unknown")
    limits = {key: fields.get(key, {}) for key in ("at_least", "at_most")}
    for key, figures in limits.items():
        if not isinstance(figures, dict) or not all(map(_is_number, figures.values())):
            raise wrong(f"'{key}' must give numbers, as in {{ accuracy = 0.85 }}")
    if not any(limits.values()):
        raise wrong("limits no figure", "Write at_least = { accuracy = 0.85 }.")
    if not _is_number(fields.get("within", 0.0)):
        raise wrong("the field 'within' must be a number")
    return Check(**{"name": name, **fields, **limits})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
