"""The accuracy that a user asks for."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.errors import ArgumentError


@dataclass(frozen=True, slots=True)
class Within:
    """How far a count, a sum or an average may be from that of all answers.

    ``share``: half of the width of its interval, as a share of what it could be: of the rows of a
    group for counts, of the sum of all rows for sums, of the greatest difference of two values for
    averages. ``confidence``: the probability with which each interval holds. ``seed`` chooses the
    rows: a second run with the same asks about the same. Raises ArgumentError for a share or a
    confidence that is not between 0 and 1.
    """

    share: float
    confidence: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (("share", self.share), ("confidence", self.confidence)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 < value < 1:
                raise ArgumentError(f"Within: {name}={value!r} is not between 0 and 1")

    def __str__(self) -> str:
        return f"± {self.share:g} with confidence {self.confidence:g}"
