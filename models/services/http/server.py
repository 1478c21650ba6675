"""One server of a model: its API, and the features it was found to have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.http.adaptive_concurrency import InFlight
from blendfusion.models.services.http.api import OPENAI, Api
from blendfusion.models.services.http.chat import Chat
from blendfusion.models.services.http.client import Endpoint, Missing, NoAnswer, Refusal
from blendfusion.models.services.http.exchange import Exchange
from blendfusion.models.services.http.questions import Questions
from blendfusion.models.services.http.rate_limit import Rate
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.sampling import Sampling
from blendfusion.models.services.http.server_features import FormsTaken
from blendfusion.models.services.http.server_kind import kind_of, offered_by, window_of
from blendfusion.models.services.http.structured_output import forms_named
from blendfusion.models.services.http.task_requests import TaskRequests, sent_constraint
from blendfusion.models.services.http.transport import Client
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.options import Options
from blendfusion.redaction import on_one_line
from blendfusion.types import Answer, Task, Usage

_FRAME_BYTES, _TOKEN_BYTES = 1 << 20, 1 << 12
"""The most bytes of a reply: so many, and so many for each token with the odds of others in its
place."""

_IN_VAIN = 32
"""Values in a row, at least, that get no answer from a server that is given up for it."""


@dataclass(slots=True)
class Server:
    """A model at one URL. ``window``: tokens of prompt and answer, known after the first
    contact."""

    chat: Chat
    window: int | None = None

    @classmethod
    def at(
        cls,
        url: str,
        model: str,
        key: str | None,
        options: Options,
        retry: Retry,
        *,
        api: Api = OPENAI,
        most_in_vain: int = _IN_VAIN,
    ) -> Self:
        """The model ``model`` at ``url``. Raises ModelNotFound for an invalid URL or key."""
        in_flight = InFlight(options.concurrency, options.concurrency_most)
        endpoint = Endpoint(
            url,
            key,
            options.timeout_seconds,
            retry,
            most_in_vain=max(most_in_vain, 2 * in_flight.most),
            rate=Rate(
                options.requests_per_minute,
                options.tokens_per_minute,
                answer_tokens=options.max_tokens,
            ),
            in_flight=in_flight,
            most_bytes=_FRAME_BYTES + _TOKEN_BYTES * options.max_tokens,
            api=api,
        )
        sampling = Sampling(options.max_tokens, api.sampling, odds=api.odds)
        forms = FormsTaken(api.forms)
        shots = shows_examples(options.shots, model)
        return cls(Chat(model, endpoint, forms, sampling, options.max_tokens, shots))

    @property
    def endpoint(self) -> Endpoint:
        """Where the server is."""
        return self.chat.endpoint

    @property
    def url(self) -> str:
        """The URL without what may be secret in it."""
        return self.endpoint.safe_url

    def knows_features(self, task: Task) -> bool:
        """Whether it is known what requests for ``task`` the server takes; if not, one goes first,
        alone."""
        unseen = task.images and not self.chat.sight.proven
        return not unseen and self.chat.forms.knows(sent_constraint(task))

    def form_search(self, task: Task) -> int:
        """See ``Abilities.form_search``."""
        return self.chat.forms.most_search(sent_constraint(task.with_single_answer))

    async def look(self) -> None:
        """One cheap request. Learns the window, and what the server is, where it states that.

        Raises ``ModelFailed`` if there is no server or no access."""
        async with self.endpoint.client() as client:
            response = await self.endpoint.get(client, "/models", needed=False)
        offered = offered_by(response)
        if self.window is None:
            self.window = window_of(offered.get(self.chat.model, {}))
        kind = kind_of(offered.values())
        if kind is not None:
            self.chat.forms.short = forms_named(kind.short_forms)

    async def ask(self, client: Client, requests: TaskRequests, row: Values) -> Answer:
        """The answer for one value. Raises ``ModelFailed`` and ``ModelNotFound``."""
        try:
            return await Exchange(self.chat, client, requests, row).answer()
        except Missing as missing:
            raise await self.not_found(client, missing) from None

    async def begin_in_way(self, client: Client, questions: Questions, task: Task) -> Usage:
        """Prepare for a question of ``questions``; returns the usage. Raises ``ModelFailed`` and
        ``ModelNotFound``."""
        try:
            return await questions.begin(client, task)
        except Missing as missing:
            raise await self.not_found(client, missing) from None
        except NoAnswer as error:
            raise ModelFailed(str(error), retryable=True, foreign=True) from None
        except Refusal as refusal:
            raise ModelFailed(
                f"{self.chat.model} at {self.url} cannot be asked in the way that was chosen for it: {refusal}",
                hint="Run 'blendfusion tune' for this model again: it chooses what the server offers now.",
                foreign=True,
            ) from None

    async def ask_in_way(
        self, client: Client, questions: Questions, task: Task, row: Values
    ) -> Answer:
        """The answer of ``questions`` for one value. Raises ``ModelFailed`` and
        ``ModelNotFound``."""
        try:
            return await questions.answer(client, task, row)
        except Missing as missing:
            raise await self.not_found(client, missing) from None

    async def not_found(self, client: Client, missing: Missing) -> ModelNotFound:
        """The error for a model that the server does not have, with those that it has."""
        try:
            offered = offered_by(await self.endpoint.get(client, "/models"))
        except ModelFailed:
            offered = {}
        if offered:
            return ModelNotFound(
                f"{self.url} has no model {self.chat.model} ({missing})",
                hint=f"It offers: {', '.join(map(on_one_line, sorted(offered)[:20]))}.",
                foreign=True,
            )
        return ModelNotFound(
            f"{self.url} knows neither the model {self.chat.model} nor a list of its models ({missing})",
            hint="The URL of an OpenAI-compatible server mostly ends in /v1.",
            foreign=True,
        )
