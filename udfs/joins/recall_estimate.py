"""Estimates the matches beyond the candidates that a model saw: by a sample, or by the ranks of the
chosen.

If matches decrease with the square of their rank, as many lie beyond ``k`` as between half of ``k``
and ``k``. For papers and products that was right within half a per cent
(benchmarks/bench_joins.py). Both estimates concern what the model would choose, not the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blendfusion.udfs.text.binomial_bounds import at_most

FEWEST = 20
"""Minimum matches among candidates for an estimate by ranks."""


@dataclass(frozen=True, slots=True)
class JoinMatches:
    """The matches of a join by candidates."""

    matches: int
    """The number of matches, including those without a model."""
    ranks: Mapping[int, int]
    """The frequency of each rank, from 1, among the chosen candidates."""
    k: int
    open: int
    """Values that may have a match beyond: there are more candidates, and they have no match, or
    may have many."""
    sampled: int = 0
    """The values of ``open`` that were sampled, with the next ``k`` candidates."""
    beyond: int = 0
    """Sampled values with a match there."""
    missed: int = 0
    """The number of those matches."""
    most_each: int = 1
    """The maximum matches of one value there."""

    def __str__(self) -> str:
        """
        >>> print(JoinMatches(400, {1: 250, 2: 40, 7: 8}, 10, open=90))
        about 98.0 %, if as many lie beyond as stand in places 6 to 10 (8)
        >>> print(JoinMatches(400, {1: 300}, 10, open=90, sampled=30, beyond=1, missed=1))
        about 99.3 %, at least 96.8 % (95 % confidence): 1 of 30 sampled values has its match among
        the next 10"""
        if not self.open:
            return "100 %: no value has more candidates"
        if self.sampled:
            about = self._share(self.open * self.missed / self.sampled)
            most = self.most_each * at_most(self.beyond, self.sampled)
            least = self._share(self.open * most)
            has = "has its match" if self.beyond == 1 else "have a match"
            return (
                f"about {about}, at least {least} (95 % confidence): {self.beyond:,} of "
                f"{self.sampled:,} sampled values {has} among the next {self.k}"
            )
        if self.k < 2 or sum(self.ranks.values()) < FEWEST:
            return "unknown; check => 30 would sample it"
        half = (self.k + 1) // 2
        late = sum(n for place, n in self.ranks.items() if place > half)
        places = f"places {half + 1} to {self.k}" if half + 1 < self.k else f"place {self.k}"
        return f"about {self._share(late)}, if as many lie beyond as stand in {places} ({late:,})"

    def _share(self, missed: float) -> str:
        """The share of matches that were found, if ``missed`` were not."""
        every = self.matches + missed
        return f"{100 * self.matches / every:.1f} %" if every else "100.0 %"
