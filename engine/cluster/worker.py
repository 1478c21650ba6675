"""The work of one place: it runs fragments step by step, or asks models."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue
from typing import NoReturn
from weakref import WeakValueDictionary

from datafusion import SessionConfig, SessionContext

from blendfusion.cluster.messages import (
    Begin,
    Cancel,
    Continue,
    Done,
    FileTable,
    Fragment,
    Message,
    Offered,
    Pose,
    Posed,
    Reply,
    Rows,
    Send,
    Wants,
    decoded,
    encoded,
)
from blendfusion.cluster.offers import OFFERED_LENGTH
from blendfusion.datafusion.substrait_io import batches_of, frame_of
from blendfusion.errors import BlendFusionError, ModelNotFound
from blendfusion.execution.expressions import RowWise
from blendfusion.execution.pipeline import Chunks, Counts, run
from blendfusion.execution.scratch_context import Workbench
from blendfusion.models.protocol.model import Model, Values, answer_each
from blendfusion.models.registry.load import load
from blendfusion.models.stores.in_flight import UNDER_WAY
from blendfusion.models.stores.key import digests
from blendfusion.search.lance_table import RegisteredLance
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.register.open_during import open_during_function

_REMEMBERED = 1_000_000
"""Answers that a worker keeps of a run."""


class Cancelled(Exception):
    """Nobody wants the rest of a fragment."""


class Worker:
    """Replies to messages, one at a time."""

    def __init__(self) -> None:
        self._running: _Steps | None = None
        self._models: dict[bytes, Model] = {}
        self._question: tuple[bytes, Task] | None = None
        self._memory = _memory_of("")

    def call(self, message: bytes) -> bytes:
        """The bytes of the reply to a message."""
        try:
            reply = self._reply(decoded(message))
        except Exception as problem:  # a message that this process cannot read
            reply = Done(error=problem)
        try:
            return encoded(reply)
        except Exception:
            assert isinstance(reply, Done | Posed)
            return encoded(replace(reply, error=BlendFusionError(str(reply.error))))

    def _reply(self, message: object) -> Reply:
        if isinstance(message, Pose):
            return self._posed(message)
        if isinstance(message, Begin):
            if message.fragment.run != self._memory.run:
                self._memory = _memory_of(message.fragment.run)
            self._running = _Steps(message.fragment, self._memory)
            return self._running.next(None)
        assert isinstance(message, Continue | Send | Cancel)
        assert self._running is not None
        return self._running.next(message)

    def _posed(self, message: Pose) -> Posed:
        arrived: dict[int, Answer] = {}
        try:
            self._question = message.question or self._question
            assert self._question is not None
            name, task = self._question
            model = self._models.get(name)
            if model is None:
                model = self._models[name] = load(*decoded(name))
            answer_each(model, task, message.values, arrived.__setitem__)
        except Exception as problem:
            return Posed(arrived, problem)
        return Posed(arrived)


class _Memory:
    """The answers that this process got in one run: each value travels once, not once a file."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.answers: dict[tuple[Task, Call | None], dict[Values, Answer]] = {}
        self.room = _REMEMBERED

    def keep(self, known: dict[Values, Answer], new: Mapping[Values, Answer]) -> None:
        """Add answers to those to one question, while there is room."""
        if len(new) <= self.room:
            known.update(new)
            self.room -= len(new)


_MEMORIES: WeakValueDictionary[str, _Memory] = WeakValueDictionary()
"""The memories of the runs in this process, which may hold several places."""


def _memory_of(run: str) -> _Memory:
    return _MEMORIES.setdefault(run, _Memory(run))


