"""Whether the questions of one request influence one another: a property of the model."""

from __future__ import annotations

TOLERANCE = 0.025
"""Probabilities have two decimals, and repeats differ by 0.01 (jev)."""
_ALONE = ("jev", "lev", "kev", "laya", "julia", "decider", "d1")
"""Families that read a question by itself, by parts of their names (their makers' pages, and the
code of llama.cpp, November 2026)."""
_IN_COMPANY = ("clef", "nimble")
"""Families that read all questions of a request together."""


def known_independence(model: str) -> bool | None:
    """Whether a model reads each question by itself; None if that is not known of it.

    >>> known_independence("jev-1.13.0"), known_independence("clef-flash")
    (True, False)
    """
    name = model.casefold().rpartition("/")[2]
    if any(family in name for family in _IN_COMPANY):
        return False
    return True if any(family in name for family in _ALONE) else None


def differ(one: object, other: object) -> bool:
    """Whether two lists of probabilities differ by more than rounding and repetition explain."""
    if not isinstance(one, list) or not isinstance(other, list):
        return False
    return any(abs(p - q) > TOLERANCE for p, q in zip(one, other, strict=True))
