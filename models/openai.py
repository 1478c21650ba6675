"""Any server with OpenAI's chat API: vLLM, llama-server, Ollama, hosted ones."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import httpx

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.confined import run_confined
from blendfusion.models.constraint import Json
from blendfusion.models.endpoint import (
    KEY_VARIABLE,
    URL_VARIABLE,
    Endpoint,
    Missing,
    Refused,
    Tally,
    Unanswered,
)
from blendfusion.models.model import Told, Values, unheard
from blendfusion.models.prompt import PROMPT_VERSION, render, replies_of
from blendfusion.models.reply import read_reply
from blendfusion.models.retry import Retry
from blendfusion.models.structured import INSTRUCTION, Form, blames_form, forms_for, wrap
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, ModelInfo, Task, Usage

__all__ = ["DEFAULT_URL", "KEY_VARIABLE", "URL_VARIABLE", "OpenAIModel"]

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_WINDOW = 8192
"""Tokens, until the server says otherwise."""

_BATCHES_IN_FLIGHT = 8
"""A batch of so many times the concurrency keeps the pipe full; the last ones wait little."""

Message: TypeAlias = dict[str, Json]


class OpenAIModel:
    """Asks a server one request a value, at most ``options.concurrency`` at a time.

    The constraint goes in the form that the server takes, found at the first request of its kind
    and remembered; every reply is checked all the same. Nothing runs between two calls of
    ``answer``: its thread and its connections end with it.

    ``window``: tokens of prompt and answer; by default what the server states when ``check`` asks
    it, else 8192.
    """

    def __init__(
        self,
        model: str,
        base_url: str = DEFAULT_URL,
        api_key: str | None = None,
        options: Options | None = None,
        *,
        retry: Retry | None = None,
        window: int | None = None,
    ) -> None:
        self._options = options or Options()
        self._model = model
        self._endpoint = Endpoint(
            base_url, api_key, self._options.timeout_seconds, retry or Retry()
        )
        self._window = window
        self._forms = _FormsTaken()
        self._sampling = _Sampling(self._options.max_tokens)

    call_per_value = True
    """A request asks for one answer."""
    fingerprint_lasts = True
    """The same name at the same URL is the same model, as far as a client can tell."""

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, {self._endpoint.shown!r})"

    @property
    def info(self) -> ModelInfo:
        url, tokens = self._endpoint.shown, self._options.max_tokens
        key = f"{url}\n{self._model}\n{tokens}\n{PROMPT_VERSION}\n{self._options.shots}"
        return ModelInfo(
            name=f"openai:{self._model}@{url}",
            fingerprint=f"openai:{hashlib.sha256(key.encode()).hexdigest()[:32]}",
            window=self._window or DEFAULT_WINDOW,
            settings={"max_tokens": str(tokens), "concurrency": str(self._options.concurrency)},
        )

    @property
    def batch_size(self) -> int:
        return self._options.concurrency * _BATCHES_IN_FLIGHT

    @property
    def at_once(self) -> int:
        """Requests in flight together take no longer than one."""
        return self._options.concurrency

    def count_tokens(self, text: str) -> int:
        """An upper estimate: three bytes a token, since the server's tokenizer is not here."""
        return -(-len(text.encode()) // 3)

    def close(self) -> None:
        """Nothing to free: connections end with each batch."""

    def check(self) -> None:
        """One cheap request, so that set-up errors come before a query's first value.

        Raises ``ModelFailed`` if there is no server or no access. Learns the window if the server
        states it.
        """
        run_confined(self._look)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        """One answer a tuple, in order; ``usage.calls`` counts HTTP requests, retries included.

        Raises ``ModelFailed`` if there is no server or no access, ``ModelNotFound`` if the server
        does not have the model.
        """
        return self.answer_each(task, values, unheard)

    def answer_each(self, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
        """As ``answer``; answers are told in the order in which the server gives them."""
        if not values:
            return []
        return run_confined(lambda: self._answer_all(task, values, told))

    async def _answer_all(self, task: Task, values: Sequence[Values], told: Told) -> list[Answer]:
        answers: dict[int, Answer] = {}
        waiting = iter(enumerate(values))

        async def settle(number: int, row: Values) -> None:
            answers[number] = await self._ask(client, task, row)
            told(number, answers[number])

        async def work() -> None:
            for number, row in waiting:
                await settle(number, row)

        async with self._endpoint.client() as client:
            if not self._forms.known(_sent(task)):
                # Alone, so that one request finds out what all the others may send.
                await settle(*next(waiting))
            workers = [
                asyncio.create_task(work())
                for _ in range(min(self._options.concurrency, len(values)))
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
        return [answers[number] for number in range(len(values))]

    async def _ask(self, client: httpx.AsyncClient, task: Task, row: Values) -> Answer:
        try:
            return await _Exchange(self, client, task, row).answer()
        except Missing as missing:
            raise await self._not_found(client, missing) from None

    async def _look(self) -> None:
        async with self._endpoint.client() as client:
            try:
                response = await client.get(f"{self._endpoint.url}/models")
            except httpx.TransportError as error:
                raise self._endpoint.down(error) from None
            self._endpoint.reached = True
            self._endpoint.check_access(response)
            if response.status_code >= 500:
                raise ModelFailed(
                    f"{self._endpoint.shown} is not ready: {self._endpoint.words(response)}",
                    retryable=True,
                )
            if self._window is None:
                self._window = _window_of(_offered(response).get(self._model, {}))

    async def _not_found(self, client: httpx.AsyncClient, missing: Missing) -> ModelNotFound:
        try:
            response = await client.get(f"{self._endpoint.url}/models")
            offered = _offered(response)
        except httpx.TransportError:
            offered = {}
        url = self._endpoint.shown
        if offered:
            return ModelNotFound(
                f"{url} has no model '{self._model}' ({missing})",
                hint=f"It offers: {', '.join(sorted(offered)[:20])}.",
            )
        return ModelNotFound(
            f"{url} knows neither the model '{self._model}' nor a list of its models ({missing})",
            hint="The URL of an OpenAI-compatible server mostly ends in /v1.",
        )


def _offered(response: httpx.Response) -> dict[str, dict[str, Json]]:
    """The entries of a /models reply by name; empty if it is no such reply."""
    try:
        entries = response.json()["data"]
        return {str(entry["id"]): dict(entry) for entry in entries}
    except (ValueError, LookupError, TypeError):
        return {}


def _window_of(entry: dict[str, Json]) -> int | None:
    meta = entry.get("meta")
    for place in (entry, meta if isinstance(meta, dict) else {}):
        for name in ("max_model_len", "context_length", "n_ctx"):  # vLLM, OpenRouter, llama-server
            stated = place.get(name)
            if isinstance(stated, int) and stated > 0:
                return stated
    return None


class _FormsTaken:
    """Which forms of structured output a server takes, for each kind of constraint."""

    def __init__(self) -> None:
        self._taken: dict[str, Form] = {}
        self._useless: set[tuple[str, Form]] = set()

    def known(self, constraint: Constraint) -> bool:
        return constraint.kind == "text" or constraint.kind in self._taken

    def candidates(self, constraint: Constraint) -> list[Form]:
        """The forms still to try, best first; from the one that was taken on, if there is one."""
        forms = [f for f in forms_for(constraint) if (constraint.kind, f) not in self._useless]
        taken = self._taken.get(constraint.kind)
        return forms[forms.index(taken) :] if taken in forms else forms

    def took(self, constraint: Constraint, form: Form) -> None:
        self._taken.setdefault(constraint.kind, form)

    def drop(self, constraint: Constraint, form: Form) -> None:
        """The server does not know ``form``, or ignored it."""
        if form is INSTRUCTION:  # there is nothing after it
            return
        self._useless.add((constraint.kind, form))
        if self._taken.get(constraint.kind) is form:
            del self._taken[constraint.kind]


class _Sampling:
    """The sampling fields of a request: greedy, less what the server says it does not know."""

    def __init__(self, max_tokens: int) -> None:
        self.fields: dict[str, Json] = {"temperature": 0, "seed": 0, "max_tokens": max_tokens}

    def adapt(self, refusal: str) -> bool:
        """Change the fields as ``refusal`` demands; False if it is about something else.

        Reasoning models of OpenAI, for one, take only their own temperature and call max_tokens
        otherwise.
        """
        if "max_completion_tokens" in refusal and "max_tokens" in self.fields:
            self.fields["max_completion_tokens"] = self.fields.pop("max_tokens")
            return True
        for name in ("temperature", "seed"):
            if f"'{name}'" in refusal and name in self.fields:
                del self.fields[name]
                return True
        return False


class _Exchange:
    """The requests made on behalf of one value."""

    def __init__(
        self, model: OpenAIModel, client: httpx.AsyncClient, task: Task, row: Values
    ) -> None:
        self._endpoint, self._forms = model._endpoint, model._forms
        self._sampling = model._sampling
        self._model, self._max_tokens = model._model, model._options.max_tokens
        self._client = client
        self._constraint, self._sent = task.constraint, _sent(task)
        prompt = render(task, shots=model._options.shots)
        turns: list[Message] = [{**turn} for turn in prompt.messages(row)]
        self._shots, self._messages = turns[:-1], turns[-1:]
        self._tally = Tally()
        self._spent = Usage(values=1)

    async def answer(self) -> Answer:
        """The answer, or why there is none; a reply outside the constraint is asked for once more."""
        try:
            reply, finish = await self._next_reply()
            answer = self._read(reply, finish)
            if answer.error is not None and finish != "length":
                self._messages = [*self._messages, *_correction(reply, self._constraint)]
                reply, finish = await self._next_reply()
                answer = self._read(reply, finish)
        except (Refused, Unanswered) as error:
            answer = Answer.failed(str(error))
        failed = 0 if answer.error is None else 1
        return answer.with_usage(self._spent + Usage(failed=failed, calls=self._tally.calls))

    async def _next_reply(self) -> tuple[str, str]:
        """The reply under the first form that the server takes, and why it ended."""
        refused = Refused("no form was tried")
        known = self._forms.known(self._sent)
        for form in self._forms.candidates(self._sent):
            try:
                reply, finish = await self._reply(form)
            except Refused as refusal:
                refused = refusal
                if known and not blames_form(str(refusal)):
                    raise
                # A known form may be fine, and only this constraint too much for it.
                if not known and blames_form(str(refusal)):
                    self._forms.drop(self._sent, form)
                continue
            if form is INSTRUCTION or finish == "length" or form.obeyed(reply, self._sent):
                self._forms.took(self._sent, form)
                return reply, finish
            self._forms.drop(self._sent, form)
        raise refused

    async def _reply(self, form: Form) -> tuple[str, str]:
        shots = self._shots
        if form.wrapped:
            shots = [_wrapped(turn, self._sent) for turn in shots]
        body: dict[str, Json] = {"model": self._model, "messages": [*shots, *self._messages]}
        body.update(form.fields(self._sent) or {})
        while True:
            try:
                reply = await self._endpoint.post(
                    self._client,
                    "/chat/completions",
                    body | self._sampling.fields,
                    self._tally,
                    final=blames_form,
                )
            except Refused as refusal:
                if self._sampling.adapt(str(refusal)):
                    continue
                raise
            self._spent += _usage_of(reply)
            return _text_of(reply)

    def _read(self, reply: str, finish: str) -> Answer:
        text = read_reply(reply, self._constraint)
        if finish == "length":
            if self._constraint.kind == "text" and text:
                return Answer(text, finish="length")
            return Answer.failed(f"cut off at {self._max_tokens} tokens")
        if text is None:
            shown = f"{reply.strip()[:80]!r}" if reply.strip() else "nothing"
            return Answer.failed(f"answered {shown}, which is not {self._constraint}")
        return Answer(text)


def _sent(task: Task) -> Constraint:
    """What the server is asked to keep to: the words of the prompt's shots (Yes and No for true and
    false), so that the prompt and the constraint never pull a model apart."""
    replies = replies_of(task)
    return Constraint("choice", options=replies) if replies else task.constraint


def _wrapped(turn: Message, constraint: Constraint) -> Message:
    """A shot's reply in the form that the server will be held to."""
    if turn["role"] != "assistant":
        return turn
    return {**turn, "content": wrap(str(turn["content"]), constraint)}


def _text_of(reply: dict[str, Json]) -> tuple[str, str]:
    """The text of a chat completion and its finish reason; raises ``Unanswered`` if it is none."""
    choices = reply.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise Unanswered("the server's reply is not a chat completion")
    content = message.get("content")
    if message.get("refusal"):
        raise Unanswered(f"the model refused: {str(message['refusal'])[:200]}")
    return content if isinstance(content, str) else "", str(choice.get("finish_reason"))


def _usage_of(reply: dict[str, Json]) -> Usage:
    stated = reply.get("usage")
    if not isinstance(stated, dict):
        return Usage()
    details = stated.get("prompt_tokens_details")
    prompt = _count(stated, "prompt_tokens")
    cached = _count(details, "cached_tokens") if isinstance(details, dict) else 0
    return Usage(
        prompt_tokens=prompt,
        evaluated_tokens=max(0, prompt - cached),
        completion_tokens=_count(stated, "completion_tokens"),
    )


def _count(stated: dict[str, Json], name: str) -> int:
    count = stated.get(name)
    return count if isinstance(count, int) else 0


def _correction(reply: str, constraint: Constraint) -> list[Message]:
    """What is said after a reply outside the constraint.

    Asking the same again would give the same: decoding is greedy.
    """
    wanted = f"That is not a valid answer. Answer with {constraint} and nothing else."
    return [{"role": "assistant", "content": reply}, {"role": "user", "content": wanted}]
