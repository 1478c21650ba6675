"""The dispatcher of a fragment: owners of ranges answer its values, or the session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn
from weakref import WeakValueDictionary

from blendfusion.errors import ModelNotFound
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.answer_spill import ENTRY_BYTES, MEGABYTE
from blendfusion.models.stores.in_flight import UNDER_WAY
from blendfusion.services.cluster.messages import (
    Continue,
    FindRoute,
    Fragment,
    LostOwner,
    Message,
    NewValues,
    Reply,
    Route,
    Wants,
)
from blendfusion.services.cluster.peers import Peers, RangeAnswers
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.call import Call


class Memory:
    """The answers that this process got in one run, up to ``most_mb`` megabytes: each value travels
    once, not once a file."""

    def __init__(self, run: str, most_mb: int) -> None:
        self.run = run
        self.answers: dict[tuple[Task, Call | None], dict[Values, Answer]] = {}
        self.routes: dict[tuple[Task, Call | None], Route] = {}
        self.room = most_mb * MEGABYTE // ENTRY_BYTES

    def keep(self, known: dict[Values, Answer], new: Mapping[Values, Answer]) -> None:
        """Add answers to those to one question, while there is room."""
        if len(new) <= self.room:
            known.update(new)
            self.room -= len(new)


_MEMORIES: WeakValueDictionary[str, Memory] = WeakValueDictionary()
"""The memories of the runs in this process, which may hold several places."""


def memory_of(run: str, most_mb: int = 0) -> Memory:
    return _MEMORIES.setdefault(run, Memory(run, most_mb))


class RemoteDispatcher(Dispatcher):
    """Lets the session ask: there, each distinct value goes out once, within the budget."""

    def __init__(
        self,
        step: Callable[[Reply], Message],
        fragment: Fragment,
        noted: RunNotes,
        memory: Memory,
        peers: Peers,
    ) -> None:
        options = fragment.options
        super().__init__(_no_model, noted, options.on_error, options.redaction)
        self._step, self._memory = step, memory
        self._ranged = RangeAnswers(peers, self._route)

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
        memory, since = self._memory, UNDER_WAY.ended
        known = memory.answers.setdefault((task, call), {})
        found: dict[Values, Answer] = {}

        def look(some: list[Values], others: dict[Values, Answer]) -> list[Values]:
            found.update((v, known[v]) for v in some if v in known)
            found.update((v, others.pop(v)) for v in some if v in others)
            return [v for v in some if v not in found]

        def ask(some: list[Values], given: dict[Values, Answer]) -> None:
            given.update(zip(some, self._ask_owners(call, task, some, stops), strict=True))
            memory.keep(known, given)
            found.update(given)

        missing = look([*dict.fromkeys(values)], {})
        UNDER_WAY.settle((memory, task, call), missing, look, ask, since)
        if stops and call is not None and self.policy(call) == "raise":
            self.stop_at_failures(call, values, found)
        return [found[value] for value in values]

    def _ask_owners(
        self, call: Call | None, task: Task, values: list[Values], stops: bool
    ) -> list[Answer]:
        """The answers that the owners of the values' ranges give, or the session."""
        routes = self._memory.routes
        route = routes.get((task, call))
        if route is None:
            route = routes[task, call] = self._route(FindRoute(call, task))
        if not route.addresses:
            reply = self._step(Wants(call, task, values, stops))
            assert isinstance(reply, Continue)
            assert reply.answers is not None
            return reply.answers
        routes[task, call], found = self._ranged.answers(route, values)
        return [found[value] for value in values]

    def _route(self, message: FindRoute | NewValues | LostOwner) -> Route:
        reply = self._step(message)
        assert isinstance(reply, Route)
        return reply


class RunNotes(NullObserver):
    """Keeps what the run of the session is to know at the end."""

    def __init__(self) -> None:
        self.failures: dict[Task, dict[Values, Answer]] = {}
        self.withheld_values: dict[Call, set[Values]] = {}

    def note_failures(self, task: Task, failed: Mapping[Values, Answer]) -> None:
        self.failures.setdefault(task, {}).update(failed)

    def on_withheld(self, call: Call, values: Sequence[Values]) -> None:
        self.withheld_values.setdefault(call, set()).update(values)


def _no_model() -> NoReturn:
    """Only the session knows the model, and which answers are stored."""
    raise ModelNotFound("a worker asks no model for its rows")
