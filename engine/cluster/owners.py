"""The owners of models: threads here, each with a place there, that pull batches from a queue."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from blendfusion.cluster.messages import Pose, Posed, decoded, encoded
from blendfusion.cluster.protocol import BackEnd, Place, PlaceGone
from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.model import Model, OnAnswer, Values, ignore_answer
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task

_LOSSES = 3
"""Owners that a batch may lose before its query fails."""
_WAIT_SECONDS = 0.1
"""How long a query waits before it looks again; Ctrl-C takes effect in between."""
_PARTS = 2
"""A batch is at most the owner's share of the remaining values, divided by this."""


_LEAST = 4
"""A batch is at least the owner's share of the largest one, divided by this."""


class Question:
    """Values that one caller waits for."""

    def __init__(
        self, model: bytes, task: Task, values: Sequence[Values], most: int, least: int
    ) -> None:
        self.model, self.task, self.values = model, task, values
        self.left: deque[int] = deque(range(len(values)))
        self.most, self.least = most, least
        self.arrived: deque[tuple[int, Answer]] = deque()
        self.under_way = 0
        self.losses = 0
        self.error: BaseException | None = None

    def take(self, share: float) -> list[int]:
        """The places of the next batch of an owner that gives this share of all answers. Batches
        become smaller near the end, so that all owners end together."""
        least = max(self.least, round(self.most * share / _LEAST))
        size = max(least, min(self.most, math.ceil(len(self.left) * share / _PARTS)))
        return [self.left.popleft() for _ in range(min(size, len(self.left)))]

    @property
    def ended(self) -> bool:
        return not self.under_way and (not self.left or self.error is not None)


class Owners:
    """Puts questions to the models of all workers. The fastest get the most."""

    def __init__(self, back_end: BackEnd) -> None:
        self._back_end = back_end
        self._changed = threading.Condition()
        self._waiting: deque[Question] = deque()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._rates: dict[int, float] = {}
        """Answers a second of the owners that have given some."""
        self.batches: list[int] = [0] * back_end.size
        """The batches that each owner has answered."""

    @property
    def size(self) -> int:
        return self._back_end.size

    def pose(self, question: Question, on_answer: OnAnswer) -> None:
        """Have a question answered. Raises what a model raised, after all that arrived."""
        with self._changed:
            self._closed = False
            self._start()
            self._waiting.append(question)
            self._changed.notify_all()
        try:
            while True:
                with self._changed:
                    if not question.arrived and not question.ended:
                        self._changed.wait(_WAIT_SECONDS)
                    ended = question.ended
                while question.arrived:
                    on_answer(*question.arrived.popleft())
                if ended:
                    break
        finally:
            with self._changed:
                question.left.clear()
                if question in self._waiting:
                    self._waiting.remove(question)
        if question.error is not None:
            raise question.error

    def close(self) -> None:
        """End the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():  # which may collect a dropped session
                thread.join()
        self._threads = []

    def _start(self) -> None:
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._own, args=(number,), daemon=True)
                for number in range(self.size)
            ]
            for thread in self._threads:
                thread.start()

    def _own(self, number: int) -> None:
        place: Place | None = None
        posed_before: tuple[bytes, Task] | None = None
        while True:
            with self._changed:
                while not self._closed and not any(q.left for q in self._waiting):
                    self._changed.wait()
                if self._closed:
                    break
                question = next(q for q in self._waiting if q.left)
                self._waiting.rotate(-1)  # questions of several threads take turns
                batch = question.take(self._share(number))
                question.under_way += 1
            gone, start = False, perf_counter()
            try:
                if place is None:
                    place, posed_before = self._back_end.open(number, "answers"), None
                about = question.model, question.task
                posed = self._posed(place, question, batch, new=about != posed_before)
                posed_before = about
            except PlaceGone as problem:
                gone, place = True, None
                posed = Posed({}, problem)
            except Exception as problem:
                posed = Posed({}, problem)
            with self._changed:
                question.under_way -= 1
                if posed.answers:
                    rate = len(posed.answers) / max(1e-9, perf_counter() - start)
                    self._rates[number] = (self._rates.get(number, rate) + rate) / 2
                for i, answer in posed.answers.items():
                    question.arrived.append((batch[i], answer))
                if gone:
                    question.losses += 1
                    question.left.extendleft(reversed(batch))
                if posed.error is not None and (not gone or question.losses > _LOSSES * self.size):
                    question.error = posed.error if not gone else _failed(posed.error)
                    question.left.clear()
                self.batches[number] += not gone
                self._changed.notify_all()
        if place is not None:
            self._back_end.give_back(number, "answers", place)

    def _share(self, number: int) -> float:
        """The share of all answers that an owner gives, by its speed so far."""
        if len(self._rates) < 2 or number not in self._rates:
            return 1 / self.size
        usual = sum(self._rates.values()) / len(self._rates)
        return self._rates[number] / (usual * self.size)

    def _posed(self, place: Place, question: Question, batch: list[int], *, new: bool) -> Posed:
        values = [question.values[i] for i in batch]
        message = Pose((question.model, question.task) if new else None, values)
        reply = decoded(place.call(encoded(message)))
        return reply if isinstance(reply, Posed) else Posed({}, reply.error)


def _failed(problem: BaseException) -> ModelFailed:
    return ModelFailed(
        f"workers of the cluster end again and again while they ask the model ({problem})",
        hint="Is there memory for a model in each? bf.connect(…, cluster='local:2') has fewer.",
        retryable=True,
    )


class OwnedModel:
    """A model that the workers of a cluster hold; ``inner`` is the same model in the
    session: it answers nothing, and has the properties that are known without a request."""

    def __init__(self, inner: Model, spec: object, options: Options, owners: Owners) -> None:
        self.inner = inner
        self._model, self._owners = encoded((spec, options)), owners

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size * self._owners.size

    @property
    def abilities(self) -> Abilities:
        own = abilities_of(self.inner)
        return replace(own, at_once=own.at_once * self._owners.size)

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        return self.answer_each(task, values, ignore_answer)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}

        def arrived(place: int, answer: Answer) -> None:
            answers[place] = answer
            on_answer(place, answer)

        most, least = self.inner.batch_size, abilities_of(self.inner).at_once
        question = Question(self._model, task, values, most, least)
        self._owners.pose(question, arrived)
        return [answers[place] for place in range(len(values))]

    def close(self) -> None:
        self.inner.close()
