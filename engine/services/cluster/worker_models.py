"""Asks the models of one worker: about values that the session sends, or those of a range."""

from __future__ import annotations

from itertools import islice

from blendfusion.models.protocol.model import Model, Values, answer_each
from blendfusion.models.registry.load import load
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.services.cluster.messages import (
    AskedAnswers,
    AskRange,
    Outcome,
    Pose,
    decode_message,
)
from blendfusion.services.cluster.peers import Peers, RunEnded
from blendfusion.services.cluster.protocol import PlaceGone
from blendfusion.services.cluster.range_messages import Give, Take, TakeReply
from blendfusion.services.cluster.ranges import LOCAL_RANGES
from blendfusion.types import Answer, Task, Usage


class WorkerModels:
    """The models of one place. They load when they are asked first."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._models: dict[bytes, Model] = {}
        self._posed: tuple[bytes, Task] | None = None
        self._ranged: tuple[CachedModel, Task] | None = None

    def ask(self, message: Pose) -> AskedAnswers:
        """Ask about the values of the message."""
        arrived: dict[int, Answer] = {}
        try:
            self._posed = message.question or self._posed
            assert self._posed is not None
            name, task = self._posed
            answer_each(self._model(name), task, message.values, arrived.__setitem__)
        except Exception as problem:
            return AskedAnswers(arrived, problem)
        return AskedAnswers(arrived)

    def outcome(self, message: AskRange) -> Outcome:
        """Take values of a range, ask about them, store the answers, and give them to its owner."""
        before = self._peers.moved
        values: list[Values] = []
        arrived: dict[int, Answer] = {}
        error: BaseException | None = None
        gone = False
        try:
            model, task = self._model_of(message)
            taken = self._peers.call(
                message.address, Take(message.key, message.batch, message.most, self._peers.own)
            )
            assert isinstance(taken, TakeReply)
            values = taken.values
            model.answer_each(task, values, arrived.__setitem__)
        except RunEnded:
            pass
        except PlaceGone:
            gone = True
        except Exception as problem:
            error = problem
        try:
            if not gone:
                self._peers.call(message.address, Give(message.key, message.batch, arrived))
        except PlaceGone:
            gone = True
        except RunEnded:
            pass
        moved = self._peers.moved - before
        return _outcome(values, arrived, message.every, gone=gone, error=error, moved=moved)

    def _model(self, name: bytes) -> Model:
        model = self._models.get(name)
        if model is None:
            model = self._models[name] = load(*decode_message(name))
        return model

    def _model_of(self, message: AskRange) -> tuple[CachedModel, Task]:
        if message.question is not None:
            name, task, store = message.question
            self._ranged = CachedModel(self._model(name), LOCAL_RANGES.store(store)), task
        assert self._ranged is not None
        return self._ranged


def _outcome(
    values: list[Values],
    arrived: dict[int, Answer],
    every: int,
    *,
    gone: bool,
    error: BaseException | None,
    moved: int,
) -> Outcome:
    """Some of the answers, for the trace, with all that failed or were cut off, and the sums of the
    others."""
    places = sorted(arrived)
    listed = [*islice(places, 0, None, every)] if every else []
    seen = {*listed}
    marked = {p for p in places if arrived[p].error is not None or arrived[p].is_cut}
    failed = [p for p in places if p in marked and p not in seen]
    others = [arrived[p].usage for p in {*places} - {*listed, *failed}]
    return Outcome(
        len(places),
        {values[place]: arrived[place] for place in listed},
        {values[place]: arrived[place] for place in failed},
        Usage.total(others) if others else Usage(),
        gone,
        error,
        moved,
    )
