"""The guarantees that a call asks for by its options, and the models that they are given with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from blendfusion.errors import ArgumentError
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.types import Constraint
from blendfusion.udfs.declare.options import CASCADE, CONFIDENCE, MODEL, PROXY

ErrorOf: TypeAlias = Callable[[str, str], ArgumentError]
"""Makes the error of a call from a problem and its remedy."""


def promised_targets(
    constraint: Constraint, read: Mapping[str, Any], error: ErrorOf
) -> Targets | None:
    """The targets that a call promises of its answers; None without any. Raises ArgumentError."""
    given: dict[str, float] = {p.name: read[p.name] for p in CASCADE[:-1] if p.name in read}
    proxy = _proxy(given, read, error)
    if not given:
        return None
    if [*given] == ["delta"]:
        raise error("delta alone promises nothing", "Write accuracy, recall or precision, too.")
    targets = Targets(**given, proxy=proxy)
    possible = targets.of(constraint.kind)
    if possible is None:
        raise error(
            f"{targets} cannot be promised of answers that are {constraint}",
            "accuracy is of closed sets (yes or no, options, labels), recall and precision of "
            "yes or no.",
        )
    if possible != targets:
        raise error(
            f"{targets} cannot be promised together",
            "Write accuracy, or recall and precision or one of them, of yes or no.",
        )
    return targets


def _proxy(shares: Mapping[str, float], read: Mapping[str, Any], error: ErrorOf) -> Any:
    given = read.get(PROXY.name)
    if given is None:
        return None
    if not shares:
        raise error(f"proxy => '{given}' alone promises nothing", "Write recall => 0.9, too.")
    own = {"recall", "delta"}
    if given == "similarity" and ("recall" not in shares or not {*shares} <= own):
        raise error(
            f"proxy => '{given}' can promise recall, and nothing else",
            "It says no to the values that are least like the question: write recall => 0.9.",
        )
    if CONFIDENCE.name in read:
        raise error(
            f"proxy => '{given}' does not go with confidence",
            "It is no model with probabilities of answers.",
        )
    return given


def models_of(targets: Targets | None, read: Mapping[str, Any], error: ErrorOf) -> tuple[str, ...]:
    """The names of the models that a call asks, smallest first; () for the session's. Raises
    ArgumentError."""
    chosen: tuple[str, ...] = read.get(MODEL.name) or ()
    if targets is None or not chosen:
        return chosen
    if targets.proxy is not None and len(chosen) > 1:
        raise error(
            f"proxy => '{targets.proxy}' stands for the small model, and model names {len(chosen)}",
            f"Write model => '{chosen[-1]}'.",
        )
    if targets.proxy is None and len(chosen) < 2:
        raise error(
            f"{targets} is promised of a small model before a large one",
            "Write model => ['small', 'large'], or say proxy => 'embedding'.",
        )
    return chosen
