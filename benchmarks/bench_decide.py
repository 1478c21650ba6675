"""How well does a causal model answer in the label way of decision models?

    python benchmarks/bench_decide.py [--model FILE] [--data FOLDER] [--rows 8] [--part report]
    [--every 1] [--ways both]

The label way shows the options as letters and reads the odds of the letters at the beginning of the
reply (llama.cpp's type openjev). It is measured in one order of the options, in both, and in both
with the odds behind neutral texts subtracted, beside the model's own way. One of the three is to be
chosen by ``--part spread --ways letters``, and compared with the model's own way by ``--part
untouched``; the last lines are the differences to it with 95 % intervals over questions. The labels
are never shown to the model.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_bank import PARTS, Measured, interval, measured, questions, together
from jinja2.sandbox import ImmutableSandboxedEnvironment

from blendfusion.models.protocol.python_packages import packaged_weights
from blendfusion.models.registry.load import load
from blendfusion.models.services.llama.library import library
from blendfusion.models.services.tuning.bank import BankQuestion
from blendfusion.models.services.verbalizer.calibration_texts import ANY
from blendfusion.options import Options

NEUTRAL = 2
WAYS = ("one order", "both orders", "less neutral texts")
OWN = "the model's own way"


class LabelWay:
    """Reads the odds of letters. ``model``: of llama-cpp-python."""

    def __init__(self, weights: Path) -> None:
        self._model: Any = library().Llama(str(weights), n_ctx=512, n_threads=1, verbose=False)
        source = self._model.metadata.get("tokenizer.chat_template")
        lead = "" if source else " "
        self._template = ImmutableSandboxedEnvironment(trim_blocks=True).from_string(
            source or "{{ bos_token }}{{ messages[0].content }}\nAnswer:"
        )
        self._first_text = self._model.detokenize([self._model.token_bos()], special=True).decode()
        self._letters = [
            self._model.tokenize(f"{lead}{letter}".encode(), add_bos=False)[0]
            for letter in ("A", "B")
        ]
        self._known: list[int] = []
        """The tokens of the prompt before."""

    def odds(self, text: str, question: str, *, swapped: bool) -> float:
        """The log odds of a yes, which is the first option unless they are ``swapped``."""
        options = ("no", "yes") if swapped else ("yes", "no")
        shown = "\n".join(f"{letter}. {one}" for letter, one in zip("AB", options, strict=True))
        turn = f"{text}\n\nQuestion: {question}\n{shown}\nAnswer with one letter."
        prompt = self._template.render(
            messages=[{"role": "user", "content": turn}],
            add_generation_prompt=True,
            bos_token=self._first_text,
        )
        tokens = self._model.tokenize(prompt.encode(), add_bos=False, special=True)
        shared = 0  # the prompt before had the same text and question
        for known, wanted in zip(self._known, tokens[:-1], strict=False):
            if known != wanted:
                break
            shared += 1
        self._model._ctx.kv_cache_seq_rm(-1, shared, -1)
        self._model.n_tokens = shared
        self._model.eval(tokens[shared:])
        self._known = tokens
        scores = self._model._ctx.get_logits()  # at the last token
        first, second = (float(scores[letter]) for letter in self._letters)
        return second - first if swapped else first - second

    def measure(self, asked: BankQuestion) -> dict[str, Measured]:
        """The answers to one question in each way."""
        started = time.process_time()
        texts = (*asked.texts, *ANY[:NEUTRAL])
        odds = [[self.odds(t, asked.question, swapped=s) for s in (False, True)] for t in texts]
        both = np.array(odds).mean(axis=1)
        n, seconds = len(asked.texts), time.process_time() - started
        found = (np.array(odds)[:n, 0], both[:n], both[:n] - both[n:].mean())
        return {way: _of_odds(asked, one, seconds) for way, one in zip(WAYS, found, strict=True)}


def _of_odds(asked: BankQuestion, odds: Sequence[float] | Any, seconds: float) -> Measured:
    likely = tuple(float(1 / (1 + np.exp(-one))) for one in odds)
    return Measured(asked, likely, tuple(one > 0.5 for one in likely), seconds, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=packaged_weights())
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--part", choices=PARTS, default="report")
    parser.add_argument("--every", type=int, default=1, help="ask one in so many questions")
    parser.add_argument("--ways", choices=("letters", "own", "both"), default="both")
    args = parser.parse_args()
    asked = list(questions(args.part, args.data, args.rows))[:: args.every]
    found: dict[str, list[Measured]] = {}
    if args.ways != "own":
        letters = LabelWay(args.model)
        for question in asked:
            for way, one in letters.measure(question).items():
                found.setdefault(way, []).append(one)
    if args.ways != "letters":
        own = load(f"llama:{args.model}", Options(threads=1, weights="original"))
        found[OWN] = [measured(own, question) for question in asked]
        own.close()
    print(f"{len(asked)} questions of the part {args.part}, {args.rows} texts each")
    print(f"{'':66}     area balanced    limit      off")
    for way, every in found.items():
        print(together(way, every))
    own_way = found.pop(OWN, None)
    for way, every in found.items() if own_way else ():
        for figure in ("area", "balanced"):
            pairs = zip(every, own_way or (), strict=True)
            more = np.array([getattr(a, figure) - getattr(b, figure) for a, b in pairs])
            low, high = interval(more)
            print(f"{way}: {figure} {more.mean():+.2f} ({low:+.2f} to {high:+.2f}) of its own way")
    print(f"{time.process_time():.0f} CPU seconds")


if __name__ == "__main__":
    main()
