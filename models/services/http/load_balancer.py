"""One model on several servers: every value goes to the server that has the least to do."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from blendfusion.errors import ModelError, ModelFailed
from blendfusion.models.protocol import event_fields as f
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.events import log
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.services.http.api import OPENAI, Api
from blendfusion.models.services.http.client import Missing
from blendfusion.models.services.http.exchange import Exchange
from blendfusion.models.services.http.model import (
    DEFAULT_WINDOW,
    OpenAIModel,
    fingerprint,
    rounds_a_batch,
)
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server import Server
from blendfusion.models.services.http.server_choice import Balance, Place
from blendfusion.models.services.http.server_file import ServerFile
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.services.http.task_requests import TaskRequests
from blendfusion.models.services.http.transport import Client
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

_ONCE = Retry(attempts=2, base_seconds=0.2, most_seconds=0.0)
"""One more try, at once: then another server is asked instead."""
_IN_VAIN = 1_000_000_000
"""Values in a row without an answer: here, each of them leaves the server out already."""
_TOO_MANY = "429"
_BACKOFF_SECONDS = 0.1
_SLICE_SECONDS = 0.2
"""How often a value looks for room that another thread has made, and whether it is late."""
_WOKEN = 2
"""So many values look for room where a request has ended: a server may take more than before."""


@dataclass(slots=True)
class _Run:
    """One batch: its clients by the number of their server, which end with it, and the values that
    wait for room."""

    task: Task
    stack: AsyncExitStack
    clients: dict[int, Client] = field(default_factory=dict)
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)
    _requests: dict[int, TaskRequests] = field(default_factory=dict)

    def requests_to(self, place: Place) -> TaskRequests:
        """The requests to a server."""
        found = self._requests.get(place.number)
        if found is None:
            found = self._requests[place.number] = TaskRequests(place.server.chat, self.task)
        return found

    def client(self, place: Place) -> Client:
        """The client of a server."""
        client = self.clients.get(place.number)
        if client is None:
            place.server.endpoint.in_flight.expect(self.task)
            client = self.clients[place.number] = place.server.endpoint.client()
            client.open()
            self.stack.push_async_callback(client.close)
        return client

    async def turn(self) -> None:
        """Wait until a request has ended, for at most ``_SLICE_SECONDS``."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.waiting.append(turn)
        try:
            await asyncio.wait({turn}, timeout=_SLICE_SECONDS)
        finally:
            if turn in self.waiting:
                self.waiting.remove(turn)

    def wake_waiting(self) -> None:
        """Let waiting requests look for room, since a request has ended."""
        for _ in range(min(_WOKEN, len(self.waiting))):
            turn = self.waiting.popleft()
            if not turn.done():
                turn.set_result(None)


