"""The models of all workers: threads here, each with a place there, pull batches from a queue."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from blendfusion.errors import ModelFailed, connect_with
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.allowance import OutOfTimeError, check_time
from blendfusion.models.protocol.model import Model, OnAnswer, StreamingAnswers, Values
from blendfusion.options import Options
from blendfusion.services.cluster import protocol
from blendfusion.services.cluster.messages import (
    AskedAnswers,
    FragmentEnd,
    Message,
    Pose,
    Reply,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.protocol import BackEnd, Place, PlaceGone
from blendfusion.types import Answer, ModelInfo, Task

_LOSSES = 3
"""Workers that a batch may lose before its query fails."""
_WAIT_SECONDS = 0.1
"""How long a query waits before it looks again; Ctrl-C takes effect in between."""
_PARTS = 2
"""A batch is at most the worker's share of the remaining values, divided by this."""
_LEAST = 4
"""A batch is at least the worker's share of the largest one, divided by this."""


class Question(Protocol):
    """Values that models are to be asked about. ``count_left``, ``take`` and ``fail`` are called
    under one lock."""

    about: Hashable
    """The model and the task, which a worker gets once."""
    under_way: int
    """The batches that models are asked about."""
    error: BaseException | None

    @property
    def count_left(self) -> int:
        """The number of values that are in no batch."""
        ...

    def take(self, number: int, share: float) -> Any:
        """The next batch of worker ``number``, which gives this share of all answers. May raise:
        then the question fails."""
        ...

    def asking(self, batch: Any) -> AbstractContextManager[None]:
        """Covers the time in which a model is asked."""
        ...

    def message(self, batch: Any, *, new: bool) -> Message:
        """The message for a batch; ``new``: the worker's last one was about another question."""
        ...

    def settle(self, batch: Any, reply: Reply, seconds: float) -> int:
        """Take in a reply; how many answers it has."""
        ...

    def give_back(self, batch: Any) -> None:
        """The worker is gone with a batch, whose values are left again."""
        ...

    def fail(self, error: BaseException) -> None:
        """Nothing more is asked."""
        ...


def batch_size(left: int, share: float, most: int, least: int) -> int:
    """The size of a batch of a worker that gives this share of all answers. Batches become smaller
    near the end, so that all workers end together."""
    least = max(least, round(most * share / _LEAST))
    return min(left, max(least, min(most, math.ceil(left * share / _PARTS))))


class SessionQuestion:
    """Values of the session that one caller waits for."""

    def __init__(
        self, model: bytes, task: Task, values: Sequence[Values], most: int, least: int
    ) -> None:
        self._question, self._values = (model, task), values
        self.about: Hashable = self._question
        self._left: deque[int] = deque(range(len(values)))
        self._most, self._least = most, least
        self.arrived: deque[tuple[int, Answer]] = deque()
        self.under_way = 0
        self.error: BaseException | None = None
        self._dropped = False

    @property
    def count_left(self) -> int:
        return len(self._left)

    def take(self, number: int, share: float) -> list[int]:
        """The places of a batch."""
        size = batch_size(self.count_left, share, self._most, self._least)
        return [self._left.popleft() for _ in range(size)]

    def asking(self, batch: list[int]) -> AbstractContextManager[None]:
        return nullcontext()

    def message(self, batch: list[int], *, new: bool) -> Message:
        values = [self._values[place] for place in batch]
        return Pose(self._question if new else None, values)

    def settle(self, batch: list[int], reply: Reply, seconds: float) -> int:
        if not isinstance(reply, AskedAnswers):
            assert isinstance(reply, FragmentEnd)
            assert reply.error is not None
            raise reply.error
        self.arrived.extend((batch[i], answer) for i, answer in reply.answers.items())
        if reply.error is not None:
            self.fail(reply.error)
        return len(reply.answers)

    def give_back(self, batch: list[int]) -> None:
        if not self._dropped:
            self._left.extendleft(reversed(batch))

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        self._left.clear()

    def drop(self) -> None:
        """Nobody wants the rest."""
        self._dropped = True
        self._left.clear()

    @property
    def has_ended(self) -> bool:
        return not self.under_way and not self._left


@dataclass
class _ThreadPlace:
    """A thread's place, and the question that this was asked last."""

    place: Place | None = None
    about: Hashable = None


