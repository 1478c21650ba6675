"""How a call of llm_join pairs the values of two columns."""

from __future__ import annotations

from dataclasses import dataclass

CANDIDATES = 10
"""Of restaurants, papers and products by their names (benchmarks/bench_joins.py), 99.6 to 100 % of the
true matches are among so many."""


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
