"""Runs the fragments of a stage in the workers, as fast as they take them, and yields rows in the
order of the files."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import nullcontext

import pyarrow as pa

from blendfusion.errors import BlendFusionError, BudgetExceeded
from blendfusion.models.protocol.model import Values
from blendfusion.run.execution.pipeline import Counts
from blendfusion.services.cluster import protocol
from blendfusion.services.cluster.messages import (
    Begin,
    Cancel,
    Continue,
    FindRoute,
    Fragment,
    FragmentEnd,
    LostOwner,
    Message,
    NewValues,
    Reply,
    Rows,
    Wants,
    decode_message,
    encode_message,
)
from blendfusion.services.cluster.protocol import ROWS, BackEnd, Place, PlaceGone
from blendfusion.services.cluster.range_questions import RangeRun, seconds_to
from blendfusion.types import Answer
from blendfusion.udfs.ask.dispatcher import Dispatcher

_WAIT_SECONDS = 0.1
_LOSSES = 5
"""Workers that a fragment may lose before its query fails."""
_AHEAD = 4
"""Fragments for each worker that may be complete before the rows of an earlier one are read."""


class Tasks:
    """The fragments of one stage. An iteration of ``tables`` runs them."""

    def __init__(
        self,
        fragments: Sequence[Fragment],
        back_end: BackEnd,
        dispatcher: Dispatcher,
        counts: Counts,
        ranged: RangeRun,
    ) -> None:
        self._fragments, self._back_end = fragments, back_end
        self._dispatcher, self._counts = dispatcher, counts
        self._changed = threading.Condition()
        self._complete: dict[int, list[pa.Table]] = {}
        self._begun = self._read = 0
        self._again: list[int] = []
        """Fragments whose worker is gone."""
        self._losses = [0] * len(fragments)
        self._error: BaseException | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._ranged = ranged
        self._flights: dict[object, set[Values]] = {}
        """The values that fragments wait for, by task and call."""

    def tables(self) -> Generator[pa.Table, None, None]:
        """The rows of all fragments, in order. Raises what a fragment or a question raised."""
        places = [(worker, lane) for lane in ROWS for worker in range(self._back_end.size)]
        threads = [
            threading.Thread(target=self._work, args=place, daemon=True)
            for place in places[: len(self._fragments)]
        ]
        for thread in threads:
            thread.start()
        try:
            some, empty = False, None
            for number in range(len(self._fragments)):
                for table in self._take(number):
                    if len(table):
                        some = True
                        yield table
                    else:
                        empty = table
            if not some and empty is not None:
                yield empty
        except BaseException as problem:
            out_of_time = isinstance(problem, BudgetExceeded) and problem.limit == "seconds"
            interrupted = isinstance(problem, KeyboardInterrupt | GeneratorExit)
            self._end(threads, at_once=out_of_time or interrupted)
            raise
        else:
            self._end(threads)

    def _end(self, threads: list[threading.Thread], *, at_once: bool = False) -> None:
        """Batches under way end, and are counted; ``at_once``: those that end soon. Then a thread
        that a back end holds up is left behind: it finds that nobody waits for it."""
        until = time.monotonic() + protocol.LEAVE_SECONDS if at_once else math.inf
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        try:
            with self._back_end.ending() if at_once else nullcontext():
                self._ranged.end(until)
                for thread in threads:
                    thread.join(seconds_to(until))
        except KeyboardInterrupt:
            if not at_once:
                self._end(threads, at_once=True)
            raise

    def _take(self, number: int) -> list[pa.Table]:
        """The rows of a fragment, once it is complete."""
        while True:
            with self._changed:
                problem = self._error or self._ranged.error
                if problem is not None:
                    raise problem
                if number in self._complete:
                    self._read = number + 1
                    self._changed.notify_all()
                    return self._complete.pop(number)
                self._changed.wait(_WAIT_SECONDS)
            self._ranged.recount_if_idle()
            if self._dispatcher.ledger.is_late():
                raise self._dispatcher.ledger.out_of_time(self._ranged.count_left)

    def _work(self, worker: int, lane: str) -> None:
        place: Place | None = None
        try:
            while (number := self._next()) is not None:
                try:
                    if place is None:
                        place = self._back_end.open(worker, lane)
                    tables = self._run(place, self._fragments[number])
                except PlaceGone as problem:
                    place = None
                    self._return(number, problem)
                    continue
                with self._changed:
                    self._complete[number] = tables
                    self._changed.notify_all()
        except BaseException as problem:
            with self._changed:
                self._error = self._error or problem
                self._changed.notify_all()
        finally:
            if place is not None:
                self._back_end.give_back(worker, lane, place)

    def _next(self) -> int | None:
        """The next fragment; None after the last, or where nobody wants more."""
        with self._changed:
            while True:
                if self._closed or self._error is not None:
                    return None
                if self._again:
                    return self._again.pop(0)
                if self._begun < min(
                    len(self._fragments), self._read + _AHEAD * self._back_end.size
                ):
                    self._begun += 1
                    return self._begun - 1
                if self._read == len(self._fragments):
                    return None
                self._changed.wait()

    def _return(self, number: int, problem: PlaceGone) -> None:
        """A worker is gone with a fragment: another one gets it."""
        with self._changed:
            self._losses[number] += 1
            if self._losses[number] > _LOSSES:
                raise BlendFusionError(
                    f"workers of the cluster end again and again on one file ({problem})",
                    hint="Is there memory for it? Smaller files, or fewer workers, need less.",
                )
            self._again.append(number)
            self._changed.notify_all()
        self._ranged.recount()

    def _run(self, place: Place, fragment: Fragment) -> list[pa.Table]:
        tables: list[pa.Table] = []
        reply = _send(place, Begin(fragment))
        while not isinstance(reply, FragmentEnd):
            try:
                message = self._message(reply, tables)
            except BaseException as problem:
                _send(place, Cancel())
                if isinstance(problem, _NotWanted):
                    return []
                raise
            reply = _send(place, message)
        if reply.error is not None:
            raise reply.error
        if reply.counts is None:  # owners have ended
            return []
        self._note(reply, reply.counts)
        return tables

    def _message(self, reply: Reply, tables: list[pa.Table]) -> Message:
        """The message to a worker that runs a fragment, after its reply; rows go to ``tables``."""
        if self._closed or self._error is not None:
            raise _NotWanted
        if isinstance(reply, FindRoute):
            return self._ranged.route(reply.call, reply.task)
        if isinstance(reply, NewValues):
            return self._ranged.add(reply)
        if isinstance(reply, LostOwner):
            return self._ranged.replace_owner(reply)
        if isinstance(reply, Rows):
            tables.append(reply.table)
            return Continue()
        assert isinstance(reply, Wants)
        return Continue(self._answers(reply))

    def _answers(self, wants: Wants) -> list[Answer]:
        """The answers to the values of a fragment. Of equal values that several fragments want at
        a time, one goes out: a failure, which no store keeps, is not tried again either."""
        dispatcher, values = self._dispatcher, wants.values
        with self._opening:  # a model is looked up once
            if dispatcher.certain(wants.task) is None:
                dispatcher.model_of(wants.call)
        flight = self._flights.setdefault((wants.task, wants.call), set())
        with self._changed:
            mine = [value for value in values if value not in flight]
            flight.update(mine)
        try:
            if mine:
                dispatcher.ask(wants.task, mine, wants.call, stops=wants.stops)
        finally:
            with self._changed:
                flight.difference_update(mine)
                self._changed.notify_all()
        if len(mine) < len(values):
            with self._changed:
                while self._error is None and not flight.isdisjoint(values):
                    self._changed.wait(_WAIT_SECONDS)
        return dispatcher.ask(wants.task, values, wants.call, stops=wants.stops)

    def _note(self, done: FragmentEnd, more: Counts) -> None:
        observer, counts = self._dispatcher.observer, self._counts
        with self._changed:
            counts.rows_in += more.rows_in
            counts.passed += more.passed
            counts.rows_out += more.rows_out
            counts.chunks += more.chunks
            counts.seconds += more.seconds
            self._ranged.moved += done.moved
        for task, failed in done.failures.items():
            observer.note_failures(task, failed)
        for call, values in done.withheld.items():
            observer.on_withheld(call, sorted(values, key=str))


class _NotWanted(Exception):
    """The rows of a fragment are not wanted any more."""


def _send(place: Place, message: Message) -> Reply:
    reply: Reply = decode_message(place.call(encode_message(message)))
    return reply
