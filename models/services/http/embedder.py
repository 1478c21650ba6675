"""Vectors of servers with OpenAI's embeddings API: vLLM, llama-server, Ollama, hosted servers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from blendfusion.errors import ModelFailed, ModelNotFound, connect_with
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.embedders.embedder import Spend, Vectors, normalise
from blendfusion.models.protocol.events import model_call
from blendfusion.models.protocol.run_aside import run_confined
from blendfusion.models.services.http.adaptive_concurrency import InFlight
from blendfusion.models.services.http.client import (
    Endpoint,
    Missing,
    NoAnswer,
    Refusal,
    ValueRequests,
)
from blendfusion.models.services.http.completion import usage_of
from blendfusion.models.services.http.rate_limit import Rate
from blendfusion.models.services.http.retry import Passing, Retry
from blendfusion.models.services.http.task_group import for_each
from blendfusion.models.services.http.transport import Client
from blendfusion.options import Options
from blendfusion.types import Usage

_PATH = "/embeddings"
_MOST = 1e30
"""A number in a vector is smaller; NaN is not."""
_TEXTS_A_REQUEST = 64
_SHORTEST = 32
"""Minimum characters of a text to shorten: a refusal of a shorter text has another reason."""


class OpenAIEmbedder:
    """Asks a server for the vectors of 64 texts per request, ``options.concurrency`` at a time.

    A text that the server refuses for its length is halved until it fits. Requests are retried like
    those of a model.
    """

    def __init__(
        self, model: str, base_url: str, api_key: str | None, options: Options | None = None
    ) -> None:
        self._options = options or Options()
        self._model = model
        self._endpoint = Endpoint(
            base_url,
            api_key,
            self._options.timeout_seconds,
            Retry(attempts=1 + self._options.retries),
            rate=Rate(self._options.requests_per_minute, self._options.tokens_per_minute),
            in_flight=InFlight(self._options.concurrency),
        )
        self._arrived: dict[str, list[float]] = {}
        """The vectors of the latest batch that failed, which were paid for."""

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self._model!r}, {self._endpoint.safe_url!r})"

    @property
    def name(self) -> str:
        return f"openai:{self._model}@{self._endpoint.safe_url}"

    @property
    def fingerprint(self) -> str:
        key = f"{self._endpoint.safe_url}\n{self._model}"
        return f"openai:{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"

    @property
    def batch_size(self) -> int:
        return _TEXTS_A_REQUEST * self._options.concurrency

    @property
    def texts_a_request(self) -> int:
        return _TEXTS_A_REQUEST

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self.metered(texts, lambda spent: None)

    def metered(self, texts: Sequence[str], spend: Spend) -> Vectors:
        vectors = run_confined(lambda: self._embed_all(texts, spend))
        widths = {len(vector) for vector in vectors}
        if len(widths) != 1:
            raise ModelFailed(f"{self.name} gives vectors of different lengths: {sorted(widths)}")
        return normalise(np.array(vectors, dtype=np.float64))

    def close(self) -> None:
        """Nothing to free: connections end with each batch."""

    async def _embed_all(self, texts: Sequence[str], spend: Spend) -> list[list[float]]:
        vectors, self._arrived = self._arrived, {}
        missing = [text for text in texts if text not in vectors]

        async def settle(start: int) -> None:
            batch = missing[start : start + _TEXTS_A_REQUEST]
            await self._embed(client, batch, spend, vectors)

        try:
            async with self._endpoint.client() as client:
                starts = range(0, len(missing), _TEXTS_A_REQUEST)
                await for_each(starts, self._options.concurrency, settle)
        except BaseException:
            self._arrived = vectors
            raise
        return [vectors[text] for text in texts]

    async def _embed(
        self,
        client: Client,
        texts: Sequence[str],
        spend: Spend,
        vectors: dict[str, list[float]],
    ) -> None:
        """Add the vectors of ``texts`` to ``vectors``."""
        try:
            found = await self._ask(client, texts, spend)
            vectors.update(zip(texts, found, strict=True))
        except Refusal as refused:
            if len(texts) > 1:  # one of them may be the cause, so each is sent alone
                for text in texts:
                    await self._embed(client, [text], spend, vectors)
                return
            text = texts[0]
            if len(text) <= _SHORTEST:
                problem = f"{self.name} refuses to embed a text: {refused}"
                raise ModelFailed(problem, foreign=True) from None
            half = text[: len(text) // 2]
            await self._embed(client, [half], spend, vectors)
            vectors[text] = vectors[half]
        except NoAnswer as trouble:
            problem = f"{self.name} gives no vectors: {trouble}"
            raise ModelFailed(problem, retryable=True, foreign=True) from None
        except Missing as missing:
            raise ModelNotFound(
                f"{self._endpoint.safe_url} has no embedding model {self._model} ({missing})",
                hint="A chat server may have no embeddings: name one that has, "
                f"{connect_with(embedder='openai:MODEL@http://HOST:PORT/v1')}.",
                foreign=True,
            ) from None

    async def _ask(self, client: Client, texts: Sequence[str], spend: Spend) -> list[list[float]]:
        body: dict[str, Json] = {
            "model": self._model,
            "input": list(texts),
            "encoding_format": "float",
        }

        def read(reply: dict[str, Json]) -> list[list[float]]:
            found = _vectors(reply, len(texts))
            if found is None:
                raise Passing("the reply holds no vectors")
            spend(usage_of(reply))
            return found

        at = self._endpoint
        with model_call("openai", self._model, "embeddings", server=at.host, port=at.port):
            errand = ValueRequests(prompt=texts)
            try:
                request = at.request(_PATH, body)
                return await at.post(client, request, errand, read=read, final=_is_final)
            finally:
                spend(Usage(calls=errand.calls))


def _vectors(reply: dict[str, Json], n: int) -> list[list[float]] | None:
    """The vectors in a reply, in the order of its texts; None if their number differs."""
    data = reply.get("data")
    if not isinstance(data, list) or len(data) != n:
        return None
    found: dict[int, list[float]] = {}
    for place, item in enumerate(data):
        if not isinstance(item, dict):
            return None
        at, vector = item.get("index", place), item.get("embedding")
        if not isinstance(at, int) or not isinstance(vector, list) or not vector:
            return None
        numbers = [x for x in vector if isinstance(x, int | float) and abs(x) < _MOST]
        if len(numbers) != len(vector):
            return None
        found[at] = [float(x) for x in numbers]
    return [found[i] for i in range(n)] if sorted(found) == list(range(n)) else None


def _is_final(words: str) -> bool:
    """Whether an error's message says that a text is too long."""
    return any(word in words.lower() for word in ("too long", "too large", "maximum", "exceed"))