class BalancedModel(StreamingAnswers):
    """Servers of one model, as one. ``concurrency`` holds for each of them.

    The servers count as equal. The identity of the model, for stored answers, is that of the first
    URL: further servers come and go without a change of it. A server that fails or does not answer
    in time is left to itself, and its values are asked elsewhere; there is an error only if no
    server is left.

    ``urls`` may be a file that lists them: servers come and go with its lines, within a second and
    while a query runs. The identity is then that of the file's name.
    """

    def __init__(
        self,
        model: str,
        urls: Sequence[str] | ServerFile,
        api_key: str | None = None,
        options: Options | None = None,
        *,
        api: Api = OPENAI,
        patience_seconds: float = 60.0,
    ) -> None:
        self._options = options or Options()
        self._model, self._api = model, api
        self._key = api_key
        self._patience_seconds = patience_seconds
        self._file = urls if isinstance(urls, ServerFile) else None
        self._urls = urls.urls() if isinstance(urls, ServerFile) else [*urls]
        self._balance = Balance([(url, self._server(url)) for url in self._urls])
        self._outages: dict[str, None] = {}

    def _server(self, url: str) -> Server:
        return Server.at(
            url,
            self._model,
            self._key,
            self._options,
            _ONCE,
            api=self._api,
            most_in_vain=_IN_VAIN,
        )

    @property
    def _servers(self) -> list[Server]:
        """The servers as they are by now."""
        self._follow()
        return [place.server for place in self._balance.places]

    def _follow(self) -> None:
        """Follow the file, if there is one."""
        urls = self._urls if self._file is None else self._file.urls()
        if urls != self._urls:
            self._balance.keep(urls, self._server)
            self._urls = urls

    def __repr__(self) -> str:
        return f"BalancedModel({self._model!r}, {[server.url for server in self._servers]!r})"

    @property
    def info(self) -> ModelInfo:
        servers = self._servers
        windows = [server.window for server in servers if server.window]
        names = ",".join(server.url for server in servers) if self._file is None else self._file.url
        first = servers[0].url if self._file is None else self._file.url
        return ModelInfo(
            name=f"{self._api.name}:{self._model}@{names}",
            fingerprint=fingerprint(self._api.name, first, self._model, self._options),
            window=min(windows, default=DEFAULT_WINDOW),
            settings={
                "max_tokens": str(self._options.max_tokens),
                "concurrency": f"{self._options.concurrency} × {len(servers)}",
            },
        )

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            at_once=self.at_once,
            call_per_value=True,
            sees_images=True,
            hears_audio=self._api.name == "openai",
            fingerprint_lasts=True,
            check=self.check,
            form_search=self._form_search,
            shots=self._servers[0].chat.shots,
        )

    def _form_search(self, task: Task) -> int:
        return sum(server.form_search(task) for server in self._servers)

    @property
    def at_once(self) -> int:
        """Requests in flight together, on all servers."""
        return sum(server.endpoint.in_flight.limit for server in self._servers)

    @property
    def batch_size(self) -> int:
        known = [server.endpoint.in_flight.seconds for server in self._servers]
        full = self.at_once * rounds_a_batch(max((s for s in known if s), default=None))
        return min(full, self._options.requests_per_minute * len(self._urls) or full)

    @property
    def outages(self) -> tuple[str, ...]:
        """Messages about servers that failed since the last ``check``."""
        return tuple(self._outages)

    count_tokens = OpenAIModel.count_tokens

    def close(self) -> None:
        """Nothing to free: connections end with each batch."""

    def check(self) -> None:
        """Begin a run: ask every server for its models. Raises ``ModelFailed`` if no server can be
        reached."""
        self._balance.begin()
        self._outages.clear()
        self._follow()
        run_confined(self._look)

    async def _look(self) -> None:
        async def look(place: Place) -> None:
            try:
                await place.server.look()
            except ModelError as problem:
                self._leave_out(place, problem)

        await asyncio.gather(*map(look, self._balance.places))
        problems = [place.problem for place in self._balance.places]
        if all(problems):
            raise self._none_left()

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``OpenAIModel.answer_each``, in the servers' order. Raises ``ModelFailed`` if no
        server is left."""
        if not values:
            return []
        return run_confined(lambda: self._answer_all(task, values, on_answer))

    async def _answer_all(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}
        async with AsyncExitStack() as stack:
            run = _Run(task, stack)

            async def settle(number: int) -> None:
                answers[number] = await self._ask(run, task, values[number])
                on_answer(number, answers[number])

            most = sum(server.endpoint.in_flight.most for server in self._servers)
            await for_each(range(len(values)), most, settle)
        return [answers[number] for number in range(len(values))]

    async def _ask(self, run: _Run, task: Task, row: Values) -> Answer:
        """The answer of the server with the least load, or of another one if that fails."""
        spent, tried = Usage(), 0
        while True:
            place = await self._room(run, task, row)
            answer, problem = await self._first(run, place, task, row)
            if answer is not None:
                both = answer.usage + spent
                return answer.with_usage(replace(both, values=1, failed=answer.usage.failed))
            assert problem is not None
            if isinstance(problem, _NoAnswer):
                spent += problem.spent
                tried += 1
                if tried > self._options.retries:
                    failed = Answer.failed(problem.message)
                    return failed.with_usage(replace(spent, values=1, failed=1))
                await asyncio.sleep(random.uniform(0, _BACKOFF_SECONDS * 2.0**tried))

    async def _room(self, run: _Run, task: Task, row: Values) -> Place:
        """A server with room. Raises ``ModelFailed`` if all stay away for too long."""
        away_since: float | None = None
        patience = self._patience_seconds if self._options.retries else 0.0
        while True:
            self._follow()
            place = self._balance.take(task, row)
            if place is not None:
                return place
            if not self._balance.all_aside():
                away_since = None
            else:
                away_since = away_since or time.monotonic()
                if time.monotonic() - away_since >= patience:
                    raise self._none_left()
            await run.turn()

    async def _first(
        self, run: _Run, place: Place, task: Task, row: Values
    ) -> tuple[Answer | None, ModelError | None]:
        """The answer of ``place``, or of an idle server if that one is late; else the problem."""
        going = {asyncio.create_task(self._exchange(run, place, task, row)): place}
        begun = time.monotonic()
        spared = False
        problem: ModelError | None = None
        try:
            while going:
                ended, _ = await asyncio.wait(
                    going, timeout=_SLICE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task_of in ended:
                    of = going.pop(task_of)
                    try:
                        answer = task_of.result()
                    except ModelError as met:
                        problem = met
                        continue
                    for other in going.values():
                        self._note_loss(other)
                    calls = Usage(calls=len(going))
                    if of is not place:
                        self._balance.note_answer(of, time.monotonic() - begun)
                    return answer.with_usage(answer.usage + calls), None
                late = self._balance.late_after()
                if spared or late is None or time.monotonic() - begun < late or run.waiting:
                    continue
                spare = self._balance.take(task, row, without=[place])
                if spare is not None:
                    spared = True
                    going[asyncio.create_task(self._exchange(run, spare, task, row))] = spare
            return None, problem
        finally:
            for left in going:
                left.cancel()
            for left in going:
                with contextlib.suppress(asyncio.CancelledError, ModelError):
                    await left

    def _note_loss(self, place: Place) -> None:
        slow = ModelFailed(f"{place.server.url} answers later than the others", retryable=True)
        if self._balance.note_slow(place, slow):
            self._tell(place, slow)

    async def _exchange(self, run: _Run, place: Place, task: Task, row: Values) -> Answer:
        """Ask one server. Raises ``ModelError``, after putting the server aside if it is to
        blame."""
        with self._balance.occupy(place, run.wake_waiting):
            begun = time.monotonic()
            client = run.client(place)
            exchange = Exchange(place.server.chat, client, run.requests_to(place), row)
            try:
                answer = await exchange.answer()
            except Missing as missing:
                problem: ModelError = await place.server.not_found(client, missing)
                self._leave_out(place, problem)
                raise problem from None
            except ModelError as problem:
                self._leave_out(place, problem)
                raise
            if exchange.unanswered is not None:
                unanswered = _NoAnswer(str(answer.error), answer.usage)
                if exchange.unanswered != _TOO_MANY:  # that one is only asked less at once
                    self._leave_out(place, unanswered)
                raise unanswered
            self._balance.note_answer(place, time.monotonic() - begun)
            return answer

    def _leave_out(self, place: Place, problem: ModelError) -> None:
        if self._balance.note_failure(place, problem):
            self._tell(place, problem)

    def _tell(self, place: Place, problem: ModelError) -> None:
        url, message = place.server.url, problem.message
        self._outages[message if url in message else f"{url}: {message}"] = None
        outage = {f.REQUEST_MODEL: self._model, f.ERROR: type(problem).__name__}
        log(
            "model", logging.WARNING, "a server is left to itself, and others are asked", {**outage}
        )

    def _none_left(self) -> ModelFailed:
        problems = [place.problem for place in self._balance.places if place.problem]
        first = problems[0]
        return ModelFailed(
            f"none of the {len(self._urls)} servers of {self._model} is left: "
            + "; ".join(problem.message for problem in problems),
            hint=first.hint,
            retryable=any(isinstance(p, ModelFailed) and p.retryable for p in problems),
            foreign=True,
        )


class _NoAnswer(ModelFailed):
    """A value that a server did not answer, with its usage; never leaves this module."""

    def __init__(self, message: str, spent: Usage) -> None:
        super().__init__(message, retryable=True)
        self.spent = spent
