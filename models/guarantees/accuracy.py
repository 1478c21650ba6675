"""Certifies the values that a cheap proxy may decide, by a random sample of an oracle's answers.

No bound here is an approximation for large samples: every bound is exact for sampling without
replacement from finitely many values (the hypergeometric tail, inverted as by Clopper and Pearson).
Sets that grow with a threshold are tested in a fixed order, each at the whole failure probability,
until the first fails. A wrong result requires that the first set that is too bad passes its own
test, so trying many thresholds costs nothing (Bauer 1991; Angelopoulos et al. 2021). Repeated looks
at a growing sample do cost: the failure probability is split over them.

The guarantee for recall and precision is that of SUPG (Kang et al. 2020), and the guarantee for
accuracy that of BARGAIN (2025). As in SUPG, the sample for recall and precision has more of the
values that the proxy considers positive; it has two strata, so that exact bounds hold in each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp, lgamma
from typing import Literal

import numpy as np
import numpy.typing as npt

from blendfusion.types import ConstraintKind

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

DELTA = 0.05
"""Default probability that a target is missed."""
LEAST_VALUES = 64
"""Minimum values for a proxy; with fewer, the sample would cover most of them."""
_FIRST_LOOK = 100
"""Labels at the first look. Each further look has twice as many, up to half of the values."""
_MOST_LOOKS = 8
_CANDIDATES = 40
"""Number of thresholds to test: quantiles of the scores."""
_SAFETY = 1e-9
"""Relative increase of a tail, against rounding errors."""

Proxy = Literal["similarity", "embedding"]

YES, NO, UNKNOWN = 1, 0, -1
"""Labels of the oracle. UNKNOWN: no answer, which counts against the proxy."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets of a cascade relative to the oracle alone, met with probability 1 - ``delta``.

    ``accuracy``: the share of values with the oracle's answer. ``recall``: the share of the values
    that the oracle affirms and that get a yes. ``precision``: the share of the values with a yes
    that the oracle affirms. None: no such target; at least one is set. ``delta`` None: the
    session's.

    ``proxy``: the substitute for the oracle; None: the small model of two. "similarity" is the
    similarity of a value to the question, by the session's embedder. It gives a no to the least
    similar values, so it requires ``recall`` alone. "embedding" is a classifier of vectors, fitted
    to some of the oracle's answers.
    """

    accuracy: float | None = None
    recall: float | None = None
    precision: float | None = None
    delta: float | None = None
    proxy: Proxy | None = None

    def __str__(self) -> str:
        named = [
            f"{name} ≥ {target:g}"
            for name in ("accuracy", "recall", "precision")
            if (target := getattr(self, name)) is not None
        ]
        return (
            ", ".join(named)
            + ("" if self.delta is None else f" with probability {1 - self.delta:g}")
            + ("" if self.proxy is None else f" by {self.proxy}")
        )

    def shared(self, levels: int) -> Targets:
        """The targets of each of so many small models, one after the other, so that these hold of
        all of them together.

        The next model gets the values that one leaves open, so shares of wrong answers add up, and
        so do the probabilities of a failure. Precision refers to the values with a yes, of which a
        later model may miss as many as recall allows.

        >>> print(Targets(accuracy=0.9).shared(2))
        accuracy ≥ 0.95 with probability 0.975
        """
        if levels < 2:
            return self
        whole = DELTA if self.delta is None else self.delta
        missed = 1.0 if self.recall is None else self.recall

        def stricter(target: float | None, share: float) -> float | None:
            return None if target is None else 1 - (1 - target) * share

        return replace(
            self,
            accuracy=stricter(self.accuracy, 1 / levels),
            recall=stricter(self.recall, 1 / levels),
            precision=stricter(self.precision, missed / levels),
            delta=whole / levels,
        )

    def of(self, kind: ConstraintKind) -> Targets | None:
        """The targets that apply to answers of a kind: recall and precision for yes and no, if set,
        else accuracy, the only target of other closed sets; None if none applies."""
        binary = self.recall is not None or self.precision is not None
        if kind == "boolean" and binary:
            return replace(self, accuracy=None)
        if kind in ("boolean", "choice") and self.accuracy is not None:
            return replace(self, recall=None, precision=None)
        return None

    @property
    def ranks(self) -> bool:
        """Whether recall is the only target, for which a ranking suffices
        (models/guarantees/recall.py)."""
        return self.recall is not None and self.precision is None and self.accuracy is None

    @property
    def binary(self) -> bool:
        """Whether the targets concern yes and no."""
        return self.accuracy is None


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions of the proxy: values with a score of at most ``below``, and of at least
    ``above``.

    None: no value on that side. ``saved``: decided values that the oracle was not asked about.
    """

    below: float | None = None
    above: float | None = None
    saved: int = 0

    def of(self, scores: Floats) -> Mask:
        """The mask of the decided values."""
        mask = np.zeros(len(scores), dtype=np.bool_)
        if self.below is not None:
            mask |= scores <= self.below
        if self.above is not None:
            mask |= scores >= self.above
        return mask


