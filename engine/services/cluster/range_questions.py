"""Questions whose values are with owners of ranges: the session counts, and has batches asked."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Hashable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from itertools import count

from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.abilities import abilities_of
from blendfusion.models.services.shared_stores.shared_store import SharedStore
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.stores.sqlite import SqliteStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.services.cluster.messages import (
    AskRange,
    LostOwner,
    Message,
    NewValues,
    Outcome,
    Reply,
    Route,
    decode_message,
    encode_message,
    has_bytes,
)
from blendfusion.services.cluster.model_pool import ModelPool, PooledModel, batch_size
from blendfusion.services.cluster.protocol import BackEnd, Place, PlaceGone
from blendfusion.services.cluster.range_messages import (
    NO_BATCH,
    EndRange,
    Give,
    Lookup,
    OpenRange,
    Pending,
    RangeMessage,
    RangeReply,
)
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.ask.observer import Part
from blendfusion.udfs.declare.call import Call

_WAIT_SECONDS = 0.1
_IDLE_SECONDS = 1.0
"""How long a fragment waits, with nothing asked about, until owners are asked for values again."""
_LOSSES = 4
"""Owners of a range that may end one after the other."""


def seconds_to(until: float) -> float:
    """The seconds until a time of ``time.monotonic``, as locks take them."""
    return min(threading.TIMEOUT_MAX, max(0.0, until - time.monotonic()))


class RangePlaces:
    """The owners of ranges as the session reaches them. Safe to use from threads."""

    def __init__(self, back_end: BackEnd) -> None:
        self._back_end = back_end
        self._places: dict[int, Place] = {}
        self._locks = [threading.RLock() for _ in range(back_end.size)]

    @property
    def places(self) -> list[Place]:
        """The owners that were started."""
        return [*self._places.values()]

    def reach(self, store: AnswerStore) -> bool:
        """Whether workers can open a store."""
        if isinstance(store, SqliteStore):
            store.prepare()
            return self._back_end.one_machine
        return isinstance(store, SharedStore) and has_bytes(store)

    def address(self, number: int) -> str:
        """The address of an owner, which is started if need be. Raises PlaceGone."""
        with self._locks[number]:
            return self._place(number).address

    def call(self, number: int, message: RangeMessage) -> RangeReply:
        """The reply of an owner. Raises PlaceGone."""
        with self._locks[number]:
            reply: RangeReply = decode_message(self._place(number).call(encode_message(message)))
            return reply

    def replace(self, number: int, address: str) -> str:
        """The address of the owner after that at ``address``, which is gone."""
        with self._locks[number]:
            place = self._places.get(number)
            if place is not None and place.address == address:
                del self._places[number]
                place.close()
            return self._place(number).address

    def close(self) -> None:
        """Give the places back."""
        for number, place in self._places.items():
            self._back_end.give_back(number, "range", place)
        self._places = {}

    def _place(self, number: int) -> Place:
        place = self._places.get(number)
        if place is None:
            place = self._places[number] = self._back_end.open(number, "range")
        return place


@dataclass(frozen=True)
class _Batch:
    """So many values of a range that a model is asked about."""

    number: int
    range: int
    address: str
    """The address of the range's owner."""
    admitted: int
    every: int
    """One answer of so many is listed."""


