"""The outcome of a cascade: who answered the values of a call."""

from __future__ import annotations

from dataclasses import dataclass, replace

from blendfusion.models.guarantees.accuracy import Targets


@dataclass(frozen=True, slots=True)
class CascadeOutcome:
    """The distinct values of a call by who answered: the small model ``decided`` some; the large
    model answered those counted in ``to_large``, ``sampled`` of them drawn at random."""

    targets: Targets
    small: str
    large: str
    values: int
    decided: int
    sampled: int
    to_large: int
    rule: str = ""
    """The answers of the small model that stand, in words; '' for several chunks, since each has
    its own thresholds."""
    measured: str = ""
    """The result of the sample; '' for several chunks."""
    then: CascadeOutcome | None = None
    """The outcome of the next small model, for the values that this one left open."""

    def __add__(self, other: CascadeOutcome) -> CascadeOutcome:
        return replace(
            self,
            values=self.values + other.values,
            decided=self.decided + other.decided,
            sampled=self.sampled + other.sampled,
            to_large=self.to_large + other.to_large,
            rule="",
            measured="",
            then=_sum(self.then, other.then),
        )

    @property
    def why(self) -> str:
        """The answers of the small models that stand, in words, or the reason why none do; '' for
        several chunks."""
        if self.then is None:
            return self._own_reason
        return f"{self.small}: {self._own_reason}; {self.then.small}: {self.then.why}"

    @property
    def _own_reason(self) -> str:
        measured = f" ({self.measured})" if self.measured else ""
        if self.decided:
            return f"{self.rule}{measured}"
        too_few = "too few values to sample"
        return f"{'certified thresholds would save nothing' if self.sampled else too_few}{measured}"

    def __str__(self) -> str:
        if not self.decided and self.then is None:
            return f"{self.targets}: {self.why}, all {self.values:,} asked of {self.large}"
        levels = "; ".join(level._decision_text() for level in self._levels)
        return f"{self.targets}: {levels}; that was asked {self.to_large:,}"

    @property
    def _levels(self) -> list[CascadeOutcome]:
        return [self, *([] if self.then is None else self.then._levels)]

    def _decision_text(self) -> str:
        rule = f" {self.rule}" if self.rule else ""
        measured = f", {self.measured}" if self.measured else ""
        return (
            f"{self.small} decided {self.decided:,} of {self.values:,} values{rule}, certified by "
            f"{self.sampled:,} answers of {self.large}{measured}"
        )


def _sum(one: CascadeOutcome | None, other: CascadeOutcome | None) -> CascadeOutcome | None:
    return one + other if one is not None and other is not None else one or other