class Certificate:
    """Finds the values with ``scores`` that a proxy may decide, by labels of a growing sample.

    For ``accuracy``, a score is the proxy's confidence in its answer, and a label whether the
    oracle agrees. For ``precision`` alone, a score is the proxy's probability of yes, and a label
    the oracle's answer. Recall alone: models/guarantees/recall.py; with precision:
    models/guarantees/precision_recall.py.

    ``order`` is a random permutation of the values, from which the sample is drawn. Callers answer
    ``next_to_label`` with ``tell`` until nothing is wanted; then ``decided`` holds. ``settled``
    counts other values with known answers of the oracle, and ``affirmed`` those among them with a
    yes.
    """

    def __init__(
        self,
        scores: Floats,
        targets: Targets,
        order: Ints,
        *,
        settled: int = 0,
        affirmed: int = 0,
    ) -> None:
        self.scores, self.targets = scores, targets
        self._settled, self._affirmed = settled, affirmed
        self._delta = DELTA if targets.delta is None else targets.delta
        size = len(scores)
        self.labels = np.full(size, UNKNOWN, dtype=np.int64)
        self.labelled = np.zeros(size, dtype=np.bool_)
        self.decided = Decisions()
        looks = range(_MOST_LOOKS)
        self._looks = [n for n in (_FIRST_LOOK << i for i in looks) if n <= size // 2]
        if size >= LEAST_VALUES and not self._looks:
            self._looks = [size // 2]
        self._look = 0
        self._strata = _strata(scores, order, halves=targets.binary)
        self._down = _Prefixes(scores, self._strata)

    @property
    def next_to_label(self) -> Ints:
        """Positions of the values to label next; empty at the end."""
        if self._look >= len(self._looks):
            return np.empty(0, dtype=np.int64)
        drawn = self._stratum_sizes(self._looks[self._look])
        chosen = [s[:n] for s, n in zip(self._strata, drawn, strict=True)]
        positions = np.sort(np.concatenate(chosen))
        fresh: Ints = positions[~self.labelled[positions]]
        return fresh

    def tell(self, positions: Ints, labels: Ints) -> None:
        """Record the oracle's answers to the ``next_to_label`` positions."""
        self.labels[positions], self.labelled[positions] = labels, True
        drawn = self._stratum_sizes(self._looks[self._look])
        before = self._with_saved(self.decided, _Counts(self._strata, drawn, drawn))
        found = self._decisions_of(drawn, drawn)
        self.decided = found if found.saved > before.saved else before
        later = [
            self._decisions_of(drawn, self._stratum_sizes(n)) for n in self._looks[self._look + 1 :]
        ]
        promising = any(guess.saved > self.decided.saved for guess in later)
        self._look = self._look + 1 if promising else len(self._looks)

    def _stratum_sizes(self, total: int) -> list[int]:
        """The size of each stratum in a sample of ``total``."""
        first, *rest = self._strata
        if not rest:
            return [min(total, len(first))]
        own = min(total // 2, len(first))
        other = min(total - own, len(rest[0]))
        return [min(total - other, len(first)), other]

    def _decisions_of(self, drawn: list[int], supposed: list[int]) -> Decisions:
        """The decisions by the labels so far, or extrapolated to strata of the sizes
        ``supposed``."""
        delta = self._delta / len(self._looks)
        counts = _Counts(self._strata, drawn, supposed)
        if not self.targets.binary:
            return self._accurate(counts, delta)
        return self._precise(counts, delta)

    def _accurate(self, counts: _Counts, delta: float) -> Decisions:
        assert self.targets.accuracy is not None
        wrong = self.labelled & (self.labels != YES)
        size = len(self.scores) + self._settled
        budget = _share(1 - self.targets.accuracy, size)
        safe = counts.safe(self._down, wrong, lambda _: budget, delta)
        return self._with_saved(Decisions(above=self._down.last_score(safe)), counts)

    def _precise(self, counts: _Counts, delta: float) -> Decisions:
        precision = self.targets.precision
        assert precision is not None
        positives = self._affirmed + counts.least(self.labelled & (self.labels == YES), delta / 2)
        # All positives are affirmed; so many others may be affirmed beside them.
        extra = _share((1 - precision) / precision, positives)

        def budget(size: int) -> int:
            return max(extra, _share(1 - precision, size))

        wrong = self.labelled & (self.labels != YES)
        safe = counts.safe(self._down, wrong, budget, delta / 2)
        return self._with_saved(Decisions(above=self._down.last_score(safe)), counts)

    def _with_saved(self, decided: Decisions, counts: _Counts) -> Decisions:
        mask = decided.of(self.scores)
        return replace(decided, saved=round(counts.count_unlabelled(mask)))


class _Prefixes:
    """The values by descending score, and the sets to test: prefixes that never split equal
    scores."""

    def __init__(self, scores: Floats, strata: list[Ints]) -> None:
        places = np.argsort(-scores, kind="stable")
        ordered = scores[places]
        ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True)) + 1
        aims = np.arange(1, _CANDIDATES + 1) * len(scores) / _CANDIDATES
        chosen = np.minimum(np.searchsorted(ends, aims), len(ends) - 1)
        self.sizes: list[int] = sorted(set(ends[chosen].tolist())) if len(scores) else []
        self._ordered = ordered
        self._rank = np.empty(len(scores), dtype=np.int64)
        self._rank[places] = np.arange(len(scores))
        self.members = [self.counts(stratum) for stratum in strata]
        """Sizes of the sets, per stratum."""

    def counts(self, positions: Ints) -> Ints:
        """How many of the values at ``positions`` are in each set."""
        inside: Ints = np.searchsorted(np.sort(self._rank[positions]), self.sizes)
        return inside

    def last_score(self, size: int) -> float | None:
        """The score of the last of the first ``size`` values."""
        return float(self._ordered[size - 1]) if size else None


class _Counts:
    """The evidence of a sample about sets of values, by stratum."""

    def __init__(self, strata: list[Ints], drawn: list[int], supposed: list[int]) -> None:
        self._strata, self._drawn = strata, drawn
        self._growth = [s / d if d else 1.0 for d, s in zip(drawn, supposed, strict=True)]
        self._supposed = supposed

    def safe(
        self, nested: _Prefixes, marked: Mask, budget: Callable[[int], int], delta: float
    ) -> int:
        """The size of the largest set tested before the first that may hold more marked values than
        ``budget`` allows for its size; 0 if the smallest may."""
        strata = []
        each = zip(self._strata, nested.members, self._drawn, self._growth, strict=True)
        for stratum, inside, drawn, growth in each:
            sampled = stratum[:drawn]
            seen, bad = nested.counts(sampled), nested.counts(sampled[marked[sampled]])
            strata.append((inside, _grow(seen, growth, inside), _grow(bad, growth, inside)))
        largest = 0
        for place, size in enumerate(nested.sizes):
            parts = [(int(m[place]), int(n[place]), int(k[place])) for m, n, k in strata]
            open_parts = sum(n < m for m, n, _ in parts)
            most = sum(upper(m, n, min(k, n), delta / max(1, open_parts)) for m, n, k in parts)
            if most > budget(size):
                break
            largest = size
        return largest

    def least(self, marked: Mask, delta: float) -> int:
        """A lower bound of the number of marked values."""
        total = 0
        for members, drawn, supposed in zip(self._strata, self._drawn, self._supposed, strict=True):
            found = int(marked[members[:drawn]].sum())
            found = min(round(found * (supposed / drawn if drawn else 1.0)), supposed)
            total += lower(len(members), supposed, found, delta / len(self._strata))
        return total

    def count_unlabelled(self, mask: Mask) -> float:
        """How many of the values in ``mask`` the sample lacks, or would lack."""
        left = 0.0
        for members, drawn, supposed in zip(self._strata, self._drawn, self._supposed, strict=True):
            rest = int(mask[members[drawn:]].sum())
            others = len(members) - drawn
            left += rest * (1 - (supposed - drawn) / others) if others else 0.0
        return left


def _grow(counts: Ints, growth: float, most: Ints) -> Ints:
    grown: Ints = np.minimum(np.round(counts * growth).astype(np.int64), most)
    return grown


def _share(share: float, size: float) -> int:
    """The largest whole number that is no more than ``share`` of ``size``."""
    return int(share * size * (1 + _SAFETY))


def _strata(scores: Floats, order: Ints, *, halves: bool) -> list[Ints]:
    """The values in random order. ``halves``: two strata, the first with the highest scores that
    sum to half of all expected positives."""
    if not halves or len(scores) < 2:
        return [order]
    falling = np.argsort(-scores, kind="stable")
    mass = np.cumsum(np.maximum(scores[falling], 0.0))
    first = int(np.searchsorted(mass, mass[-1] / 2)) + 1
    top = np.zeros(len(scores), dtype=np.bool_)
    top[falling[: min(first, len(scores) - 1)]] = True
    return [order[top[order]], order[~top[order]]]


@lru_cache(maxsize=1 << 16)
def upper(size: int, drawn: int, found: int, delta: float) -> int:
    """An upper bound of the marked values among ``size``, if ``found`` of ``drawn`` random ones,
    without replacement, are marked. It is too low with probability ``delta`` at most.

    >>> upper(1000, 100, 0, 0.05), upper(100, 100, 7, 0.05)
    (28, 7)
    """
    low, high = found, size - (drawn - found)
    while low < high:  # the tail falls as more are marked
        middle = (low + high + 1) // 2
        if _tail(size, middle, drawn, found) * (1 + _SAFETY) > delta:
            low = middle
        else:
            high = middle - 1
    return low


def lower(size: int, drawn: int, found: int, delta: float) -> int:
    """A lower bound, analogous to ``upper``.

    >>> lower(1000, 100, 50, 0.05)
    418
    """
    return size - upper(size, drawn, drawn - found, delta)


def _tail(size: int, marked: int, drawn: int, found: int) -> float:
    """The probability that at most ``found`` of ``drawn`` are marked, if ``marked`` of ``size``
    are."""
    least, most = max(0, drawn - (size - marked)), min(marked, drawn)
    if found < least:
        return 0.0
    if found >= most:
        return 1.0
    # Summed away from the middle, where terms decrease; from the other side, the first may
    # underflow.
    if found < drawn * marked / size:
        return _sum(size, marked, drawn, range(found, least - 1, -1))
    return 1.0 - _sum(size, marked, drawn, range(found + 1, most + 1))


def _sum(size: int, marked: int, drawn: int, counts: range) -> float:
    """The probability of the given counts, summed until it no longer grows."""
    at = counts[0]
    term = exp(
        _log_choose(marked, at) + _log_choose(size - marked, drawn - at) - _log_choose(size, drawn)
    )
    total = 0.0
    for at in counts:
        total += term
        # The next term: neighbours of the hypergeometric distribution have a simple ratio.
        if counts.step < 0:
            term *= at * (size - marked - drawn + at) / ((marked - at + 1) * (drawn - at + 1))
        else:
            term *= (marked - at) * (drawn - at) / ((at + 1) * (size - marked - drawn + at + 1))
        if term <= total * 1e-17:
            break
    return min(1.0, total)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