class RangeQuestion:
    """The values of one call, as far as they have no answer yet: numbers by range."""

    def __init__(
        self, key: bytes, call: Call | None, job: Job, model: PooledModel, run: RangeRun
    ) -> None:
        self.key, self._call, self.job, self._run = key, call, job, run
        store = job.model.store
        task = job.task
        self._question = model.encoded, task, encode_message(store)
        self.about: Hashable = self._question
        posed = job.model.model_task(task)
        fingerprint = job.model.fingerprint
        self.lookup = Lookup(self._question[2], fingerprint, task.in_full, posed)
        self._most = model.inner.batch_size
        self._least = abilities_of(model.inner).at_once
        self.pending = [0] * run.size
        self.out = [0] * run.size
        """Batches under way, by range."""
        self._numbers = count()
        self.under_way = 0
        self.error: BaseException | None = None

    @property
    def count_left(self) -> int:
        return 0 if self.error is not None else sum(self.pending)

    def take(self, number: int, share: float) -> _Batch:
        """A batch of the worker's own range, or else of the one that has most left."""
        size = batch_size(self.count_left, share, self._most, self._least)
        chosen = number if self.pending[number] else self.pending.index(max(self.pending))
        size = min(size, self.pending[chosen])
        job = self.job
        size = self._run.dispatcher.ledger.admit(job.task, size, job.model)
        self.pending[chosen] -= size
        self.out[chosen] += 1
        address, every = self._run.addresses[chosen], self._run.dispatcher.observer.every
        return _Batch(next(self._numbers), chosen, address, size, every)

    def asking(self, batch: _Batch) -> AbstractContextManager[None]:
        return self._run.dispatcher.observer.asking(self.job, batch.admitted)

    def message(self, batch: _Batch, *, new: bool) -> Message:
        question = self._question if new else None
        return AskRange(
            question, self.key, batch.address, batch.number, batch.admitted, batch.every
        )

    def settle(self, batch: _Batch, reply: Reply, seconds: float) -> int:
        outcome = (
            reply if isinstance(reply, Outcome) else Outcome(error=getattr(reply, "error", None))
        )
        self._run.moved += outcome.moved
        try:
            part = Part(outcome.number, batch.every, outcome.listed, outcome.failed, outcome.others)
            self._count(part, batch.admitted, seconds)
        finally:
            self._end(batch)
        if outcome.error is not None:
            raise outcome.error
        if outcome.gone:
            self._run.replace(batch.range, batch.address)
        return outcome.number

    def give_back(self, batch: _Batch) -> None:
        self._run.dispatcher.ledger.settle(self.job.task, batch.admitted, [], 0.0)
        self._end(batch)
        self._run.give_back(self, batch)

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error

    def add(self, added: NewValues) -> None:
        """Queue the new values of a fragment, which waits for their answers."""
        dispatcher = self._run.dispatcher
        dispatcher.observer.expect(self.job, [added.example] * sum(added.new.values()))
        if added.hits:
            dispatcher.hits += added.hits
            rest = Usage(cached=added.hits - len(added.listed))
            listed = dispatcher.attribute(self.job.model, added.listed)
            part = Part(added.hits, added.every, listed, {}, rest)
            dispatcher.observer.partly(self.job, part, 0.0)
        with self._run.changed:
            for number, new in added.new.items():
                self.pending[number] += new
            self._run.changed.notify_all()

    def _count(self, part: Part, admitted: int, seconds: float) -> None:
        """Count a batch in the ledger and the trace. Raises AnswerError for a failure, if the call
        says so."""
        dispatcher, job = self._run.dispatcher, self.job
        listed = dispatcher.attribute(job.model, part.listed)
        failed = dispatcher.attribute(job.model, part.failed)
        rest = dispatcher.attribute(job.model, {(): Answer(None, usage=part.others)})[()]
        answers = [*listed.values(), *failed.values()]
        spent = dispatcher.ledger.settle(
            job.task, admitted, [*answers, rest] if part.others != Usage() else answers, seconds
        )
        dispatcher.tokens += spent.evaluated_tokens + spent.completion_tokens
        if part.number:
            part = Part(part.number, part.every, listed, failed, rest.usage, rest.spent)
            dispatcher.observer.partly(job, part, seconds)
        unanswered = {v: a for v, a in (listed | failed).items() if a.error is not None}
        if unanswered:
            dispatcher.learn(job, self._call, unanswered)
            if self._call is not None and dispatcher.policy(self._call) == "raise":
                dispatcher.stop_at_failures(self._call, [*unanswered], unanswered)

    def _end(self, batch: _Batch) -> None:
        with self._run.changed:
            self.out[batch.range] -= 1
            self._run.changed.notify_all()


