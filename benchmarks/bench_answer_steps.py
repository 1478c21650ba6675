"""What is each step worth in how a small model is asked about a closed set?

    python benchmarks/bench_answer_steps.py [--data FOLDER] [--rows 500] [--model
    smollm2|gemma|FILE]
        [--sets review_sentences,sms_spam] [--naive-rows 200] [--from 0]

Steps, each with all before it: *naive* is one chat completion a row, free text, read leniently;
*constrained* compares the scores of the options; *examples* puts worked ones of ours before the
question; *words* scores each option by several; *prior* subtracts what the model says to nothing in
particular; *related* (the default) scores options also by words that say the same, and yes and no
by those of the idea that the question asks for; *column* uses the values beside each other for the
prior. *shuffled* is the default with the options in another order. *cost* is the time of the
default, with its prior, by that of the first way.

*by labels* is no way to ask but a bound: the best that any prior could do for these scores, chosen
with the right answers in hand."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from bench_answers import Case, cases, naively, weights

from blendfusion.models.constraints.constraint import closed_set
from blendfusion.models.services.llama import closed_set as choosing_module
from blendfusion.models.services.llama.batch import TaskBatch
from blendfusion.models.services.llama.closed_set import ChoiceDecoder
from blendfusion.models.services.llama.model_cache import OpenModel, borrow
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.weights import choose
from blendfusion.models.services.verbalizer import calibration as calibrate
from blendfusion.models.services.verbalizer.option_trie import Fork, Scores
from blendfusion.models.services.verbalizer.verbalize import Verbalization, verbalize
from blendfusion.options import Options
from blendfusion.types import Task

STEPS = ("constrained", "examples", "words", "prior", "related", "column", "shuffled", "by labels")


@dataclass(frozen=True)
class Pass:
    """The scores of every value by the default's readings of the place where the options part, and
    their prior."""

    root: Fork
    scores: list[Scores]
    prior: Scores
    seconds: float

    def told(self, scores: Sequence[Scores], prior: Scores | float) -> list[int]:
        """The options of values, by their places."""
        found = [self.root.next[int((row - prior).argmax())] for row in scores]
        assert all(isinstance(option, int) for option in found), "options part at their first token"
        return [option for option in found if isinstance(option, int)]


def one_pass(opened: OpenModel, case: Case, options: Options, *, related: bool = True) -> Pass:
    asking = TaskBatch(opened, case.task, options)
    with _related(related):
        choosing = ChoiceDecoder(asking)
        asking.begin()
        started = time.perf_counter()
        prior = choosing.priors(())[0]
        scores = choosing.scores([(asking.row((text,)), choosing.root) for text in case.texts])
    opened.tasks.clear()  # which do not tell whether related words count
    return Pass(choosing.root, scores, prior, time.perf_counter() - started)


@contextmanager
def _related(counts: bool) -> Iterator[None]:
    """Whether words that say the same as labels count, and the idea that a question asks for."""

    def own_words(task: Task) -> Verbalization:
        found = verbalize(task)
        return replace(found, related=((),) * len(found.own), idea=None)

    with nullcontext() if counts else patch.object(choosing_module, "verbalize", own_words):
        yield


def steps(opened: OpenModel, case: Case) -> tuple[list[float], float]:
    """The score of each of STEPS, and the cost of the default against the plain one."""
    plain = one_pass(opened, case, Options(shots=False, wordings=False))
    shown = one_pass(opened, case, Options(wordings=False))
    worded = one_pass(opened, case, Options(), related=False)
    full = one_pass(opened, case, Options())
    names = closed_set(case.task.constraint) or ()

    def score(ways: Pass, scores: list[Scores], prior: Scores | float) -> float:
        return case.score([names[option] for option in ways.told(scores, prior)])

    found = [score(ways, ways.scores, 0.0) for ways in (plain, shown, worded)]
    found += [score(ways, ways.scores, ways.prior) for ways in (worded, full)]
    found.append(score(full, full.scores, calibrate.of_column(full.scores, full.prior)))
    found.append(_shuffled(opened, case))
    found.append(_by_labels(lambda offsets: score(full, full.scores, offsets), len(names)))
    return found, full.seconds / plain.seconds


def _shuffled(opened: OpenModel, case: Case) -> float:
    """The default with the options in reverse order, which they are listed in nowhere."""
    options = case.task.constraint.options
    if not options:
        return float("nan")
    reverse = replace(case.task.constraint, options=options[::-1])
    turned = replace(case, task=replace(case.task, constraint=reverse))
    shown = one_pass(opened, turned, Options())
    told = shown.told(shown.scores, shown.prior)
    return case.score([reverse.options[option] for option in told])


def _by_labels(score: Any, options: int) -> float:
    """The best score that offsets of the options reach, found one option after the other."""
    offsets, best = np.zeros(options), 0.0
    tried = np.linspace(-6, 6, 121)
    for _ in range(4):
        for option in range(options):
            found = []
            for value in tried:
                offsets[option] = value
                found.append(score(offsets))
            offsets[option] = tried[int(np.argmax(found))]
            best = max(best, *found)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("BLENDFUSION_DATA"))
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument(
        "--from", type=int, default=0, dest="first", help="leave out the rows before"
    )
    parser.add_argument("--model", default="smollm2", help="smollm2, gemma or a GGUF file")
    parser.add_argument("--sets", default="review_sentences,sms_spam,ag_news,trec_questions")
    parser.add_argument("--naive-rows", type=int, default=0, help="rows of the naive way; 0: none")
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data is missing: where the data sets are")
    path = weights(given.model)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    print(f"{path.name}, {given.rows} rows of each set from row {given.first}, load {load:.1f}")
    print(
        f"{'data set':17} {'majority':>8} {'naive':>6} " + " ".join(f"{s:>11}" for s in STEPS),
        "  cost",
    )
    naive = naively(path) if given.naive_rows else None
    loan = borrow(choose(path, Options()), Options(), Switch())
    wanted = set(given.sets.split(","))
    for whole in cases(given.data, given.first + given.rows):
        if whole.name not in wanted:
            continue
        case = replace(whole, texts=whole.texts[given.first :], gold=whole.gold[given.first :])
        said = f"{'-':>6}"
        if naive is not None:
            few = replace(
                case, texts=case.texts[: given.naive_rows], gold=case.gold[: given.naive_rows]
            )
            said = f"{few.score(naive(few)):6.3f}"
        found, cost = steps(loan.thing, case)
        scores = " ".join(f"{score:11.3f}" for score in found)
        print(f"{case.name:17} {case.majority():8.3f} {said} {scores}   {cost:.2f}", flush=True)
    loan.release()


if __name__ == "__main__":
    main()
