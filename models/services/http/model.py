"""Models on servers: vLLM, SGLang, llama-server, Ollama, hosted ones, Anthropic's and Gemini's."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import astuple

from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.services.http.address import HOSTED_URL, announce
from blendfusion.models.services.http.api import OPENAI, Api
from blendfusion.models.services.http.client import KEY_VARIABLE, URL_VARIABLE
from blendfusion.models.services.http.question_scores import QuestionScores
from blendfusion.models.services.http.questions import Questions
from blendfusion.models.services.http.retry import Retry
from blendfusion.models.services.http.server import Server
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.services.http.task_requests import TaskRequests
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.prompts.prompt import PROMPT_VERSION
from blendfusion.models.services.verbalizer.describe import scored_by
from blendfusion.models.services.verbalizer.query_likelihood import (
    LIKELIHOOD_VERSION,
    Score,
    about_text,
    by_likelihood,
    question_behind,
)
from blendfusion.models.services.verbalizer.ways import Way, known_way, server_digest
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

__all__ = ["DEFAULT_URL", "KEY_VARIABLE", "URL_VARIABLE", "OpenAIModel"]

DEFAULT_URL = HOSTED_URL
DEFAULT_WINDOW = 8192
"""Tokens, until the server says otherwise."""

_FEWEST_ROUNDS, _MOST_ROUNDS = 8, 256
"""The values of a batch, as multiples of the concurrency: at least 8, which keeps the connections
busy, and up to 256 if the batch ends within ``_BATCH_SECONDS``, since each batch opens new
connections."""
_BATCH_SECONDS = 4.0


def fingerprint(api: str, url: str, model: str, options: Options, way: Way | None = None) -> str:
    """The identity of a model at a server: the same name at the same URL is the same model, as far
    as a client can tell. ``way``: how it answers yes/no questions, if not by its replies."""
    key = f"{url}\n{model}\n{options.max_tokens}\n{PROMPT_VERSION}\n{shows_examples(options.shots, model)}"
    if way is not None:
        key += f"\n{astuple(way)[:5]}\n{LIKELIHOOD_VERSION}"
        key += f"\n{way.neutral_share}" if way.neutral_share != 1 else ""
    return f"{api}:{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def rounds_a_batch(answer_seconds: float | None) -> int:
    """The values of a batch, as a multiple of the concurrency, for the usual seconds of an answer.

    >>> rounds_a_batch(None), rounds_a_batch(2.0), rounds_a_batch(0.05), rounds_a_batch(0.001)
    (8, 8, 80, 256)
    """
    if answer_seconds is None:
        return _FEWEST_ROUNDS
    fitting = _BATCH_SECONDS / max(answer_seconds, _BATCH_SECONDS / _MOST_ROUNDS)
    return max(_FEWEST_ROUNDS, round(fitting))


class OpenAIModel(StreamingAnswers):
    """Asks a server one request a value, ``options.concurrency`` at a time: fewer while it refuses
    them, up to ``options.concurrency_most`` while it answers more of them as quickly.

    The constraint goes in the form that the server takes, found at the first request of its kind
    and remembered; every reply is checked all the same. Nothing runs between two calls of
    ``answer``: its thread and its connections end with it.

    Yes/no questions are asked in the way that ``blendfusion tune`` chose for the model at this URL,
    if it chose one; ``tuned=False``: never.

    ``window``: tokens of prompt and answer; by default what the server states when ``check`` asks
    it, else 8192. ``says_where``: the first use warns of the server's URL. ``api``: the one that it
    speaks.
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
        api: Api = OPENAI,
        tuned: bool = True,
    ) -> None:
        self._says_where = says_where
        self._options = options or Options()
        self._model = model
        self._server = Server.at(
            base_url,
            model,
            api_key,
            self._options,
            retry or Retry(attempts=1 + self._options.retries),
            api=api,
        )
        self._server.window = window
        way = known_way(self.digest) if tuned else None
        self._questions = None
        if way is not None and way.prompt != "words":
            self._questions = Questions(self._server.chat, way)

    @property
    def abilities(self) -> Abilities:
        """Where the server's model reads no images, the first image shows it. The same name at the
        same URL is the same model, as far as a client can tell."""
        return Abilities(
            at_once=self.at_once,
            call_per_value=True,
            sees_images=True,
            hears_audio=self._server.endpoint.api.name == "openai",
            follows_grammars=self._server.chat.forms.takes_grammars,
            fingerprint_lasts=True,
            check=self.check,
            takes_sample=self._takes_sample,
            scored_by=self._scored_by,
            form_search=self._form_search,
            shots=self._server.chat.shots,
        )

    @property
    def digest(self) -> str:
        """The name of this model among the ways of asking."""
        return server_digest(self._server.endpoint.api.name, self._server.url, self._model)

    def __repr__(self) -> str:
        return f"OpenAIModel({self._model!r}, {self._server.url!r})"

    @property
    def info(self) -> ModelInfo:
        url, tokens = self._server.url, self._options.max_tokens
        api = self._server.endpoint.api.name
        return ModelInfo(
            name=f"{api}:{self._model}@{url}",
            fingerprint=fingerprint(api, url, self._model, self._options, self._way),
            window=self._server.window or DEFAULT_WINDOW,
            settings={"max_tokens": str(tokens), "concurrency": str(self._options.concurrency)},
        )

    @property
    def batch_size(self) -> int:
        in_flight = self._server.endpoint.in_flight
        full = self.at_once * rounds_a_batch(in_flight.seconds)
        # No batch should take much longer than a minute: what is between batches waits for it.
        return min(full, self._options.requests_per_minute or full)

    @property
    def at_once(self) -> int:
        """Requests in flight together take no longer than one."""
        return self._server.endpoint.in_flight.limit

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
        run_confined(self._server.look)

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """As ``StreamingModel.answer_each``, in the server's order; ``usage.calls`` counts HTTP
        requests, retries included. Raises ``ModelFailed`` if there is no server or no access,
        ``ModelNotFound`` if the server does not have the model."""
        if not values:
            return []
        self._announce()
        return run_confined(lambda: self._answer_all(task, values, on_answer))

    @property
    def display_name(self) -> str:
        """The name in the file of ways."""
        return f"{self._model}@{self._server.url}"

    def without_way(self) -> OpenAIModel:
        """A copy that asks by replies."""
        endpoint = self._server.endpoint
        return OpenAIModel(
            self._model,
            endpoint.url,
            endpoint.key,
            self._options,
            says_where=self._says_where,
            api=endpoint.api,
            tuned=False,
        )

    def can_ask(self, way: Way) -> bool:
        """Whether the server tells the scores that a way weighs: a request or two show it."""
        if way.prompt == "words":
            return True
        return self._server.endpoint.api.odds and run_confined(lambda: self._available(way))

    def question_scores(self, task: Task, values: Sequence[Values], way: Way) -> list[Score]:
        """The scores of a yes/no question behind values, which ``way`` would weigh."""
        return run_confined(lambda: self._question_scores(task, values, way))

    async def _available(self, way: Way) -> bool:
        async with self._server.endpoint.client() as client:
            scores = QuestionScores(self._server.chat, client, about_text("Is it so?"), way)
            return await scores.available()

    async def _question_scores(self, task: Task, values: Sequence[Values], way: Way) -> list[Score]:
        async with self._server.endpoint.client() as client:
            return await QuestionScores(self._server.chat, client, task, way).every(values)

    @property
    def _way(self) -> Way | None:
        return None if self._questions is None else self._questions.way

    def _takes_sample(self, task: Task) -> bool:
        return self._way is not None and by_likelihood(task, self._options)

    def _form_search(self, task: Task) -> int:
        in_way = self._questions is not None and by_likelihood(task, self._options)
        return 0 if in_way else self._server.form_search(task)

    def _scored_by(self, task: Task) -> str | None:
        way = self._way
        if way is None or not by_likelihood(task, self._options):
            return None
        return scored_by(question_behind(task, way), wordings=True, way=way)

    def _announce(self) -> None:
        if self._says_where:
            announce(self._model, self._server.url)

    async def _answer_all(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        answers: dict[int, Answer] = {}

        server = self._server
        requests = TaskRequests(server.chat, task)
        spent: Usage | None = None
        questions = self._questions if by_likelihood(task, self._options) else None

        async def settle(place: int) -> None:
            nonlocal spent
            if questions is None:
                answer = await server.ask(client, requests, values[place])
            else:
                answer = await server.ask_in_way(client, questions, task, values[place])
            if spent is not None:  # what it took to prepare is the first value's
                answer, spent = answer.with_usage(answer.usage + spent), None
            answers[place] = answer
            on_answer(place, answer)

        places = range(len(values))
        in_flight = server.endpoint.in_flight
        in_flight.expect(task)
        async with server.endpoint.client() as client:
            if questions is not None:
                spent = await server.begin_in_way(client, questions, task)
            elif not server.knows_features(task):
                # Alone, so that one request finds out what all the others may send.
                await settle(0)
                places = places[1:]
            await for_each(places, in_flight.most, settle)
        return [answers[place] for place in range(len(values))]
