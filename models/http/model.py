"""Models on servers with OpenAI's chat API: vLLM, SGLang, llama-server, Ollama, hosted servers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import httpx

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.http.adaptive_concurrency import InFlight
from blendfusion.models.http.address import HOSTED_URL, announce
from blendfusion.models.http.client import KEY_VARIABLE, URL_VARIABLE, Endpoint, Missing
from blendfusion.models.http.exchange import Chat, Exchange, sent_constraint
from blendfusion.models.http.rate_limit import Rate
from blendfusion.models.http.retry import Retry
from blendfusion.models.http.server_features import FormsTaken, Sampling
from blendfusion.models.http.server_kind import kind_of, offered_by, window_of
from blendfusion.models.http.structured_output import forms_named
from blendfusion.models.http.task_group import for_each
from blendfusion.models.prompts.prompt import PROMPT_VERSION
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import OnAnswer, Values, ignore_answer
from blendfusion.models.protocol.run_coroutine import run_confined
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task

__all__ = ["DEFAULT_URL", "KEY_VARIABLE", "URL_VARIABLE", "OpenAIModel"]

DEFAULT_URL = HOSTED_URL
DEFAULT_WINDOW = 8192
"""Tokens, until the server says otherwise."""

_BATCHES_IN_FLIGHT = 8
"""A batch of so many times the concurrency keeps the pipe full; the last ones wait little."""

_FRAME_BYTES, _TOKEN_BYTES = 1 << 20, 1 << 12
"""The most bytes of a reply: so many, and so many for each token with the odds of others in its
place."""

_IN_VAIN = 32
"""Values in a row, at least, that get no answer from a server that is given up for it."""


class OpenAIModel:
    """Asks a server one request a value, ``options.concurrency`` at a time: fewer while it refuses
    them, up to ``options.concurrency_most`` while it answers more of them as quickly.

    The constraint goes in the form that the server takes, found at the first request of its kind
    and remembered; every reply is checked all the same. Nothing runs between two calls of
    ``answer``: its thread and its connections end with it.

    ``window``: tokens of prompt and answer; by default what the server states when ``check`` asks
    it, else 8192. ``says_where``: the first use warns of the server's URL.
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
        says_where: bool = False,
    ) -> None:
        self._says_where = says_where
        self._options = options or Options()
        self._model = model
        in_flight = InFlight(self._options.concurrency, self._options.concurrency_most)
        self._endpoint = Endpoint(
            base_url,
            api_key,
            self._options.timeout_seconds,
            retry or Retry(attempts=1 + self._options.retries),
            most_in_vain=max(_IN_VAIN, 2 * in_flight.most),
            rate=Rate(
                self._options.requests_per_minute,
                self._options.tokens_per_minute,
                answer_tokens=self._options.max_tokens,
            ),
            in_flight=in_flight,
            most_bytes=_FRAME_BYTES + _TOKEN_BYTES * self._options.max_tokens,
        )
        self._window = window
        self._chat = Chat(
            model,
            self._endpoint,
            FormsTaken(),
            Sampling(self._options.max_tokens),
            self._options.max_tokens,
            self._options.shots,
        )

    @property
    def abilities(self) -> Abilities:
        """Where the server's model reads no images, the first image shows it. The same name at the
        same URL is the same model, as far as a client can tell."""
        return Abilities(
            at_once=self.at_once,
            call_per_value=True,
            sees_images=True,
            fingerprint_lasts=True,
            check=self.check,
        )

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
        full = self.at_once * _BATCHES_IN_FLIGHT
        # No batch should take much longer than a minute: what is between batches waits for it.
        return min(full, self._options.requests_per_minute or full)

    @property
    def at_once(self) -> int:
        """Requests in flight together take no longer than one."""
        return self._endpoint.in_flight.limit

    def count_tokens(self, text: str) -> int:
        """An upper estimate: three bytes a token, since the server's tokenizer is not here."""
        return -(-len(text.encode()) // 3)

    def close(self) -> None:
        """Nothing to free: connections end with each batch."""

    def check(self) -> None:
        """One cheap request, so that set-up errors come before a query's first value.

        Raises ``ModelFailed`` if there is no server or no access. Learns the window, and what the
        server is, where it states that.
        """
        self._announce()
        run_confined(self._look)

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        """One answer a tuple, in order; ``usage.calls`` counts HTTP requests, retries included.

        Raises ``ModelFailed`` if there is no server or no access, ``ModelNotFound`` if the server
        does not have the model.
        """
        return self.answer_each(task, values, ignore_answer)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; answers are reported in the server's order."""
        if not values:
            return []
        self._announce()
        return run_confined(lambda: self._answer_all(task, values, on_answer))

    def _announce(self) -> None:
        if self._says_where:
            announce(self._model, self._endpoint.shown)

    async def _answer_all(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}

        async def settle(place: int) -> None:
            answers[place] = await self._ask(client, task, values[place])
            on_answer(place, answers[place])

        places = range(len(values))
        self._endpoint.in_flight.expect(task)
        async with self._endpoint.client() as client:
            unseen = task.images and not self._chat.sight.proven
            if unseen or not self._chat.forms.known(sent_constraint(task)):
                # Alone, so that one request finds out what all the others may send.
                await settle(0)
                places = places[1:]
            await for_each(places, self._endpoint.in_flight.most, settle)
        return [answers[place] for place in range(len(values))]

    async def _ask(self, client: httpx.AsyncClient, task: Task, row: Values) -> Answer:
        try:
            return await Exchange(self._chat, client, task, row).answer()
        except Missing as missing:
            raise await self._not_found(client, missing) from None

    async def _look(self) -> None:
        async with self._endpoint.client() as client:
            response = await self._endpoint.get(client, "/models")
        offered = offered_by(response)
        if self._window is None:
            self._window = window_of(offered.get(self._model, {}))
        kind = kind_of(offered.values())
        if kind is not None:
            self._chat.forms.short = forms_named(kind.short_forms)

    async def _not_found(self, client: httpx.AsyncClient, missing: Missing) -> ModelNotFound:
        try:
            offered = offered_by(await self._endpoint.get(client, "/models"))
        except ModelFailed:
            offered = {}
        url = self._endpoint.shown
        if offered:
            return ModelNotFound(
                f"{url} has no model {self._model} ({missing})",
                hint=f"It offers: {', '.join(sorted(offered)[:20])}.",
                foreign=True,
            )
        return ModelNotFound(
            f"{url} knows neither the model {self._model} nor a list of its models ({missing})",
            hint="The URL of an OpenAI-compatible server mostly ends in /v1.",
            foreign=True,
        )
