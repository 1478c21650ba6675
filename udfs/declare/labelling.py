"""The options of a join by labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = tuple[str, str]
"""A label of the first value and one of the other."""

SAMPLED = 20
"""Pairs of values that are asked about for each pair of labels. If all of them agree, at most 14 %
of such pairs do not, at 95 % confidence."""

SAME, DIFFERENT = "same", "different"


@dataclass(frozen=True, slots=True)
class Labelling:
    """A match is decided by one label for each value, so that n + m values are asked about, not n ·
    m pairs."""

    labels: tuple[str, ...]
    question: str = ""
    """By what to label, where the labels alone do not tell."""
    match: str | tuple[Labels, ...] = ""
    """The labels that match: equal ones, different ones, or these pairs; '': decided by sampled
    pairs."""
    check: int = 0
    """Pairs of values that are asked about for each pair of labels, to see whether it decides; 0:
    the user says so."""

    @property
    def pairs(self) -> tuple[Labels, ...]:
        """The labels that match, by what the user says."""
        if isinstance(self.match, tuple):
            return self.match
        return tuple(
            (a, b)
            for a in self.labels
            for b in self.labels
            if self.match and (a == b) == (self.match == SAME)
        )

    def holds(self, label: str | None, other: str | None) -> bool | None:
        """Whether two labels match, by what the user says; NULL where one that is missing could
        decide.

        >>> opposite = Labelling(("good", "bad"), match=(("good", "bad"),))
        >>> opposite.holds("good", "bad"), opposite.holds("bad", None), opposite.holds("good", None)
        (True, False, None)
        """
        possible = any(label in (a, None) and other in (b, None) for a, b in self.pairs)
        return None if possible and None in (label, other) else possible
