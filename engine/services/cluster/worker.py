"""The work of one place: it runs fragments step by step, or asks models."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue

from datafusion import SessionConfig, SessionContext

from blendfusion.datafusion.one_sort import SPLITS_SORTS
from blendfusion.datafusion.parquet_statistics import SETTING
from blendfusion.datafusion.substrait_io import batches_of, frame_of
from blendfusion.errors import BlendFusionError
from blendfusion.run.execution.expressions import RowWise
from blendfusion.run.execution.pipeline import Chunks, Counts, run
from blendfusion.run.execution.scratch_context import Workbench
from blendfusion.services import parts
from blendfusion.services.cluster.messages import (
    AskedAnswers,
    AskRange,
    Begin,
    Cancel,
    Continue,
    FileTable,
    Fragment,
    FragmentEnd,
    Message,
    Outcome,
    Pose,
    Reply,
    Route,
    Rows,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.peers import Peers, RunEnded
from blendfusion.services.cluster.protocol import Place, PlaceGone
from blendfusion.services.cluster.range_messages import RangeMessage, RangeReply
from blendfusion.services.cluster.ranges import LOCAL_RANGES
from blendfusion.services.cluster.remote_dispatcher import (
    Memory,
    RemoteDispatcher,
    RunNotes,
    memory_of,
)
from blendfusion.services.cluster.worker_models import WorkerModels
from blendfusion.services.scans.lance_table import RegisteredLance
from blendfusion.udfs.register.parse_money import parse_money_function

_TIME_ZONE = "datafusion.execution.time_zone"


class Cancellation(Exception):
    """Ends a fragment whose remaining rows are not needed."""


def _read(message: bytes) -> object:
    """A message. Raises BlendFusionError for damaged bytes: it is not this worker that is gone."""
    try:
        return decode_message(message)
    except PlaceGone as problem:
        raise BlendFusionError(str(problem)) from None


class Worker:
    """Replies to messages, one at a time; those to the owner of ranges at any time.

    ``connect`` connects to another worker by its address; ``own`` is that of this process."""

    def __init__(self, connect: Callable[[str], Place], own: str) -> None:
        self._peers = Peers(connect, own)
        self._running: _Steps | None = None
        self._worker_models = WorkerModels(self._peers)
        self._memory = memory_of("")

    def call(self, message: bytes) -> bytes:
        """The bytes of the reply to a message."""
        try:
            reply = self._reply(_read(message))
        except Exception as problem:  # a message that this process cannot read
            reply = FragmentEnd(error=problem)
        try:
            return encode_message(reply)
        except Exception:
            assert isinstance(reply, FragmentEnd | AskedAnswers | Outcome)
            return encode_message(replace(reply, error=BlendFusionError(str(reply.error))))

    def _reply(self, message: object) -> Reply | RangeReply:
        if isinstance(message, RangeMessage):
            return LOCAL_RANGES.reply(message)
        if isinstance(message, Pose):
            return self._worker_models.ask(message)
        if isinstance(message, AskRange):
            return self._worker_models.outcome(message)
        if isinstance(message, Begin):
            if message.fragment.run != self._memory.run:
                fragment = message.fragment
                self._memory = memory_of(fragment.run, fragment.options.spill_above)
            self._running = _Steps(message.fragment, self._memory, self._peers)
            return self._running.next(None)
        assert isinstance(message, Continue | Route | Cancel)
        assert self._running is not None
        return self._running.next(message)


class _Steps:
    """A fragment in a thread of its own, which waits for a message after each reply."""

    def __init__(self, fragment: Fragment, memory: Memory, peers: Peers) -> None:
        self._memory, self._peers = memory, peers
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
            raise Cancellation
        return message

    def _work(self) -> None:
        noted = RunNotes()
        counts = Counts()
        before = self._peers.moved
        try:
            self._run(counts, noted)
        except Exception as problem:
            error = problem if not isinstance(problem, Cancellation | RunEnded) else None
            self._replies.put(FragmentEnd(error=error))
            return
        # The rest of the counts are of this process alone.
        plain = Counts(
            counts.rows_in, counts.passed, counts.rows_out, counts.chunks, counts.seconds
        )
        moved = self._peers.moved - before
        self._replies.put(FragmentEnd(plain, noted.failures, noted.withheld_values, moved=moved))

    def _run(self, counts: Counts, noted: RunNotes) -> None:
        fragment = self._fragment
        functions = [make() for make in (*parts("function"), parse_money_function)]
        settings = {SETTING: "false", SPLITS_SORTS: "false"}
        if fragment.time_zone is not None:
            settings[_TIME_ZONE] = fragment.time_zone
        context = SessionContext(SessionConfig(settings).with_target_partitions(1))
        for function in functions:
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
        workbench = Workbench(functions, SessionConfig(settings))
        dispatcher = RemoteDispatcher(self._step, fragment, noted, self._memory, self._peers)
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
