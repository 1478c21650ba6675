"""The first values of an order by a tournament: few comparisons, many of them at once.

The winner of a knockout is the first. The next one is among those that lost to it directly, which
play the next knockout, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.udfs.services.columns.comparisons import Comparisons


def first_places(places: Sequence[int], k: int, comparisons: Comparisons) -> list[int]:
    """The ``k`` places that win the most comparisons, the best first."""
    losers: dict[int, list[int]] = {place: [] for place in places}
    """For each value, those that lost to it directly."""
    open_places = list(places)
    found: list[int] = []
    while open_places and len(found) < k:
        winner = _knockout(open_places, losers, comparisons)
        found.append(winner)
        open_places = losers[winner]
    return found


def _knockout(places: Sequence[int], losers: dict[int, list[int]], comparisons: Comparisons) -> int:
    """The winner. Those that have won least play first, so that no value collects many losers."""
    left = list(places)
    while len(left) > 1:
        left.sort(key=lambda place: len(losers[place]))
        odd = [left.pop()] if len(left) % 2 else []
        pairs = list(zip(left[::2], left[1::2], strict=True))
        left = odd
        for (a, b), won in zip(pairs, comparisons.wins(pairs), strict=True):
            winner, loser = (a, b) if won else (b, a)
            losers[winner].append(loser)
            left.append(winner)
    return left[0]
