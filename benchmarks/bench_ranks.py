"""Are ranks by comparisons nearer to the truth than scores, and how many pairs do they take?

    python benchmarks/bench_ranks.py [--values 100] [--seeds 20]

A judge with errors sees each value with normal noise, anew for each question: a score is a value on
a scale from 0 to 10, a comparison the sign of a difference. "tau" is Kendall's, between the whole
order and the true one, and "top" the share of the ten first values that are right. Every figure is
a mean over seeds that nothing was chosen on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import log2

import numpy as np
import numpy.typing as npt

from blendfusion.udfs.services.columns.ranking import ranking, strengths_of

FIRST_SEED = 1_000
NOISES = (0.0, 0.1, 0.2, 0.3, 0.6, 1.0)
TOP = 10

Numbers = npt.NDArray[np.float64]


def tau(found: Numbers, truth: Numbers) -> float:
    """Kendall's tau-a."""
    upper = np.triu_indices(len(truth), 1)
    signs = [np.sign(x[:, None] - x[None, :])[upper] for x in (found, truth)]
    return float((signs[0] * signs[1]).mean())


def ranks(places: Sequence[int]) -> Numbers:
    """The strength of each value, by its place in an order."""
    numbers = np.zeros(len(places))
    numbers[list(places)] = -np.arange(len(places), dtype=float)
    return numbers


def one(n: int, noise: float, seed: int) -> list[float]:
    random = np.random.default_rng(seed)
    truth = random.normal(size=n)
    scores = np.clip(np.round(5 + 2 * (truth + noise * random.normal(size=n))), 0, 10)

    def judge(pairs: Sequence[tuple[int, int]]) -> list[float]:
        first, second = (truth[list(side)] for side in zip(*pairs, strict=True))
        seen = first - second + noise * 2**0.5 * random.normal(size=len(pairs))
        return [float(lead > 0) for lead in seen]

    best = {*np.argsort(-truth)[:TOP].tolist()}
    whole, prior = ranking(n, judge, None), ranking(n, judge, None, strengths_of(scores.tolist()))
    top = ranking(n, judge, TOP)
    by_score = np.argsort(-scores, kind="stable")[:TOP].tolist()
    return [
        *(tau(scores, truth), tau(ranks(whole.places), truth), tau(ranks(prior.places), truth)),
        whole.pairs / (n * log2(n)),
        *(len(best & {*by_score}) / TOP, len(best & {*top.places}) / TOP),
        top.pairs / (n + 2 * TOP * log2(n)),
        float(whole.refitted),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=20)
    arguments = parser.parse_args()
    print(
        f"{'noise':>6} {'tau: scores':>12} {'ranks':>7} {'both':>7} {'pairs/n log n':>14} "
        f"{'top: scores':>12} {'ranks':>7} {'pairs/bound':>12} {'refitted':>9}"
    )
    for noise in NOISES:
        seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
        a, b, c, pairs, d, e, bound, refitted = np.mean(
            [one(arguments.values, noise, seed) for seed in seeds], axis=0
        )
        print(
            f"{noise:6.1f} {a:12.3f} {b:7.3f} {c:7.3f} {pairs:14.2f} {d:12.2f} {e:7.2f} "
            f"{bound:12.2f} {refitted:9.2f}"
        )


if __name__ == "__main__":
    main()