class RangeRun:
    """The questions of one stage whose values are with owners."""

    def __init__(self, places: RangePlaces, pool: ModelPool, dispatcher: Dispatcher) -> None:
        self._places, self._pool, self.dispatcher = places, pool, dispatcher
        self.changed = pool.changed
        self.size = pool.size
        self.addresses = [""] * self.size
        self.moved = 0
        """Bytes between workers."""
        self._questions: dict[tuple[Task, Call | None], RangeQuestion | None] = {}
        self._by_key: dict[bytes, RangeQuestion] = {}
        self._opening = threading.Lock()
        self._ended = False
        self._asked = time.monotonic()
        """The time of the last question under way, or of the last count for want of one."""

    @property
    def error(self) -> BaseException | None:
        """The error that ended a question."""
        return next((q.error for q in [*self._by_key.values()] if q.error is not None), None)

    @property
    def count_left(self) -> int:
        """The number of values that are not sent to a model."""
        return sum(question.count_left for question in [*self._by_key.values()])

    def route(self, call: Call | None, task: Task) -> Route:
        """The owners whose workers answer a call; an empty route for a call that the session
        answers."""
        with self._opening:
            if (task, call) not in self._questions:
                self._questions[task, call] = self._open_question(call, task)
            question = self._questions[task, call]
        return Route() if question is None else self._route(question)

    def add(self, added: NewValues) -> Route:
        """Add a fragment that waits for answers."""
        question = self._by_key[added.key]
        question.add(added)
        return self._route(question)

    def replace_owner(self, gone: LostOwner) -> Route:
        """A fragment has found an owner gone."""
        self.replace(gone.number, gone.address)
        return self._route(self._by_key[gone.key])

    def give_back(self, question: RangeQuestion, batch: _Batch) -> None:
        """The worker that had a batch is gone."""
        if self._ended:
            return
        try:
            reply = self._places.call(batch.range, Give(question.key, batch.number))
        except PlaceGone:
            self.replace(batch.range, batch.address)
        else:
            self._recount(question, batch.range, reply)

    def recount(self) -> None:
        """A fragment is gone, perhaps after owners had its values and before the session knew."""
        for question in [*self._by_key.values()]:
            for number in range(self.size) if not self._ended else ():
                with suppress(PlaceGone):  # whoever waits for it will find out
                    reply = self._places.call(number, Give(question.key, NO_BATCH))
                    self._recount(question, number, reply)

    def recount_if_idle(self) -> None:
        """Ask owners for values again, where a fragment waits and nothing has been asked about for
        ``_IDLE_SECONDS``: values that a lost worker had sent may reach their owner behind
        ``recount``, and no worker is left to report them."""
        with self.changed:
            questions = [*self._by_key.values()]
            busy = any(question.count_left or any(question.out) for question in questions)
            idle = not busy and time.monotonic() - self._asked > _IDLE_SECONDS
            if busy or idle:
                self._asked = time.monotonic()
        if idle:
            self.recount()

    def replace(self, number: int, address: str) -> None:
        """The owner at this address is gone: another one takes over, once nobody asks about a value
        of the range any more. Then the store has all answers."""
        with self._opening:
            if self.addresses[number] != address or self._ended:
                return
            with self.changed:
                for question in self._by_key.values():
                    question.pending[number] = 0
                while any(question.out[number] for question in self._by_key.values()):
                    self.changed.wait(_WAIT_SECONDS)
            self._open(number, [*self._by_key.values()], address)

    def end(self, until: float = math.inf) -> None:
        """Nobody wants more answers. Batches under way end, and are counted, and so are owners, as
        far as they do by ``until``, a time of ``time.monotonic``."""
        self._ended = True
        if self._opening.acquire(timeout=seconds_to(until)):  # who opens a range has ended, too
            self._opening.release()
        for question in self._by_key.values():
            self._pool.remove(question)
            with self.changed:
                while question.under_way and time.monotonic() < until:
                    self.changed.wait(_WAIT_SECONDS)
            for number in range(self.size):
                if time.monotonic() < until:
                    with suppress(PlaceGone):
                        self._places.call(number, EndRange(question.key))

    def _route(self, question: RangeQuestion) -> Route:
        return Route(question.key, tuple(self.addresses), self.dispatcher.observer.every)

    def _open_question(self, call: Call | None, task: Task) -> RangeQuestion | None:
        dispatcher = self.dispatcher
        if dispatcher.certain(task) is not None:
            return None
        model = dispatcher.model_of(call)
        if type(model) is not CachedModel or not isinstance(model.inner, PooledModel):
            return None
        if not self._places.reach(model.store):
            return None
        names = () if call is None else call.models
        question = RangeQuestion(
            secrets.token_bytes(8), call, Job(task, model, names), model.inner, self
        )
        for number in range(self.size):
            self._open(number, [question])
        self._by_key[question.key] = question
        self._pool.add(question)
        return question

    def _open(self, number: int, questions: list[RangeQuestion], before: str | None = None) -> None:
        """Let the owner of a range take values of questions: the one after that at ``before``, and
        another one if that is gone too. Raises ModelFailed."""
        for _ in range(_LOSSES):
            try:
                if before is not None:
                    questions = [*{*self._by_key.values(), *questions}]
                    self.addresses[number] = self._places.replace(number, before)
                elif not self.addresses[number]:
                    self.addresses[number] = self._places.address(number)
                for question in questions:
                    spill = self.dispatcher.spill
                    message = OpenRange(question.key, question.lookup, spill.most_mb, spill.folder)
                    self._places.call(number, message)
            except PlaceGone:
                before = self.addresses[number]
            else:
                return
        raise ModelFailed("workers of the cluster end again and again", retryable=True)

    def _recount(self, question: RangeQuestion, number: int, reply: RangeReply) -> None:
        """Note that an owner has at least this number of waiting values. A number that is too high
        does no harm."""
        if isinstance(reply, Pending):
            with self.changed:
                question.pending[number] = max(question.pending[number], reply.number)
                self.changed.notify_all()
