"""A decision model of a server: answers closed questions by probabilities, and writes no text."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from blendfusion.errors import ModelFailed, ModelNotFound, ModelWarning, level_of_caller
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.events import model_call
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.protocol.together import open_questions
from blendfusion.models.services.decisions.independence import differ, known_independence
from blendfusion.models.services.decisions.protocols import (
    PROTOCOLS,
    Body,
    Protocol,
    UnusableAnswerError,
    read_answers,
)
from blendfusion.models.services.decisions.question import (
    Question,
    answer_of,
    question_of,
    states_of,
    unanswerable,
)
from blendfusion.models.services.decisions.sentinels import Sentinels
from blendfusion.models.services.decisions.versions import keep_version, version_of
from blendfusion.models.services.http.address import split_name
from blendfusion.models.services.http.api import OPENAI
from blendfusion.models.services.http.client import Missing, NoAnswer, Refusal, ValueRequests
from blendfusion.models.services.http.model import OpenAIModel
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server import Server
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.services.http.transport import Client
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

_WINDOW = 32_768
"""Tokens of a state and a question: the least that a provider documents, but for short ones."""
_BATCHES_IN_FLIGHT = 8
_VERSION = "1"
"""A part of fingerprints: change it with the wording of requests."""
_FINAL = "not a decision model"
_NO_MODEL = re.compile(
    r"\bmodels?\b.*\b(unknown|unsupported|invalid|no such|not|available)\b"
    r"|\b(unknown|unsupported|invalid|no such|not)\b.*\bmodels?\b",
    re.IGNORECASE | re.DOTALL,
)
"""The words with which servers refuse a model that they do not have."""
MEASURED = 20
"""Values by which it is measured whether questions of one request are independent."""
_MOST_MOVED = 0.05
"""The share of them that may move all the same: models do not repeat themselves to the last digit.
"""
_MOST_IN_VAIN = 8
_MOST_EARLY = 100_000
"""Answers that may wait for their turn."""

_Other: TypeAlias = tuple[Question, Collection[Values]]
"""An open question, and the values that it is open about."""


@dataclass(slots=True)
class _Request:
    """A value with the question about it, and others of the same request."""

    row: Values
    state: Json
    """The value as the server reads it."""
    key: str
    """The state as a text."""
    others: list[Question] = field(default_factory=list)

    def open_of(self, others: Sequence[_Other]) -> list[Question]:
        """The questions of ``others`` that are open about the value."""
        return [question for question, rows in others if self.row in rows]

    def errand(self) -> ValueRequests:
        """A count of requests about the value, whose texts no error repeats."""
        return ValueRequests([value for value in self.row if value])


@dataclass(frozen=True, slots=True)
class _Reply:
    """The answers to the questions of one request: probabilities or problems; the model that gave
    them; and the tokens that it took."""

    odds: list[list[float] | UnusableAnswerError]
    model: str
    usage: Usage


class DecisionModel(StreamingAnswers):
    """Asks a server one request a value. A boolean is true from a probability of one half on, a
    choice is the likeliest option, the first of equals, and a score is the expected level.

    The concrete model that a reply names is a part of the fingerprint: an alias that moves to
    another model is asked anew, and a change within a run is a warning."""

    def __init__(
        self, protocol: Protocol, name: str, url: str, key: str | None, options: Options
    ) -> None:
        self._protocol, self._name, self._options = protocol, name, options
        api = replace(
            OPENAI,
            name=protocol.name,
            url=protocol.url,
            url_variable=protocol.url_variable,
            key_variables=(protocol.key_variable,),
        )
        retry = Retry(attempts=1 + options.retries)
        self._server = Server.at(url, name, key, options, retry, api=api)
        self._answering = version_of(self._server.url, name)
        """The concrete model that answered last; '' before the first reply."""
        self._extra = Usage()
        """The usage of a measurement; the next answer counts it."""
        self._lock = threading.Lock()
        self._most = protocol.most_questions
        """The most questions of a request, as far as the server took them."""
        self._apart: set[Question] = set()
        """Questions that were refused by themselves the last time, and spoil no other request."""
        self._in_vain = 0
        """Unusable answers that were no better by themselves, in a row."""
        self._independent: bool | None = None
        """Whether the questions of one request leave one another alone; None: not known yet."""
        self._sentinels = Sentinels(options.drift_checks)
        self._early: dict[tuple[Question, str], tuple[list[float], int]] = {}
        """Probabilities that came before they were asked for, by question and state, and whether
        they came beside another question."""

    def __repr__(self) -> str:
        return f"DecisionModel({self._name!r}, {self._server.url!r})"

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            at_once=self._server.endpoint.in_flight.limit,
            call_per_value=True,
            scores_options=True,
            shots=False,
            asks_together=lambda task: self._unanswerable(task) is None,
            odds_together=True,
            questions_at_once=self._most if self._is_independent else 1,
            fingerprint_lasts=True,
            unanswerable=self._unanswerable,
        )

    def _unanswerable(self, task: Task) -> str | None:
        return unanswerable(task, self._protocol.most_options)

    @property
    def _is_independent(self) -> bool:
        """Whether the questions of one request are known to leave one another alone."""
        known = self._independent
        return bool(known_independence(self._answering or self._name) if known is None else known)

    @property
    def info(self) -> ModelInfo:
        key = f"{self._server.url}\n{self._name}\n{self._answering}\n{_VERSION}"
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        return ModelInfo(
            name=f"{self._protocol.name}:{self._name}@{self._server.url}",
            fingerprint=f"{self._protocol.name}:{digest}",
            window=_WINDOW,
            settings={"answers": self._answering} if self._answering else {},
        )

    @property
    def batch_size(self) -> int:
        full = self._server.endpoint.in_flight.limit * _BATCHES_IN_FLIGHT
        return min(full, self._options.requests_per_minute or full)

    count_tokens = OpenAIModel.count_tokens

    def close(self) -> None:
        """Nothing to free: connections end with each batch."""

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; answers are reported in the server's order. A request also holds the
        open questions about its value, whose answers wait here for their turn."""
        own, problem = question_of(task), self._unanswerable(task)
        if own is None or problem:
            raise ModelFailed(f"{self.info.name} {problem}")
        if not values:
            return []
        others = [(q, rows) for t, rows in open_questions().items() if (q := question_of(t))]
        return run_confined(lambda: self._all(task, own, others, values, on_answer))

    def answer_together(
        self, tasks: Sequence[Task], values: Sequence[Values]
    ) -> list[list[Answer]]:
        """The answers of all ``tasks`` to each tuple of values, with one request a tuple, whether
        they leave one another alone or not. The usage is that of the first."""
        questions = [question for task in tasks if (question := question_of(task))]
        return run_confined(lambda: self._together(tasks, questions, values))

    async def _together(
        self, tasks: Sequence[Task], questions: Sequence[Question], values: Sequence[Values]
    ) -> list[list[Answer]]:
        found: dict[int, list[Answer]] = {}
        requests = _requests(tasks[0], values)

        async with self._server.endpoint.client() as client:

            async def ask(place: int) -> None:
                one = requests[place]
                errand = one.errand()
                try:
                    reply = await self._post(client, one.state, questions, errand)
                except (Refusal, NoAnswer, Missing) as error:
                    found[place] = [Answer.failed(str(error))] * len(tasks)
                    return
                answers = list(map(_answer, tasks, questions, reply.odds))
                spent = replace(reply.usage, values=1, calls=errand.calls)
                found[place] = [answers[0].with_usage(spent), *answers[1:]]

            await for_each(range(len(values)), self._server.endpoint.in_flight.most, ask)
        return [found[place] for place in range(len(values))]

    async def _all(
        self,
        task: Task,
        own: Question,
        others: Sequence[_Other],
        values: Sequence[Values],
        on_answer: OnAnswer,
    ) -> list[Answer]:
        requests = _requests(task, values)
        found: dict[int, Answer] = {}
        in_flight = self._server.endpoint.in_flight

        async with self._server.endpoint.client() as client:

            async def settle(place: int) -> None:
                found[place] = await self._one(client, task, own, requests[place])
                on_answer(place, found[place])

            places = range(len(requests))
            if not self._answering and known_independence(self._name) is None:
                await settle(0)  # alone: it tells which model answers
                places = places[1:]
            rest = [requests[place] for place in places]
            if others and await self._independent_at(client, own, rest, others):
                for one in rest:
                    one.others = one.open_of(others)
            await for_each(places, in_flight.most, settle)
        return [found[place] for place in range(len(requests))]

    async def _independent_at(
        self,
        client: Client,
        own: Question,
        requests: Sequence[_Request],
        others: Sequence[_Other],
    ) -> bool:
        """Whether the questions of one request leave one another alone: known of the model, or
        measured where there are values enough. Values that were measured have their answers."""
        if self._independent is None:
            self._independent = known_independence(self._answering or self._name)
        if self._independent is None and len(requests) >= 2 * MEASURED:
            some = requests[:MEASURED]
            self._independent = await self._measure(client, own, some, others)
        return self._independent is True

    async def _measure(
        self,
        client: Client,
        own: Question,
        requests: Sequence[_Request],
        others: Sequence[_Other],
    ) -> bool | None:
        """Whether the answers to the questions about some values are the same together and one by
        one; None if too few can be compared. The answers of one by one are kept."""
        compared, moved = 0, 0

        async def compare(place: int) -> None:
            nonlocal compared, moved
            one = requests[place]
            questions = [own, *one.open_of(others)]
            errand = one.errand()
            try:
                together = await self._post(client, one.state, questions, errand)
                alone = [await self._post(client, one.state, [q], errand) for q in questions]
            except (Refusal, NoAnswer, Missing):
                return  # the value is asked again, and shows it
            finally:
                self._extra += Usage(calls=errand.calls)
            self._extra += Usage.total(reply.usage for reply in (together, *alone))
            odds = [reply.odds[0] for reply in alone]
            compared += 1
            moved += any(map(differ, together.odds, odds))
            self._keep(one.key, questions, odds, beside=0)

        await for_each(range(len(requests)), self._server.endpoint.in_flight.most, compare)
        if compared < len(requests) / 2:  # the server refuses the questions together
            return None
        if moved > _MOST_MOVED * len(requests):
            warnings.warn(
                f"the questions of one request change one another's answers at {self.info.name} "
                f"({moved} of {len(requests)} values moved): each is asked by itself",
                ModelWarning,
                stacklevel=level_of_caller(),
            )
            return False
        return True

    async def _one(self, client: Client, task: Task, own: Question, one: _Request) -> Answer:
        """The answer to the question ``own`` about a value. Those to the others are kept."""
        early = self._early.pop((own, one.key), None)
        if early is not None:
            odds, beside = early
            spent, self._extra = Usage(values=1, beside=beside) + self._extra, Usage()
            return _answer(task, own, odds).with_usage(spent)
        errand = one.errand()
        try:
            questions, reply = await self._ask_beside(client, own, one, errand)
        except (Refusal, NoAnswer) as error:
            too_long = isinstance(error, Refusal) and error.too_long
            answer, spent = Answer.failed(str(error), too_long=too_long), Usage()
        except Missing as missing:
            raise self._not_there(missing) from None
        else:
            self._note(reply.model)
            self._keep(one.key, questions[1:], reply.odds[1:], beside=1)
            await self._look_again(client, one.state, own, reply)
            answer, spent = _answer(task, own, reply.odds[0]), reply.usage
        failed = int(answer.error is not None)
        return answer.with_usage(replace(spent, values=1, failed=failed, calls=errand.calls))

    async def _ask_beside(
        self, client: Client, own: Question, one: _Request, errand: ValueRequests
    ) -> tuple[list[Question], _Reply]:
        """The reply about a value, with the questions that it answers: ``own``, and of the others
        those that the server takes beside it. A server refuses whole requests: for one question of
        them, their number or their length. So no answer is lost by its company, a refused request
        is sent again with half of its questions, and what the server took counts from then on."""
        others = [q for q in one.others if q not in self._apart and (q, one.key) not in self._early]
        sent = [own] if own in self._apart else [own, *others][: self._most]
        most = 0
        while True:
            try:
                reply = await self._post(client, one.state, sent, errand)
            except Refusal as error:
                self._check_model(error)
                if len(sent) == 1:
                    self._set_apart(own)
                    raise
                sent = sent[: 1 if error.too_long else (len(sent) + 1) // 2]
                most = 0 if error.too_long else len(sent)
            except NoAnswer as error:
                if len(sent) == 1 or error.kind != "500":
                    raise
                sent = [own]
            else:
                break
        self._most = most or self._most
        if len(sent) == 1:
            self._apart.discard(own)
        elif isinstance(reply.odds[0], UnusableAnswerError) and self._in_vain < _MOST_IN_VAIN:
            with contextlib.suppress(Refusal, NoAnswer):
                alone = await self._post(client, one.state, [own], errand)
                odds, usage = [*alone.odds, *reply.odds[1:]], reply.usage + alone.usage
                reply = replace(reply, odds=odds, usage=usage)
            bad = isinstance(reply.odds[0], UnusableAnswerError)
            self._in_vain = self._in_vain + 1 if bad else 0
        return sent, reply

    def _set_apart(self, question: Question) -> None:
        """Note that a question was refused by itself. It may have been the reason for other
        refusals."""
        if question not in self._apart:
            self._apart.add(question)
            self._most = self._protocol.most_questions

    def _check_model(self, error: Refusal) -> None:
        """Raise ModelFailed or ModelNotFound where the refusal is of the model."""
        if _FINAL in error.words:
            raise ModelFailed(
                f"{self._name} at {self._server.url} answers no decisions: {error}",
                hint="A chat model is named 'openai:MODEL@URL'.",
                foreign=True,
            ) from None
        if self._is_of_model(error.words):
            raise self._not_there(error) from None

    def _is_of_model(self, words: str) -> bool:
        """Whether a server that has answered nothing yet refuses the model: no value will fare
        better. Servers say so with 400 and 422, too."""
        named = re.search(rf"(?<!\w){re.escape(self._name)}(?!\w)", words, re.IGNORECASE)
        unknown = bool(named and _NO_MODEL.search(words))
        return unknown and not self._server.endpoint.line.served

    def _not_there(self, error: Refusal | Missing) -> ModelNotFound:
        return ModelNotFound(
            f"{self._server.url} does not have {self._name} ({error})", foreign=True
        )

    async def _look_again(
        self, client: Client, state: Json, question: Question, reply: _Reply
    ) -> None:
        """Count a reply, and read an earlier state again where that is due. Warns (ModelWarning)
        where another model answers under the name that replies still give."""
        first = reply.odds[0]
        if not isinstance(first, UnusableAnswerError):
            self._sentinels.keep(state, question, first)
        if not self._sentinels.is_due(len(reply.odds)):
            return

        async def read(state: Json, question: Question) -> list[float] | None:
            errand = ValueRequests([])
            try:
                found = await self._post(client, state, [question], errand)
            except (Refusal, NoAnswer, Missing):
                return None
            finally:
                self._extra += Usage(calls=errand.calls)
            self._extra += found.usage
            return None if isinstance(found.odds[0], UnusableAnswerError) else found.odds[0]

        if await self._sentinels.has_moved(read):
            warnings.warn(
                f"{self._name} at {self._server.url} answers questions otherwise than before, under "
                f"the same name {reply.model}: answers before and after may differ",
                ModelWarning,
                stacklevel=level_of_caller(),
            )

    def _keep(
        self,
        key: str,
        questions: Sequence[Question],
        odds: Sequence[list[float] | UnusableAnswerError],
        *,
        beside: int,
    ) -> None:
        """Keep answers until they are asked for."""
        if len(self._early) > _MOST_EARLY:
            self._early.clear()
        for question, one in zip(questions, odds, strict=True):
            if not isinstance(one, UnusableAnswerError):
                self._early[question, key] = one, beside

    async def _post(
        self, client: Client, state: Json, questions: Sequence[Question], errand: ValueRequests
    ) -> _Reply:
        body = self._protocol.request(self._name, state, questions)

        def read(reply: Body) -> _Reply:
            wrapped = reply.get("result")  # Cloudflare's
            if "answers" not in reply and isinstance(wrapped, dict):
                reply = wrapped
            odds = read_answers(self._protocol, reply, questions)
            named = reply.get("model")
            return _Reply(odds, named if isinstance(named, str) else self._name, _usage(reply))

        endpoint = self._server.endpoint
        with model_call(
            self._protocol.name, self._name, server=endpoint.host, port=endpoint.port
        ) as call:
            found = await endpoint.post(
                client,
                endpoint.request(self._protocol.path, body),
                errand,
                read=read,
                final=lambda words: _FINAL in words,
            )
            call.spent = found.usage
        return found

    def _note(self, model: str) -> None:
        """Keep which model answered, and warn of a change."""
        with self._lock:
            before, self._answering = self._answering, model
        if before != model:
            keep_version(self._server.url, self._name, model)
        if before and before != model:
            warnings.warn(
                f"{self._name} at {self._server.url} was answered by {before}, and is now answered "
                f"by {model}: answers before and after may differ",
                ModelWarning,
                stacklevel=level_of_caller(),
            )


def _answer(task: Task, question: Question, odds: list[float] | UnusableAnswerError) -> Answer:
    """The answer of a reply, or its failure."""
    if isinstance(odds, UnusableAnswerError):
        return Answer.failed(str(odds))
    return answer_of(task, question, odds)


def model_named(scheme: str, argument: str, options: Options) -> DecisionModel:
    """The model of ``MODEL@URL``, or of the server that the environment names. Raises
    ModelNotFound."""
    protocol = PROTOCOLS[scheme]
    name, named = split_name(argument, scheme)
    url = named or os.environ.get(protocol.url_variable, "").strip() or protocol.url
    if not url:
        raise ModelNotFound(
            f"'{scheme}:{name}' names no server, and {protocol.url_variable} is not set",
            hint=f"Write '{scheme}:{name}@http://HOST:PORT'.",
        )
    key = os.environ.get(protocol.key_variable, "").strip() or None
    return DecisionModel(protocol, name, url.removesuffix(protocol.path), key, options)


def _requests(task: Task, values: Sequence[Values]) -> list[_Request]:
    return [
        _Request(row, state, json.dumps(state, ensure_ascii=False))
        for row, state in zip(values, states_of(task, values), strict=True)
    ]


def _usage(reply: Body) -> Usage:
    stated = reply.get("usage")
    counts = stated if isinstance(stated, dict) else {}
    details = counts.get("input_tokens_details")
    cached = _count(details if isinstance(details, dict) else {}, "cached_tokens")
    prompt = _count(counts, "input_tokens") or _count(counts, "prompt_tokens")
    completion = _count(counts, "output_tokens") or _count(counts, "completion_tokens")
    return Usage(
        prompt_tokens=prompt,
        evaluated_tokens=max(0, prompt - cached),
        completion_tokens=completion,
    )


def _count(counts: Body, name: str) -> int:
    """A count of tokens; 0 for anything that cannot be one."""
    stated = counts.get(name)
    whole = isinstance(stated, int) and not isinstance(stated, bool)
    return stated if whole and 0 <= stated < 1 << 40 else 0  # type: ignore[operator,return-value]
