"""How few rows can bounds of a share need, whatever the method is?

    python benchmarks/bench_fewest_rows.py [--share 0.01] [--steps 60]

Rows come one after another, and a method ends with an interval, at most 0.04 wide, that contains the
share with a probability of at least 0.95, whatever the share is. Each set of prices of an error, one
for each share, bounds the mean number of rows from below: dynamic programming finds the method whose
rows and prices cost least, and no method costs less than that, less 0.05 times all prices. The
prices rise where that method errs too often. Printed is the best bound so far, as a part of the size
by textbooks, (1.96 s / 0.02)². A method that does not end by 300 rows may then end without an error,
so the bound holds for methods of any length."""

from __future__ import annotations

import argparse
from math import lgamma

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

WIDTH, ERROR, MOST_ROWS, MOST_FOUND = 0.04, 0.05, 300, 68
_LOGS = np.array([lgamma(i + 1) for i in range(MOST_ROWS + 2)])


class Methods:
    """Methods that estimate a share; the mean number of rows counts where it is ``share``."""

    def __init__(self, share: float) -> None:
        grid = np.r_[0.0005:0.02:0.0015, 0.02:0.14:0.003, share, share + WIDTH + 1e-6]
        self.shares: Numbers = np.unique(grid)
        self.own = int(np.abs(self.shares - share).argmin())
        self._first = np.arange(len(self.shares))
        self._end = np.searchsorted(self.shares, self.shares + WIDTH + 1e-9)

    def cheapest(self, prices: Numbers) -> tuple[float, Numbers]:
        """(the cost of the cheapest method, how often it errs at each share)"""
        ends, starts = [np.zeros(0, dtype=bool)] * MOST_ROWS, [self._first] * MOST_ROWS
        behind = np.zeros(MOST_FOUND + 1)
        for n in range(MOST_ROWS - 1, -1, -1):
            found = np.arange(min(n, MOST_FOUND - 1) + 1)
            likely = self._likely(n, found)
            sums = np.c_[np.zeros(len(found)), np.cumsum(likely * prices, axis=1)]
            inside = sums[:, self._end] - sums[:, self._first]
            starts[n] = inside.argmax(axis=1)
            error = sums[:, -1] - inside[found, starts[n]]
            more = likely[:, self.own] + (
                behind[found] * (n + 1 - found) + behind[found + 1] * (found + 1)
            ) / (n + 1)
            ends[n] = error <= more
            behind = np.zeros(MOST_FOUND + 1)
            behind[found] = np.minimum(error, more)
        return float(behind[0]), self._errors(ends, starts)

    def _likely(self, n: int, found: NDArray[np.int64]) -> Numbers:
        """The probability of so many found in ``n`` rows, at each share."""
        ways = _LOGS[n] - _LOGS[found] - _LOGS[n - found]
        some, none = np.log(self.shares), np.log1p(-self.shares)
        logs = ways[:, None] + found[:, None] * some + (n - found)[:, None] * none
        return np.asarray(np.exp(logs))

    def _errors(self, ends: list[NDArray[np.bool_]], starts: list[NDArray[np.int64]]) -> Numbers:
        going = np.zeros((MOST_FOUND + 1, len(self.shares)))
        going[0], wrong = 1.0, np.zeros(len(self.shares))
        for end, start in zip(ends, starts, strict=True):
            own = np.flatnonzero(end)
            first = start[own][:, None]
            outside = (self._first < first) | (self._first >= self._end[first])
            wrong += (going[own] * outside).sum(axis=0)
            going[own] = 0.0
            more = going * (1 - self.shares)
            more[1:] += going[:-1] * self.shares
            going = more
        return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=60)
    arguments = parser.parse_args()
    methods, share = Methods(arguments.share), arguments.share
    prices = np.ones(len(methods.shares))
    prices[methods.own] = prices[np.abs(methods.shares - share - WIDTH).argmin()] = 60.0
    best, textbook = 0.0, 1.96**2 * share * (1 - share) / (WIDTH / 2) ** 2
    for step in range(arguments.steps):
        cost, wrong = methods.cheapest(prices)
        best = max(best, cost - ERROR * prices.sum())
        if step % 10 == 9:
            print(
                f"{step + 1:4} steps: at least {best:6.1f} rows, {best / textbook:.3f}", flush=True
            )
        change = np.clip((wrong - ERROR) / ERROR, -1, 3) * 0.6 / (1 + step / 25)
        prices = np.maximum(prices * np.exp(change), 1e-3)


if __name__ == "__main__":
    main()