class ModelPool:
    """Puts questions to the models of all workers. The fastest get the most."""

    def __init__(self, back_end: BackEnd) -> None:
        self._back_end = back_end
        self.changed = threading.Condition()
        """Guards the questions."""
        self._waiting: deque[Question] = deque()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._losses: WeakKeyDictionary[Question, int] = WeakKeyDictionary()
        """The workers that were gone with a batch."""
        self._rates: dict[int, float] = {}
        """Answers a second of the workers that have given some."""
        self.batches: list[int] = [0] * back_end.size
        """The batches that each worker has answered."""

    @property
    def size(self) -> int:
        return self._back_end.size

    def pose(self, question: SessionQuestion, on_answer: OnAnswer) -> None:
        """Have a question answered. Raises what a model raised, after all that arrived."""
        self.add(question)
        try:
            while True:
                with self.changed:
                    if not question.arrived and not question.has_ended:
                        self.changed.wait(_WAIT_SECONDS)
                    ended = question.has_ended
                while question.arrived:
                    on_answer(*question.arrived.popleft())
                if ended:
                    break
                check_time()
        except (KeyboardInterrupt, OutOfTimeError):
            self._end(question, on_answer)
            raise
        finally:
            self.remove(question)
        if question.error is not None:
            raise question.error

    def _end(self, question: SessionQuestion, on_answer: OnAnswer) -> None:
        """Nobody waits for a question any more. What arrives soon is taken in."""
        with self.changed:
            question.drop()
        until = time.monotonic() + protocol.LEAVE_SECONDS
        with self._back_end.ending(), self.changed:
            while question.under_way and time.monotonic() < until:
                self.changed.wait(_WAIT_SECONDS)
        while question.arrived:
            on_answer(*question.arrived.popleft())

    def add(self, question: Question) -> None:
        """Enqueue a question; the workers ask about its values until none is left."""
        with self.changed:
            self._closed = False
            self._start()
            self._waiting.append(question)
            self.changed.notify_all()

    def remove(self, question: Question) -> None:
        """Ask no more about it; what is under way ends. May be called twice."""
        with self.changed, suppress(ValueError):
            self._waiting.remove(question)

    def close(self) -> None:
        """End the threads."""
        with self.changed:
            self._closed = True
            self.changed.notify_all()
        with self._back_end.ending():
            for thread in self._threads:
                if thread is not threading.current_thread():  # which may collect a dropped session
                    thread.join()
        self._threads = []

    def _start(self) -> None:
        if not self._threads:
            self._threads = [
                threading.Thread(target=self._work, args=(number,), daemon=True)
                for number in range(self.size)
            ]
            for thread in self._threads:
                thread.start()

    def _work(self, number: int) -> None:
        held = _ThreadPlace()
        while (turn := self._next(number)) is not None:
            self._take_turn(number, held, *turn)
            del turn  # which refers to the session
        if held.place is not None:
            self._back_end.give_back(number, "answers", held.place)

    def _next(self, number: int) -> tuple[Question, Any] | None:
        """The next question and a batch of it; None if there will be no more."""
        with self.changed:
            while not self._closed:
                question = next((q for q in self._waiting if q.count_left), None)
                if question is None:
                    self.changed.wait()
                    continue
                self._waiting.rotate(-1)  # questions of several threads take turns
                try:
                    batch = question.take(number, self._share(number))
                except Exception as problem:
                    question.fail(problem)
                    self.changed.notify_all()
                    continue
                question.under_way += 1
                return question, batch
        return None

    def _take_turn(self, number: int, held: _ThreadPlace, question: Question, batch: Any) -> None:
        """Have a batch asked."""
        start, answered = perf_counter(), 0
        problem: BaseException | None = None
        try:
            with question.asking(batch):
                if held.place is None:
                    held.place, held.about = self._back_end.open(number, "answers"), None
                message = question.message(batch, new=held.about != question.about)
                held.about = question.about
                reply = decode_message(held.place.call(encode_message(message)))
                answered = question.settle(batch, reply, perf_counter() - start)
        except PlaceGone as raised:
            held.place, problem = None, raised
            question.give_back(batch)
        except Exception as raised:
            problem = raised
        with self.changed:
            question.under_way -= 1
            if answered:
                rate = answered / max(1e-9, perf_counter() - start)
                self._rates[number] = (self._rates.get(number, rate) + rate) / 2
            if isinstance(problem, PlaceGone):
                self._losses[question] = self._losses.get(question, 0) + 1
                if self._losses[question] > _LOSSES * self.size:
                    question.fail(_pool_error(problem))
            elif problem is not None:
                question.fail(problem)
            self.batches[number] += problem is None
            self.changed.notify_all()

    def _share(self, number: int) -> float:
        """The share of all answers that a worker gives, by its speed so far."""
        if len(self._rates) < 2 or number not in self._rates:
            return 1 / self.size
        usual = sum(self._rates.values()) / len(self._rates)
        return self._rates[number] / (usual * self.size)


def _pool_error(problem: BaseException) -> ModelFailed:
    return ModelFailed(
        f"workers of the cluster end again and again while they ask the model ({problem})",
        hint=f"Is there memory for a model in each? {connect_with(cluster='local:2')} has fewer.",
        retryable=True,
    )


class PooledModel(StreamingAnswers):
    """A model that the workers of a cluster hold. ``inner`` is the same model in the session, which
    answers nothing: its properties are read that are known without a request."""

    def __init__(self, inner: Model, spec: object, options: Options, pool: ModelPool) -> None:
        self.inner = inner
        self.encoded = encode_message((spec, options))
        """The model and options that a worker loads."""
        self._pool = pool

    @property
    def info(self) -> ModelInfo:
        return self.inner.info

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size * self._pool.size

    @property
    def abilities(self) -> Abilities:
        own = abilities_of(self.inner)
        return replace(own, at_once=own.at_once * self._pool.size)

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}

        def on_arrival(place: int, answer: Answer) -> None:
            answers[place] = answer
            on_answer(place, answer)

        most, least = self.inner.batch_size, abilities_of(self.inner).at_once
        question = SessionQuestion(self.encoded, task, values, most, least)
        self._pool.pose(question, on_arrival)
        return [answers[place] for place in range(len(values))]

    def close(self) -> None:
        self.inner.close()
