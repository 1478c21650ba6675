"""One HTTP server: requests that are tried again, and errors drawn into our tree."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.constraint import Json
from blendfusion.models.retry import Retry

KEY_VARIABLE = "OPENAI_API_KEY"
URL_VARIABLE = "OPENAI_BASE_URL"

_CONNECT_SECONDS = 10.0
_TRANSIENT = (408, 409, 425, 429)
_SHOWN = 300
"""Characters of a server's own words that an error repeats."""


class RequestError(Exception):
    """One request came to nothing; never leaves ``blendfusion.models``."""


class Refused(RequestError):
    """The server will not take this request (400, 413, 422, …); trying again changes nothing."""


class Unanswered(RequestError):
    """No answer to this request after every try; others may fare better."""


class Missing(RequestError):
    """404: no such path or no such model."""


@dataclass(slots=True)
class Tally:
    """HTTP requests sent on behalf of one value."""

    calls: int = 0


@dataclass(slots=True)
class Endpoint:
    """Where to ask and how patiently. ``reached`` turns true with the first reply of any kind."""

    url: str
    key: str | None = field(repr=False)
    timeout_seconds: float
    retry: Retry
    reached: bool = False

    def __post_init__(self) -> None:
        self.url = self.url.rstrip("/")
        try:
            parsed = httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise ModelNotFound(f"{self.url!r} is not a URL: {error}") from None
        if parsed.scheme not in ("http", "https") or not parsed.host:
            raise ModelNotFound(
                f"{self.url!r} is not the URL of a server",
                hint="It begins with http:// or https:// and mostly ends in /v1.",
            )

    @property
    def shown(self) -> str:
        """The URL without what may be secret in it."""
        return str(httpx.URL(self.url).copy_with(userinfo=b"", query=None))

    def client(self) -> httpx.AsyncClient:
        """A new client; it belongs to the event loop that uses it, and must be closed there."""
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.AsyncClient(
            headers=headers,
            timeout=httpx.Timeout(
                self.timeout_seconds, connect=min(self.timeout_seconds, _CONNECT_SECONDS)
            ),
            limits=httpx.Limits(max_connections=None),  # callers bound what is in flight
            # A proxy cannot reach this machine's own loopback.
            trust_env=not _is_loopback(httpx.URL(self.url).host),
        )

    async def post(
        self,
        client: httpx.AsyncClient,
        path: str,
        body: dict[str, Json],
        tally: Tally,
        *,
        final: Callable[[str], bool],
    ) -> dict[str, Json]:
        """The reply's JSON object. ``final``: words of an error that trying again will not mend;
        some servers answer 500 to a field that they do not know.

        Raises ``Refused``, ``Missing`` or ``Unanswered`` for this request alone, and
        ``ModelFailed`` where every other request would meet the same.
        """
        reason = ""
        for attempt in range(self.retry.attempts):
            wait: str | None = None
            tally.calls += 1
            try:
                async with asyncio.timeout(self.timeout_seconds):
                    response = await client.post(f"{self.url}{path}", json=body)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if not self.reached or attempt + 1 == self.retry.attempts:
                    raise self.down(error) from None
                reason = "no connection"
            except (TimeoutError, httpx.TimeoutException):
                reason = f"no reply within {self.timeout_seconds:g} s"
            except httpx.TransportError as error:
                reason = f"connection lost ({type(error).__name__})"
            else:
                self.reached = True
                reply = self._reply(response, final)
                if reply is not None:
                    return reply
                reason = f"HTTP {response.status_code}: {self.words(response)}"
                wait = response.headers.get("retry-after")
            if attempt + 1 < self.retry.attempts:
                await asyncio.sleep(self.retry.delay_seconds(attempt, wait))
        raise Unanswered(f"{reason} ({self.retry.attempts} tries)")

    def _reply(
        self, response: httpx.Response, final: Callable[[str], bool]
    ) -> dict[str, Json] | None:
        """The object of a good reply; None for one that may be better next time."""
        status = response.status_code
        if status == 200:
            try:
                reply = response.json()
            except (ValueError, RecursionError):
                return None
            return reply if isinstance(reply, dict) else None
        self.check_access(response)
        if status in _TRANSIENT or (status >= 500 and not final(self.words(response))):
            return None
        if status == 404:
            raise Missing(self.words(response))
        raise Refused(f"HTTP {status}: {self.words(response)}")

    def check_access(self, response: httpx.Response) -> None:
        """Raise ``ModelFailed`` where the server wants a key or money: no value will fare better."""
        status = response.status_code
        if status in (401, 403):
            state = "was refused" if self.key else "is not set"
            raise ModelFailed(
                f"{self.shown} refused access (HTTP {status}); the key in {KEY_VARIABLE} {state}",
                hint=f"Set {KEY_VARIABLE} to a key of that server.",
            )
        if status == 402 or (status == 429 and "insufficient_quota" in response.text):
            raise ModelFailed(
                f"{self.shown} asks for payment (HTTP {status}): {self.words(response)}",
                hint="The account behind the key has no credit left.",
            )

    def down(self, error: Exception) -> ModelFailed:
        said = self._hidden(str(error)) or type(error).__name__
        return ModelFailed(
            f"no server answers at {self.shown} ({said})",
            hint=f"Start it, or correct the URL in the model's name or in {URL_VARIABLE}.",
        )

    def words(self, response: httpx.Response) -> str:
        """What the server says about an error, short and without our key."""
        said = response.text
        try:
            body = json.loads(said)
            told = body.get("error", body) if isinstance(body, dict) else body
            told = told.get("message", told) if isinstance(told, dict) else told
            said = told if isinstance(told, str) else json.dumps(told)
        except (ValueError, RecursionError):
            pass
        said = " ".join(self._hidden(said).split())
        return said[:_SHOWN] or response.reason_phrase or "no words"

    def _hidden(self, text: str) -> str:
        return text.replace(self.key, "…") if self.key else text


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
