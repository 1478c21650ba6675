"""The options of a call of llm_join: how it pairs the values of two columns."""

from __future__ import annotations

from dataclasses import dataclass

from blendfusion.udfs.declare.labelling import Labelling

CANDIDATES = 10
"""Of restaurants, papers and products by their names (benchmarks/bench_joins.py), 99.6 to 100 % of
the true matches are among so many."""

MOST_CANDIDATES = 50
"""As many options as a prompt lists."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """What a call says of the pairs that it wants."""

    k: int = CANDIDATES
    """Candidates that a model sees for one value."""
    many: bool = False
    """A value may match several others, not only one."""
    exact: bool = False
    """Every pair is asked: no candidates, and nothing is free."""
    criterion: str = ""
    """What makes two values match, in words; '': that they are the same thing."""
    check: int = 0
    """Values that are asked once more, among the next ``k``: how many matches lie beyond."""
    labelling: Labelling | None = None
    """Labels of the values, by which they match."""

    @property
    def by_labels(self) -> bool:
        """The user says which labels match: no pair is asked about."""
        return self.labelling is not None and not self.labelling.check

    @property
    def written(self) -> list[str]:
        """The options that are not the usual ones, as SQL.

        >>> Pairing(k=5, many=True).written
        ['many => true', 'k => 5']
        """
        usual = self.k == CANDIDATES or self.exact
        return self.written_but_k + ([] if usual else [f"k => {self.k}"])

    @property
    def written_but_k(self) -> list[str]:
        """The same without the number of candidates."""
        criterion = self.criterion.replace("'", "''")
        return [
            *([f"how => '{criterion}'"] if criterion else []),
            *(["many => true"] if self.many else []),
            *(["exact => true"] if self.exact else []),
            *([f"check => {self.check}"] if self.check else []),
            *(self.labelling.written if self.labelling is not None else []),
        ]
