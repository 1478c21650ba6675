"""How good are the answers of a model to any yes/no question?

    python benchmarks/bench_bank.py [--model auto|FILE|openai:NAME@URL] [--data FOLDER] [--rows 20]
    [--part choose|report|public|unseen|spread|untouched] [--sample 10 [--seeds 3]] [--gpu]

The questions are those of our bank (``blendfusion.models.services.tuning.bank``) and about public data sets (``public_questions``).
*unseen*, the default, is the bank's part *report* and the public questions: nothing is chosen on
them. *area* is the area under the ROC curve (0.5 is chance), *balanced* the balanced accuracy at the
model's own threshold, *limit* that of the best threshold, chosen with the right answers. *off*: the
expected calibration error in five groups; a question with few rows shows some 0.15 by chance, so
the line *together* has that of all answers.

*spread* is the bank's part *choose* and every second public question: the odds that we ship are
divided by the number that makes the right answers to these likeliest, which the last line names.
*untouched* is all the others.

*--sample* asks each public question again with a sample of so many other texts of its set, drawn
without their labels, once for each seed. The last line is the balanced accuracy of both, and the
difference, with 95 % intervals over questions.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, nan
from pathlib import Path
from random import Random

import numpy as np
from bench_questions import auc, off
from local_settings import add_arguments, settings
from numpy.typing import NDArray
from public_questions import public, texts_of

from blendfusion.models.protocol.model import Model
from blendfusion.models.registry.load import load
from blendfusion.models.services.tuning.bank import BankQuestion, bank
from blendfusion.options import Options
from blendfusion.types import Constraint, Task
from blendfusion.udfs.declare.sample import sample_rows

PARTS = ("choose", "report", "public", "unseen", "spread", "untouched")


@dataclass(frozen=True)
class Measured:
    """The answers to one question. ``likely``: the probability of yes for each text."""

    asked: BankQuestion
    likely: tuple[float, ...]
    answers: tuple[bool, ...]
    seconds: float
    tokens: int

    @property
    def area(self) -> float:
        return auc(self.likely, self.asked.yes)

    @property
    def balanced(self) -> float:
        return balanced(self.answers, self.asked.yes)

    @property
    def limit(self) -> float:
        bounds = [*self.likely, 2.0]
        return max(balanced([p >= at for p in self.likely], self.asked.yes) for at in bounds)

    @property
    def sure(self) -> list[float]:
        return [max(p, 1 - p) for p in self.likely]

    @property
    def right(self) -> list[bool]:
        return [a == b for a, b in zip(self.answers, self.asked.yes, strict=True)]


def balanced(answers: Sequence[bool], truth: Sequence[bool]) -> float:
    """The mean share of right answers among the texts with a yes and among those with a no."""
    found, right = np.asarray(answers), np.asarray(truth)
    return float(np.mean([np.mean(found[right == side] == side) for side in (True, False)]))


def questions(part: str, data: Path | None, rows: int) -> Iterator[BankQuestion]:
    if part != "public":
        yield from bank("choose" if part in ("choose", "spread") else "report", rows)
    if part not in ("choose", "report") and data is not None:
        every = list(public(data, rows))
        yield from {"spread": every[::2], "untouched": every[1::2]}.get(part, every)


def measured(
    model: Model, asked: BankQuestion, sample: tuple[tuple[str, ...], ...] = ()
) -> Measured:
    task = Task("llm_filter", asked.question, Constraint("boolean"), ("text",), sample=sample)
    started = time.perf_counter()
    answers = model.answer(task, [(text,) for text in asked.texts])
    seconds = time.perf_counter() - started
    likely = []
    for answer in answers:
        sure = 0.5 if answer.text is None else exp(answer.logprob) if answer.logprob else 1.0
        likely.append(sure if answer.text == "true" else 1 - sure)
    tokens = sum(answer.usage.evaluated_tokens for answer in answers)
    yes = tuple(answer.text == "true" for answer in answers)
    return Measured(asked, tuple(likely), yes, seconds, tokens)


def line(name: str, figures: Sequence[float]) -> str:
    shown = " ".join(f"{figure:8.2f}" for figure in figures)
    return f"{name[:66]:66} {shown}"


def together(name: str, found: Sequence[Measured]) -> str:
    """The means over questions; the calibration error over all their answers."""
    rows = sum(len(one.likely) for one in found)
    return line(
        name,
        [
            float(np.mean([one.area for one in found])),
            float(np.mean([one.balanced for one in found])),
            float(np.mean([one.limit for one in found])),
            off([p for one in found for p in one.sure], [r for one in found for r in one.right]),
            rows / max(1e-9, sum(one.seconds for one in found)),
            sum(one.tokens for one in found) / rows if found else nan,
        ],
    )


def interval(each: NDArray[np.float64]) -> tuple[float, float]:
    """The 95 % interval of the mean over questions, by the bootstrap."""
    draws = np.random.default_rng(0).integers(len(each), size=(10_000, len(each)))
    low, high = np.quantile(each[draws].mean(axis=1), (0.025, 0.975))
    return float(low), float(high)


def likeliest_divisor(found: Sequence[Measured]) -> float:
    """The number by which to divide all odds so that the right answers are likeliest."""
    likely = np.clip([p for one in found for p in one.likely], 1e-9, 1 - 1e-9)
    yes = np.array([yes for one in found for yes in one.asked.yes])
    odds = np.where(yes, 1, -1) * np.log(likely / (1 - likely))
    tried = np.arange(0.5, 6, 0.05)
    return float(min(tried, key=lambda by: np.logaddexp(0, -odds / by).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="auto", help="as connect takes it")
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--rows", type=int, default=20, help="texts of a question")
    parser.add_argument("--part", choices=PARTS, default="unseen")
    parser.add_argument("--only", default="", help="kinds, separated by commas")
    parser.add_argument("--sample", type=int, default=0, help="texts of a sample; 0: none")
    parser.add_argument("--seeds", type=int, default=3, help="samples of a question")
    parser.add_argument("--seconds", type=float, default=0, help="stop after these; 0: no limit")
    add_arguments(parser)
    given = parser.parse_args()
    model = load(given.model, Options(**settings(given)))
    print(f"{given.model}, {given.rows} texts a question")
    heads = ("area", "balanced", "limit", "off", "rows/s", "tokens")
    print(f"{'question':66} {' '.join(f'{head:>8}' for head in heads)}")
    found: list[Measured] = []
    with_sample: list[list[Measured]] = []
    started = time.perf_counter()
    for asked in questions(given.part, given.data, given.rows):
        if given.only and asked.kind not in given.only.split(","):
            continue
        if given.seconds and time.perf_counter() - started > given.seconds:
            break
        one = measured(model, asked)
        found.append(one)
        sure = off(one.sure, one.right)
        rows = len(one.likely)
        figures = (one.area, one.balanced, one.limit, sure, rows / one.seconds, one.tokens / rows)
        print(line(f"{asked.kind}: {asked.question}", figures), flush=True)
        if given.sample:
            others = sorted({*texts_of(given.data, asked.kind)} - {*asked.texts})
            draws = [Random(f"{seed} {asked.name}") for seed in range(given.seeds)]
            samples = [
                sample_rows((t,) for t in draw.sample(others, given.sample)) for draw in draws
            ]
            with_sample.append([measured(model, asked, sample) for sample in samples])
            balanced = tuple(again.balanced for again in with_sample[-1])
            print(line("  balanced, with each sample", balanced), flush=True)
    for kind in dict.fromkeys(one.asked.kind for one in found):
        print(together(f"mean of {kind}", [one for one in found if one.asked.kind == kind]))
    print(together(f"together ({len(found)} questions)", found))
    print(f"odds divided by {likeliest_divisor(found):.2f} make the right answers likeliest")
    if given.sample:
        before = np.array([one.balanced for one in found])
        after = np.array([[one.balanced for one in again] for again in with_sample])
        print(
            f"with samples: balanced accuracy {', '.join(f'{b:.3f}' for b in after.mean(axis=0))}"
        )
        for name, each in (
            ("without", before),
            ("with", after.mean(axis=1)),
            ("gain", after.mean(axis=1) - before),
        ):
            low, high = interval(each)
            print(f"{name}: {each.mean():.3f} [{low:.3f}, {high:.3f}]")
    model.close()


if __name__ == "__main__":
    main()
