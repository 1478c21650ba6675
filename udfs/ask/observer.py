"""Observes what a run asks: the protocol, and an observer that does nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Task, Usage
from blendfusion.udfs.ask.cascade_outcome import CascadeOutcome
from blendfusion.udfs.ask.job import Job
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import Conflict


class StageCounts(Protocol):
    """The counts of a stage so far: rows in and out, chunks, and seconds of its own."""

    rows_in: int
    rows_out: int
    chunks: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Part:
    """A batch of ``number`` answers, of which only some are here."""

    number: int
    every: int
    """The sampling step of the listed answers: every n-th one. 0: none."""
    listed: Mapping[Values, Answer]
    failed: Mapping[Values, Answer]
    """The answers that failed or were cut off, and are not listed."""
    others: Usage
    """The usage of all other answers,"""
    spent: tuple[tuple[str, Usage], ...] = ()
    """and by whom, as in an answer."""

    @property
    def answers(self) -> list[Answer]:
        """As many answers as are here, and one for all others."""
        return [
            *self.listed.values(),
            *self.failed.values(),
            Answer(None, usage=self.others, spent=self.spent),
        ]


class Observer(Protocol):
    """Receives requests and answers, batch by batch. Called on the thread of the requests."""

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        """Stage ``number`` (from 0) of a plan runs, perhaps with others in turn; ``counts`` grow
        with it."""
        ...

    def within(self, number: int) -> AbstractContextManager[None]:
        """Ascribes the requests inside the block to this stage."""
        ...

    def expect(self, job: Job, values: Sequence[Values]) -> None:
        """Requests about these values are about to be made."""
        ...

    def asking(self, job: Job, n: int) -> AbstractContextManager[None]:
        """Covers the time in which ``n`` requests are with a model; ``batch`` reports their outcome
        before its end."""
        ...

    @property
    def follows(self) -> bool:
        """Whether ``on_answers`` is of use."""
        ...

    def on_answers(self, n: int) -> None:
        """So many requests of the batch in flight have their answers. Called on any thread."""
        ...

    def batch(
        self, job: Job, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        """A batch was answered in ``seconds``, by the model or from its stored answers: one answer
        a tuple of values, in order."""
        ...

    @property
    def every(self) -> int:
        """The sampling step: the observer wants every n-th answer in full. 0: none."""
        ...

    def partly(self, job: Job, part: Part, seconds: float) -> None:
        """As ``batch``, of a batch that was answered elsewhere."""
        ...

    def in_vain(self, job: Job, spent: Usage) -> None:
        """Requests that failed or were cancelled without an answer took ``spent``."""
        ...

    def on_wait(self, job: Job, n: int, seconds: float) -> None:
        """After waiting for another run, which asked them first, ``n`` requests have the answers
        that it got. Told of each wait, perhaps with ``n`` 0."""
        ...

    def note_failures(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        """These values have no answer, so they are NULL in the result. May be called twice for a
        value."""
        ...

    def on_cascade(self, call: Call, outcome: CascadeOutcome) -> None:
        """A cascade has answered some values of ``call``. The sum of all outcomes is the outcome
        of the run."""
        ...

    def on_withheld(self, call: Call, values: Sequence[Values]) -> None:
        """The answers to these values are below the confidence threshold, so they are NULL in the
        result of ``call``. May be called twice for a value."""
        ...

    def on_conflicts(self, call: Call, conflicts: Sequence[Conflict]) -> None:
        """Pairs of answers to ``call`` contradict each other. May be called twice for a pair: the
        last call holds."""
        ...

    def on_unsearched(self, call: Call, values: int) -> None:
        """So many further values of ``call`` may have matches that were not looked at."""
        ...

    def on_left_out(self, words: int) -> None:
        """So many words of documents that the run reads are in no chunk. Called on any thread."""
        ...


class NullObserver:
    """Sees nothing: for plain functions outside a session."""

    def on_cascade(self, call: Call, outcome: CascadeOutcome) -> None:
        pass

    def on_withheld(self, call: Call, values: Sequence[Values]) -> None:
        pass

    def on_conflicts(self, call: Call, conflicts: Sequence[Conflict]) -> None:
        pass

    def on_unsearched(self, call: Call, values: int) -> None:
        pass

    def on_left_out(self, words: int) -> None:
        pass

    def in_vain(self, job: Job, spent: Usage) -> None:
        pass

    def on_wait(self, job: Job, n: int, seconds: float) -> None:
        pass

    every = 0

    def partly(self, job: Job, part: Part, seconds: float) -> None:
        pass

    def note_failures(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        pass

    def expect(self, job: Job, values: Sequence[Values]) -> None:
        pass

    def asking(self, job: Job, n: int) -> AbstractContextManager[None]:
        return nullcontext()

    follows = False

    def on_answers(self, n: int) -> None:
        pass

    def stage(self, number: int, counts: StageCounts) -> AbstractContextManager[None]:
        return nullcontext()

    def within(self, number: int) -> AbstractContextManager[None]:
        return nullcontext()

    def batch(
        self, job: Job, values: Sequence[Values], answers: Sequence[Answer], seconds: float
    ) -> None:
        pass
