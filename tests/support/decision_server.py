"""Replies of decision models in the three protocols, for ``loopback.serving``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from loopback import Body, Reply

Odds = Callable[[str, str, Sequence[str]], Sequence[float]]
"""The probabilities of the options of a question about a state: ``odds(state, question, options)``.
The options of a yes/no question are yes and no."""


@dataclass
class Decisions:
    """A script that answers as a decision model. ``spoil`` may change an answer; ``counts`` are the
    questions of each request."""

    odds: Odds
    model: str = "jev-1.13.0"
    leaks: float = 0.0
    """So much is the probability of yes changed by each further question of a request."""
    spoil: Callable[[Body], Any] = lambda answer: answer
    counts: list[int] = field(default_factory=list)

    def systemone(self, body: Body) -> Reply:
        asked = body["questions"]
        answers = {}
        for name, question in asked.items():
            criteria = question.get("criteria")
            names = list(criteria) if isinstance(criteria, Mapping) else criteria
            odds = self._odds(body["state"], question["instructions"], names, len(asked))
            answers[name] = self.spoil(_systemone(question["type"], names, odds))
        return self._reply({"answers": answers}, len(asked))

    def openai(self, body: Body) -> Reply:
        asked = body["questions"]
        answers = []
        for question in asked:
            names = [one["value"] for one in question.get("choices", ())]
            names = names or [one["label"] for one in question.get("levels", ())]
            odds = self._odds(body["input"], question["instructions"], names, len(asked))
            answer = _openai(question["type"], names, odds) | {"name": question["name"]}
            answers.append(self.spoil(answer))
        return self._reply({"answers": answers}, len(asked))

    def sglang(self, body: Body) -> Reply:
        asked = body["questions"]
        answers = {}
        for question in asked:
            names = [one["name"] for one in question.get("options", ())]
            names = names or question.get("levels")
            odds = self._odds(body["input"], question["question"], names, len(asked))
            answer = _systemone(question["type"], names, odds)
            if question["type"] == "yes_no":
                answer = {"type": "yes_no", "probabilities": {"yes": odds[0], "no": odds[1]}}
            answers[question["id"]] = self.spoil(answer)
        return self._reply({"answers": answers}, len(asked))

    def _odds(
        self, state: object, question: str, names: Sequence[str] | None, company: int
    ) -> list[float]:
        text = state if isinstance(state, str) else json.dumps(state)
        odds = [*self.odds(text, question, names or ["yes", "no"])]
        if self.leaks and company > 1:
            odds = [min(1.0, odds[0] + self.leaks), max(0.0, 1 - odds[0] - self.leaks), *odds[2:]]
        return odds

    def _reply(self, reply: Body, questions: int) -> Reply:
        self.counts.append(questions)
        usage = {"input_tokens": 30 + 8 * questions, "output_tokens": questions}
        return Reply(raw=json.dumps({"model": self.model, "usage": usage} | reply).encode())


def _systemone(kind: str, names: Sequence[str] | None, odds: Sequence[float]) -> Body:
    if kind in ("noul", "yes_no"):
        return {"type": kind, "noul": odds[0]}
    assert names is not None
    keys = [str(place) for place in range(len(names))] if kind == "score" else names
    # Providers name a choice that is not the likeliest, and a confidence of their own.
    stated = {"choice": names[-1], "confidence": 0.123}
    return {"type": kind, "probabilities": dict(zip(keys, odds, strict=True))} | stated


def _openai(kind: str, names: Sequence[str], odds: Sequence[float]) -> Body:
    if kind == "predicate":
        return {"type": kind, "probability": odds[0]}
    values: Sequence[object] = range(len(names)) if kind == "score" else names
    pairs = zip(values, odds, strict=True)
    return {"type": kind, "probabilities": [{"value": v, "probability": p} for v, p in pairs]}
