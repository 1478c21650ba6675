"""What is each step worth in how a small model is asked about a closed set?

    python benchmarks/bench_answer_steps.py [--data FOLDER] [--rows 500] [--model smollm2|gemma|FILE]
        [--sets review_sentences,sms_spam] [--naive-rows 200] [--from 0]

Steps, each with all before it: *naive* is one chat completion a row, free text, read leniently;
*constrained* compares the scores of the options; *examples* puts worked ones of ours before the question;
*words* scores each option by several; *prior* (the default) subtracts what the model says to nothing in
particular; *column* uses the values beside each other instead. *shuffled* is the default with the options
listed in another order. Scores are taken in one pass without and one with examples, and compared in all
these ways; *cost* is the time of the second pass, with its prior, by that of the first without one.

*by labels* is no way to ask but a bound: the best that any prior could do for these scores, chosen with
the right answers in hand.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from bench_answers import Case, cases, naively, weights
from numpy.typing import NDArray

from blendfusion.models import calibrate
from blendfusion.models.asking import Asking
from blendfusion.models.choosing import Choosing
from blendfusion.models.constraint import closed_set
from blendfusion.models.llama_context import Switch
from blendfusion.models.opened import Opened, borrow
from blendfusion.models.options_tree import Fork, Scores
from blendfusion.models.weights import choose
from blendfusion.options import Options

STEPS = ("constrained", "examples", "words", "prior", "column", "shuffled", "by labels")


@dataclass(frozen=True)
class Pass:
    """The logits of every value, and of the prior's probes, where the options part: of those tokens alone
    that the options and their words begin with, which ``root`` names by their places."""

    root: Fork
    values: list[NDArray[np.float32]]
    probes: list[NDArray[np.float32]]
    seconds: float
    probe_seconds: float

    def scores(self, *, words: bool) -> tuple[list[Scores], Scores]:
        """Of the values, and the prior, with or without the words of the options."""
        root = self.root if words else replace(self.root, words=())
        prior = calibrate.prior([root.scores(row) for row in self.probes])
        return [root.scores(row) for row in self.values], prior

    def option_of(self, branch: int) -> int:
        option = self.root.next[branch]
        assert isinstance(option, int), "the options of these sets part at their first token"
        return option


def one_pass(opened: Opened, case: Case, options: Options) -> Pass:
    asking = Asking(opened, case.task, options)
    choosing = Choosing(asking)
    asking.begin()
    root = choosing.root
    tokens = sorted({*root.tokens, *chain(*root.words)})
    place = {token: place for place, token in enumerate(tokens)}
    root = replace(
        root,
        tokens=tuple(place[token] for token in root.tokens),
        words=tuple(tuple(place[token] for token in said) for said in root.words),
    )
    values, seconds = _logits(asking, [(text,) for text in case.texts], tokens)
    probes, probe_seconds = _logits(asking, calibrate.probes(case.task), tokens)
    return Pass(root, values, probes, seconds, probe_seconds)


def _logits(
    asking: Asking, values: Sequence[Any], tokens: Sequence[int]
) -> tuple[list[NDArray[np.float32]], float]:
    started = time.perf_counter()
    rows = [asking.row(value) for value in values]
    order = sorted(range(len(rows)), key=rows.__getitem__)
    found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(rows)

    def step(place: int, logits: Any) -> Sequence[int]:
        found[order[place]] = np.array(logits[list(tokens)])
        return ()

    asking.run([rows[place] for place in order], step, 0, slots=asking.context.slots)
    return found, time.perf_counter() - started


def steps(opened: Opened, case: Case) -> tuple[list[float], float]:
    """The score of each of STEPS, and the cost of the default against the plain one."""
    plain = one_pass(opened, case, Options(shots=False))
    shown = one_pass(opened, case, Options())
    names = closed_set(case.task.constraint) or ()

    def score(ways: Pass, scores: list[Scores], prior: Scores | float) -> float:
        told = [names[ways.option_of(int((row - prior).argmax()))] for row in scores]
        return case.score(told)

    bare, _ = plain.scores(words=False)
    single, _ = shown.scores(words=False)
    full, prior = shown.scores(words=True)
    found = [score(plain, bare, 0.0), score(shown, single, 0.0), score(shown, full, 0.0)]
    found.append(score(shown, full, prior))
    found.append(score(shown, full, calibrate.of_column(full, prior)))
    found.append(_shuffled(opened, case))
    found.append(_by_labels(lambda offsets: score(shown, full, offsets), len(prior)))
    return found, (shown.seconds + shown.probe_seconds) / plain.seconds


def _shuffled(opened: Opened, case: Case) -> float:
    """The default with the options in reverse order, which they are listed in nowhere."""
    options = case.task.constraint.options
    if not options:
        return float("nan")
    reverse = replace(case.task.constraint, options=options[::-1])
    turned = replace(case, task=replace(case.task, constraint=reverse))
    shown = one_pass(opened, turned, Options())
    full, prior = shown.scores(words=True)
    names = reverse.options
    return case.score([names[shown.option_of(int((row - prior).argmax()))] for row in full])


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
