"""Runs a call on a small model within its thresholds, and on a larger one for the rest, which may
itself have thresholds before the largest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp, log
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from blendfusion.errors import QueryError
from blendfusion.models.guarantees.accuracy import (
    DELTA,
    LEAST_VALUES,
    NO,
    UNKNOWN,
    YES,
    Certificate,
    Decisions,
    Ints,
    Targets,
)
from blendfusion.models.guarantees.logistic import fit_classifier, number_labels
from blendfusion.models.guarantees.precision_recall import RankedPair
from blendfusion.models.guarantees.recall import RankedCertificate, fewest
from blendfusion.models.guarantees.vector_classifier import EmbeddingModel
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.key import Keys
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.cascade_outcome import CascadeOutcome
from blendfusion.udfs.ask.job import Job

if TYPE_CHECKING:
    from blendfusion.udfs.ask.requests import Requests
    from blendfusion.udfs.declare.call import Call

AnyCertificate: TypeAlias = Certificate | RankedCertificate | RankedPair

_FIRST_SHARE = 0.9
"""The share of the failure probability for the first values that a run sees together; all later
ones share the rest."""
_LEARNED_SHARE, _MOST_LEARNED = 6, 600
"""A classifier learns from a sixth of the values, and from at most 600."""
_LEAST_TO_LEARN = 180
_LEAST_SHARE = 1e-9
"""A probability has a logarithm."""


class Cascade:
    """The cascade of one question in one run.

    Every chunk of values is certified by itself, so that the promise holds of all of them together
    without any assumption about their order: as a mean of shares that are each as large as
    promised. The sample is drawn by a digest of task and value: the same in every run, whatever
    else is asked, and it does not depend on what is stored.

    ``levels``: the small models in order, then the large one. Each small model has its share of
    what may go wrong (``Targets.shared``), and a sample of its own. ``first`` is False for the
    cascade of the models behind another one."""

    def __init__(
        self,
        call: Call,
        task: Task,
        targets: Targets,
        levels: Sequence[CachedModel],
        *,
        first: bool = True,
    ) -> None:
        self._call, self._task, self._promised = call, task, targets
        self._targets = targets.shared(len(levels) - 1) if first else targets
        self._small, *others, self._large = levels
        self._next = Cascade(call, task, self._targets, levels[1:], first=False) if others else None
        self._salt = "cascade" if first else f"cascade {self._small.name}"
        self._learns = isinstance(self._small.inner, EmbeddingModel)
        self._chunks = 0

    def answers(self, values: Sequence[Values], dispatcher: Requests) -> dict[Values, Answer]:
        """One answer a tuple. Raises QueryError for a small model that tells no probabilities."""
        answers, outcome = self.decide(values, dispatcher)
        dispatcher.observer.on_cascade(self._call, outcome)
        return answers

    def decide(
        self, values: Sequence[Values], dispatcher: Requests
    ) -> tuple[dict[Values, Answer], CascadeOutcome]:
        """One answer a tuple, and who gave them."""
        answers: dict[Values, Answer] = {}
        decided: list[Values] = []
        sampled, rule, measured = 0, "", ""
        if len(values) >= self._least_values:
            proposed = self._propose(values, dispatcher, answers)
            certificate = self._certificate(proposed, [a.text for a in answers.values() if a.text])
            candidates = list(proposed)
            while len(places := certificate.next_to_label):
                chosen = [candidates[place] for place in places]
                self._ask(chosen, dispatcher, answers)
                labels = [self._label(proposed[v], answers[v]) for v in chosen]
                certificate.tell(places, np.array(labels, dtype=np.int64))
            sampled = len(answers)
            for place in np.flatnonzero(certificate.decided.of(certificate.scores)):
                value, score = candidates[place], float(certificate.scores[place])
                if value not in answers:
                    decided.append(value)
                    answers[value] = self._standing(proposed[value], score, certificate.decided)
            rule, measured = self._rule(certificate), _sample_text(certificate)
        open_values = [v for v in values if v not in answers]
        then = None
        if self._next is None or not open_values:
            self._ask(open_values, dispatcher, answers)
        else:
            further, then = self._next.decide(open_values, dispatcher)
            answers |= further
        outcome = CascadeOutcome(
            self._promised,
            self._decider,
            self._large.name,
            len(values),
            len(decided),
            sampled,
            sampled + then.to_large if then else len(values) - len(decided),
            rule,
            measured,
            then,
        )
        return answers, outcome

    def _ask(
        self, values: Sequence[Values], dispatcher: Requests, into: dict[Values, Answer]
    ) -> None:
        if values:
            dispatcher.dispatch(self._job(self._large), self._task, values, into, self._call)

    def _job(self, model: CachedModel) -> Job:
        return Job(self._call.task, model, self._call.models)

    def _propose(
        self, values: Sequence[Values], dispatcher: Requests, known: dict[Values, Answer]
    ) -> dict[Values, Answer]:
        """The small model's answers, as far as it has any."""
        if self._learns:
            return self._learn(values, dispatcher, known)
        found: dict[Values, Answer] = {}
        dispatcher.dispatch(self._job(self._small), self._task, values, found, None, final=False)
        given = {v: a for v, a in found.items() if a.text is not None and a.logprob is not None}
        if not given and any(answer.text is not None for answer in found.values()):
            raise QueryError(
                f"{self._call.text}: {self._small.name} does not tell how probable its answers are, so "
                "that it can decide nothing for another model",
                hint="Local models do, servers that give logprobs, and a Python function that returns odds, "
                "{True: 0.9, False: 0.1}.",
            )
        return {v: given[v] for v in values if v in given}

    def _learn(
        self, values: Sequence[Values], dispatcher: Requests, known: dict[Values, Answer]
    ) -> dict[Values, Answer]:
        """The answers of a classifier of vectors that has learned from some of the large model's
        answers; these are added to ``known``, and their values need no decision."""
        taught = self._shuffle(values)[: min(len(values) // _LEARNED_SHARE, _MOST_LEARNED)]
        self._ask(taught, dispatcher, known)
        taught = [v for v in taught if known[v].text is not None]
        rest = [v for v in values if v not in known]
        if not taught:
            return {}
        names, classes = number_labels([str(known[v].text) for v in taught])
        texts = ["\n".join(text for text in v if text) for v in (*taught, *rest)]
        vectors = dispatcher.embedder_for(self._call).embed(texts)
        classifier = fit_classifier(vectors[: len(taught)], classes, len(names))
        found: dict[Values, Answer] = {}
        for v, shares in zip(rest, classifier.probabilities(vectors[len(taught) :]), strict=True):
            best = int(shares.argmax())
            found[v] = Answer(names[best], logprob=log(max(float(shares[best]), _LEAST_SHARE)))
        return found

    def _shuffle(self, values: Iterable[Values]) -> list[Values]:
        """The values in an order that looks random, and is the same in every run and process."""
        keys = Keys(self._salt, self._task)
        return sorted(values, key=keys.of)

    def _certificate(
        self, proposed: dict[Values, Answer], settled: Sequence[str]
    ) -> AnyCertificate:
        """The certificate for the small model's answers; ``settled`` are the large model's answers
        to other values."""
        scores = np.array([self._score(answer) for answer in proposed.values()], dtype=np.float64)
        delta, order = self._delta(), self._order(proposed)
        if self._targets.ranks:
            assert self._targets.recall is not None
            return RankedCertificate(scores, self._targets.recall, delta, order)
        targets, affirmed = replace(self._targets, delta=delta), settled.count("true")
        if targets.recall is not None:
            return RankedPair(scores, targets, order, affirmed=affirmed)
        return Certificate(scores, targets, order, settled=len(settled), affirmed=affirmed)

    def _order(self, values: Iterable[Values]) -> Ints:
        places = {v: place for place, v in enumerate(values)}
        return np.array([places[v] for v in self._shuffle(places)], dtype=np.int64)

    def _delta(self) -> float:
        """The failure probability of the next chunk. The sum over any number of chunks is at most
        the requested one."""
        whole = DELTA if self._targets.delta is None else self._targets.delta
        self._chunks += 1
        n = self._chunks
        return whole * (_FIRST_SHARE if n == 1 else (1 - _FIRST_SHARE) / (n * (n - 1)))

    def _score(self, answer: Answer) -> float:
        """How sure the small model is of its answer; or how probable it holds a yes."""
        assert answer.logprob is not None
        sure = exp(answer.logprob)
        return 1 - sure if self._targets.binary and answer.text == "false" else sure

    def _label(self, proposed: Answer, right: Answer) -> int:
        if right.text is None:
            return UNKNOWN
        agrees = right.text == ("true" if self._targets.binary else proposed.text)
        return YES if agrees else NO

    def _standing(self, proposed: Answer, score: float, decided: Decisions) -> Answer:
        """The answer to a decided value: for recall and precision, the answer that its side was
        certified for. The small model's own may be the other, where it leans to yes or to no."""
        if not self._targets.binary:
            return proposed
        text = "true" if decided.above is not None and score >= decided.above else "false"
        if text == proposed.text:
            return proposed
        assert proposed.logprob is not None
        left = max(1 - exp(proposed.logprob), _LEAST_SHARE)
        return replace(proposed, text=text, logprob=log(left))

    def _rule(self, certificate: AnyCertificate) -> str:
        """The proposed answers that stand."""
        decided, parts = certificate.decided, []
        if not self._targets.binary:
            above = decided.above
            return "" if above is None else f"with a probability of at least {above:.3g}"
        if decided.above is not None:
            parts.append(f"at least {decided.above:.3g}")
        if decided.below is not None:
            parts.append(f"at most {decided.below:.3g}")
        return f"by a probability of yes of {' or '.join(parts)}" if parts else ""

    @property
    def _least_values(self) -> int:
        """The number of values below which the small model decides none."""
        return _LEAST_TO_LEARN if self._learns else LEAST_VALUES

    @property
    def _decider(self) -> str:
        return self._small.name


def _sample_text(certificate: AnyCertificate) -> str:
    """The result of the sample beyond the rule."""
    if isinstance(certificate, Certificate):
        return ""
    if isinstance(certificate, RankedPair):
        return f"{certificate.positives:,} of them yes"
    if certificate.certain_recall:
        return f"{certificate.positives:,} of them yes, which makes recall ≥ {certificate.certain_recall:.3f} certain"
    needed = fewest(1, certificate.recall, certificate.delta)
    return f"{certificate.positives:,} yes, {needed:,} are needed"