class _Steps:
    """A fragment in a thread of its own, which waits for a message after each reply."""

    def __init__(self, fragment: Fragment, memory: _Memory) -> None:
        self._memory = memory
        self._replies: SimpleQueue[Reply] = SimpleQueue()
        self._messages: SimpleQueue[Message] = SimpleQueue()
        self._fragment = fragment
        threading.Thread(target=self._work, daemon=True).start()

    def next(self, message: Message | None) -> Reply:
        if message is not None:
            self._messages.put(message)
        return self._replies.get()

    def _step(self, reply: Reply) -> Message:
        self._replies.put(reply)
        message = self._messages.get()
        if isinstance(message, Cancel):
            raise Cancelled
        return message

    def _work(self) -> None:
        noted = _Noted()
        counts = Counts()
        try:
            self._run(counts, noted)
        except Exception as problem:
            error = problem if not isinstance(problem, Cancelled) else None
            self._replies.put(Done(error=error))
            return
        # The rest of the counts are of this process alone.
        plain = Counts(
            counts.rows_in, counts.passed, counts.rows_out, counts.chunks, counts.seconds
        )
        self._replies.put(Done(plain, noted.failures, noted.withheld_values))

    def _run(self, counts: Counts, noted: _Noted) -> None:
        fragment = self._fragment
        function = open_during_function()
        context = SessionContext(SessionConfig().with_target_partitions(1))
        context.register_udf(function)
        for name, table in fragment.tables.items():
            if isinstance(table, FileTable) and table.method == "register_lance":
                context.register_table(name, RegisteredLance(table.path, **table.arguments))
            elif isinstance(table, FileTable):
                method = getattr(context, table.method)
                method(name, table.path, schema=table.schema, **table.arguments)
            else:
                context.register_record_batches(name, [batches_of(table)])
        frame = frame_of(context, fragment.plan)
        batches = (batch.to_pyarrow() for batch in frame.execute_stream())
        workbench = Workbench([function])
        dispatcher = RemoteDispatcher(self._step, fragment, noted, self._memory)
        for table in run(
            fragment.block,
            Chunks(batches, frame.schema()),
            RowWise(dispatcher, lambda: workbench),
            fragment.options,
            counts,
            eager=True,
            adaptive=fragment.adaptive,
        ):
            self._step(Rows(table))


class RemoteDispatcher(Dispatcher):
    """Lets the session ask: there, each distinct value goes out once, within the budget."""

    def __init__(
        self,
        step: Callable[[Reply], Message],
        fragment: Fragment,
        noted: _Noted,
        memory: _Memory,
    ) -> None:
        options = fragment.options
        super().__init__(_no_model, noted, options.on_error, options.redaction)
        self._step, self._memory = step, memory

    def ask(
        self,
        task: Task,
        values: Sequence[Values],
        call: Call | None = None,
        *,
        sent: Task | None = None,
        stops: bool = True,
    ) -> list[Answer]:
        assert sent is None
        memory, key = self._memory, (self._memory, task, call)
        known = memory.answers.setdefault((task, call), {})
        found: dict[Values, Answer] = {}
        missing = list(dict.fromkeys(values))
        while missing:  # some of them perhaps another fragment wants in this process
            since = UNDER_WAY.ended
            found.update((v, known[v]) for v in missing if v in known)
            mine: list[Values] = []
            new: dict[Values, Answer] = {}
            try:
                UNDER_WAY.begin(key, missing, mine, found)
                if mine:
                    answers = self._wanted(call, task, mine, stops)
                    new = dict(zip(mine, answers, strict=True))
                    memory.keep(known, new)
            finally:
                UNDER_WAY.end(key, mine, new)
            found.update(new)
            missing = [v for v in missing if v not in found]
            if missing and not mine:
                UNDER_WAY.wait(since)
        return [found[value] for value in values]

    def _wanted(
        self, call: Call | None, task: Task, values: list[Values], stops: bool
    ) -> list[Answer]:
        """The answers that the session gives. It has the long values perhaps from others."""
        offered = sum(len(v) for row in values for v in row if v) >= OFFERED_LENGTH * len(values)
        if offered:
            reply = self._step(Offered(b"".join(digests(values))))
            assert isinstance(reply, Send)
            values = [values[place] for place in reply.places]
        reply = self._step(Wants(call, task, values, stops, offered))
        assert isinstance(reply, Continue)
        assert reply.answers is not None
        return reply.answers


class _Noted(NullObserver):
    """Keeps what the run of the session is to know at the end."""

    def __init__(self) -> None:
        self.failures: dict[Task, dict[Values, Answer]] = {}
        self.withheld_values: dict[Call, set[Values]] = {}

    def note_failures(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        self.failures.setdefault(task, {}).update(failed)

    def withheld(self, call: Call, values: Sequence[Values]) -> None:
        self.withheld_values.setdefault(call, set()).update(values)


def _no_model() -> NoReturn:
    """Only the session knows the model, and which answers are stored."""
    raise ModelNotFound("a worker asks no model for its rows")
