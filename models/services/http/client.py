"""One HTTP server: retries of requests, and its failures as BlendFusion's errors."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from yarl import URL

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.allowance import give_request_back, note_tokens, spend_request
from blendfusion.models.protocol.gate import Unfit, json_of
from blendfusion.models.protocol.web_access import basic_login, trusted_certificates
from blendfusion.models.services.http.adaptive_concurrency import InFlight
from blendfusion.models.services.http.address import URL_VARIABLE, below, checked_url, shown_url
from blendfusion.models.services.http.api import OPENAI, Api
from blendfusion.models.services.http.circuit_breaker import Line
from blendfusion.models.services.http.completion import usage_of
from blendfusion.models.services.http.rate_limit import Load, Rate
from blendfusion.models.services.http.response import Response
from blendfusion.models.services.http.retry import Passing, Retry, retry_after_seconds
from blendfusion.models.services.http.server_errors import (
    quote_error,
    says_too_long,
    status_of,
    words_of,
)
from blendfusion.models.services.http.transport import (
    BrokenConnection,
    Client,
    NoConnection,
    Request,
    TooLarge,
    beginning,
    json_bytes,
    proxy_for,
)

__all__ = [
    "KEY_VARIABLE",
    "URL_VARIABLE",
    "Endpoint",
    "Missing",
    "NoAnswer",
    "Refusal",
    "ValueRequests",
]

KEY_VARIABLE = "OPENAI_API_KEY"

CHAT = "/chat/completions"
"""OpenAI's path of chats, which stands for that of every API."""
_CONNECT_SECONDS = 10.0
_TRANSIENT = (408, 409, 425, 429)
_UNLISTED = (403, 500, 501)
"""Said of a list of models that a key may not see, or that a server does not have."""
_TOO_MUCH = (429, 503, 529)
"""Said of too many requests at once, the last by Anthropic."""
_ANY_NUMBER = 1_000_000
_KEPT = "What was answered is kept: a later run asks for the rest."

T = TypeVar("T")


class RequestError(Exception):
    """One request came to nothing; never leaves ``blendfusion.models``."""


class Refusal(RequestError):
    """The server will not take this request (400, 413, 422, …); trying again changes nothing.

    ``words`` are the server's in full, to find out why; the message is what may be shown.
    ``too_long``: a shorter prompt might be taken.
    """

    def __init__(self, message: str, words: str = "", *, too_long: bool = False) -> None:
        super().__init__(message)
        self.words = words
        self.too_long = too_long


class NoAnswer(RequestError):
    """No answer to this request after every try; others may fare better. ``kind``: that of the last
    ``Passing``."""

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Missing(RequestError):
    """404: no such path or no such model."""


class _Silent(Passing):
    """No reply in time."""


@dataclass(slots=True)
class ValueRequests:
    """The requests sent for one value."""

    prompt: Sequence[str] = ()
    """Texts of a request, which a server may repeat in an error, and which our errors leave out."""
    images: int = 0
    """So many images are in the request: most of its bytes are not text."""
    calls: int = 0
    """HTTP requests that went out."""
    load: Load | None = None
    """The latest request's share of the rate limits."""


@dataclass(slots=True)
class Endpoint:
    """The address of a server, and the patience with it.

    ``most_in_vain``: after this many consecutive values without an answer, each after every try,
    the server counts as dead. ``most_bytes``: a longer reply, when decompressed, is not read to its
    end."""

    url: str
    key: str | None = field(repr=False)
    timeout_seconds: float
    retry: Retry
    most_in_vain: int = 32
    most_bytes: int = 16 << 20
    rate: Rate = field(default_factory=Rate, repr=False)
    in_flight: InFlight = field(default_factory=lambda: InFlight(_ANY_NUMBER), repr=False)
    line: Line = field(init=False, repr=False)
    api: Api = field(default=OPENAI, repr=False)
    _url: URL = field(init=False, repr=False)
    _login: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _trusted: ssl.SSLContext | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        given = checked_url(self.url)
        self._url = given.with_user(None)
        if given.user is not None:  # as in http://user:password@host
            self._login = {"Authorization": basic_login(given.user, given.password or "")}
        self.key = (self.key or "").strip() or None
        if self.key and not (self.key.isascii() and self.key.isprintable()):
            raise ModelNotFound(
                f"the key in {self._key_variable} has characters that no HTTP header can carry",
                hint="Only the key belongs there: one line, as the server's owner gave it out.",
            )
        self.line = Line(self.retry, self.rate)

    @property
    def safe_url(self) -> str:
        """The URL without what may be secret in it."""
        return shown_url(self._url)

    @property
    def _key_variable(self) -> str:
        return self.api.key_variables[0]

    @property
    def host(self) -> str:
        return self._url.host or ""

    @property
    def port(self) -> int | None:
        return self._url.port

    def client(self) -> Client:
        """A new client; it belongs to the event loop that uses it, and must be closed there."""
        url = self._url
        if url.scheme == "https" and self._trusted is None:
            self._trusted = trusted_certificates()
        # A proxy cannot reach this machine's own loopback.
        proxy = None if _is_loopback(self.host) else proxy_for(url)
        connect_seconds = min(self.timeout_seconds, _CONNECT_SECONDS)
        return Client(self._headers(), self._trusted, connect_seconds, proxy)

    def _headers(self) -> dict[str, str]:
        return (self.api.headers(self.key) if self.key else {}) | self._login

    def request(self, path: str, body: dict[str, Json] | None = None) -> Request:
        """A request as it is sent: ``path`` and ``body`` are those of OpenAI's API; without a body
        it is a GET."""
        if body is None:
            return Request(below(self._url, path))
        if path == CHAT:
            path, body = self.api.request(body)
        return Request(below(self._url, path), json_bytes(body))

    async def post(
        self,
        client: Client,
        request: Request,
        errand: ValueRequests,
        *,
        read: Callable[[dict[str, Json]], T],
        final: Callable[[str], bool],
    ) -> T:
        """The value that ``read`` finds in the reply's JSON object; it raises ``Passing`` for
        another shape.

        ``final``: words of an error that trying again will not mend; some servers answer 500 to a
        field that they do not know.

        Raises ``Refusal``, ``Missing`` or ``NoAnswer`` for this request alone, and
        ``ModelFailed`` where every other request would meet the same.
        """

        async def once() -> T:
            response = await self._send(client, request, errand)
            reply = self.api.reply(self._object(response, errand, final))
            note_tokens(usage_of(reply))
            if errand.load is not None:
                self.rate.settle(errand.load, reply)
            try:
                return read(reply)
            except (Passing, RequestError):
                raise
            except Exception as problem:
                raise Passing(
                    f"the server's reply cannot be read ({type(problem).__name__})"
                ) from None

        try:
            reply = await self.retry.call(once, self.host)
        except Passing as trouble:
            self._in_vain(trouble)
            tries = "1 try" if self.retry.attempts == 1 else f"{self.retry.attempts} tries"
            raise NoAnswer(f"{trouble} ({tries})", trouble.kind) from None
        self.line.note_answer()
        return reply

    async def get(self, client: Client, path: str, *, needed: bool = True) -> Response:
        """The reply, whatever its status, if that is not passing trouble. ``needed=False``: a key
        that may not read this may still be good for chats, and a server may lack it.

        Raises ``ModelFailed`` if there is no server, no access, or trouble at every try.
        """
        request = self.request(path)
        last: list[Response] = []

        async def once() -> Response:
            try:
                response = await self._send(client, request, ValueRequests())
                last[:] = [response]
            except _Silent as trouble:  # whoever waited that long wants to know
                raise self._not_ready(trouble) from None
            status = response.status
            if not needed and (status in _UNLISTED or (status == 401 and self.key)):
                return response
            self._check_access(response)
            if _is_passing(status):
                raise self._passing(response, status_of(response, self.key))
            return response

        try:
            return await self.retry.call(once, self.host)
        except Passing as trouble:
            if not needed and [found.status for found in last] == [429]:
                return last[0]  # it is there: chats wait as they are told to
            raise self._not_ready(trouble) from None

    async def lines(self, client: Client, path: str) -> AsyncIterator[bytes]:
        """The lines of a file of any size, as they arrive. Raises ``Passing`` for any reply but a
        good one, a line that is too long, or a connection that breaks."""
        url = below(self._url, path)
        try:
            async with client.stream(url, self.timeout_seconds) as (status, chunks):
                if status != 200:
                    shortened = Response(status, await beginning(chunks, self.most_bytes))
                    self._check_access(shortened)
                    problem = f"a file of replies: {status_of(shortened, self.key)}"
                    raise Passing(problem, str(status))
                begun = bytearray()
                async for chunk in chunks:
                    *ended, rest = chunk.split(b"\n")
                    for line in ended:
                        yield bytes(begun + line)
                        begun.clear()
                    begun += rest
                    if len(begun) > self.most_bytes:
                        raise Passing("a line of the replies is too long")
                yield bytes(begun)
        except (NoConnection, BrokenConnection, TooLarge, TimeoutError) as error:
            raise Passing(f"connection lost ({error or 'timeout'})", "connection") from None

    def _not_ready(self, trouble: Passing) -> ModelFailed:
        return ModelFailed(
            f"{self.safe_url} is not ready: {trouble}",
            hint="If it is starting, wait for it. The URL of an OpenAI-compatible server mostly "
            "ends in /v1.",
            retryable=True,
            foreign=True,
        )

    async def _send(self, client: Client, request: Request, errand: ValueRequests) -> Response:
        """The reply of any kind. Waits for a server that was there before and is away."""
        while True:
            await self.in_flight.enter()
            try:
                response = await self._send_once(client, request, errand)
            finally:
                self.in_flight.leave()
            if response is not None:
                return response

    async def _send_once(
        self, client: Client, request: Request, errand: ValueRequests
    ) -> Response | None:
        """The reply to one try; None where it found no connection, and is worth another."""
        content = request.content
        errand.load = None
        if isinstance(content, bytes):
            errand.load = self.rate.load(content, errand.images)
        await self.line.free(errand.load)
        if content:
            spend_request()
        sent_at = time.monotonic()
        try:
            async with asyncio.timeout(self.timeout_seconds):
                response = await client.send(request, self.most_bytes)
        except NoConnection as error:
            if content:
                give_request_back()
            self._unreachable(error, sent_at)
            return None
        except TimeoutError:
            errand.calls += 1
            raise _Silent(f"no reply within {self.timeout_seconds:g} s", "timeout") from None
        except TooLarge as error:
            errand.calls += 1
            raise NoAnswer(str(error)) from None
        except BrokenConnection as error:
            errand.calls += 1
            raise Passing(f"connection lost ({error})", "connection") from None
        errand.calls += 1
        self.line.note_reply()
        if response.status in _TOO_MUCH:
            self.in_flight.note_refusal(sent_at)
        elif response.status == 200:
            self.in_flight.note_answer(sent_at)
        return response

    def _unreachable(self, error: NoConnection, sent_at: float) -> None:
        """Return if it is worth waiting for the server."""
        reason = quote_error(str(error), self.key)
        if not self.line.reached:
            raise ModelFailed(
                f"no server answers at {self.safe_url} ({reason})",
                hint=f"Start it, or correct the URL in the model's name or in {self.api.url_variable}.",
                foreign=True,
            )
        if self.line.note_failure(sent_at):
            raise ModelFailed(
                f"the server at {self.safe_url} is gone: it answered before, and takes no connection "
                f"any more ({reason})",
                hint=_KEPT,
                retryable=True,
                foreign=True,
            )
        if not self.retry.patient:
            raise Passing(f"no connection ({reason})", "connection")

    def _in_vain(self, trouble: Passing | Refusal) -> None:
        """Count a value without an answer; raise ``ModelFailed`` when there are too many in a
        row."""
        if self.line.note_no_answer(self.most_in_vain):
            slow = "If it is only slow, raise timeout_seconds. " * isinstance(trouble, _Silent)
            raise ModelFailed(
                f"{self.safe_url} answered none of {self.most_in_vain} values in a row; the last: "
                f"{trouble}",
                hint=slow + _KEPT,
                retryable=True,
                foreign=True,
            )

    def _object(
        self, response: Response, errand: ValueRequests, final: Callable[[str], bool]
    ) -> dict[str, Json]:
        """The JSON object of a good reply."""
        status = response.status
        if status == 200:
            return object_in(response)
        words = words_of(response)
        # OpenAI says 403 where a model tells no odds of tokens.
        if not (status == 403 and final(words)):
            self._check_access(response, errand.prompt)
        reason = status_of(response, self.key, errand.prompt)
        too_long = status == 413 or says_too_long(words)
        if _is_passing(status) and not (too_long or final(words)):
            raise self._passing(response, reason)
        if status == 404:
            raise Missing(reason)
        refusal = Refusal(reason, words, too_long=too_long)
        if status == 403:
            self._in_vain(refusal)
        raise refusal

    def _passing(self, response: Response, reason: str) -> Passing:
        """The error for a reply that may be better next time; a pause that it asks for is all's."""
        pause = retry_after_seconds(
            response.headers.get("retry-after"), response.headers.get("date")
        )
        if pause is not None and pause > self.retry.longest_pause_seconds:
            raise ModelFailed(
                f"{self.safe_url} asks for a pause of {pause:.0f} s ({reason})",
                hint=_KEPT,
                retryable=True,
                foreign=True,
            )
        if pause is not None:
            self.line.pause(pause)
        return Passing(reason, str(response.status))

    def _check_access(self, response: Response, prompt: Sequence[str] = ()) -> None:
        """Raise ``ModelFailed`` where the server wants a key or money, or is elsewhere: no value
        will fare better.

        What a server says that served others is about one value: 403 of moderation or a firewall.
        """
        status = response.status
        if 300 <= status < 400 and not self.line.served:
            raise ModelFailed(
                f"{self.safe_url} sends requests elsewhere ({status_of(response, self.key, prompt)}), and "
                "redirects are not followed",
                hint="Name the server's own URL.",
                foreign=True,
            )
        invalid = status == 400 and "API_KEY_INVALID" in response.text  # Gemini
        if status == 401 or invalid or (status == 403 and not self.line.served):
            state = "was refused" if self.key else "is not set"
            raise ModelFailed(
                f"{self.safe_url} refused access ({status_of(response, self.key, prompt)}); the key in "
                f"{self._key_variable} {state}",
                hint=f"Set {self._key_variable} to a key of that server.",
                foreign=True,
            )
        if status == 402 or (status == 429 and "insufficient_quota" in response.text):
            reason = status_of(response, self.key, prompt)
            raise ModelFailed(
                f"{self.safe_url} asks for payment ({reason})",
                hint=f"The account behind the key has no credit left. {_KEPT}",
                foreign=True,
            )


def object_in(response: Response) -> dict[str, Json]:
    """The JSON object that a reply is. Raises Passing."""
    try:
        reply = json_of(response.content)
    except Unfit:
        raise Passing("the server's reply is not JSON") from None
    if not isinstance(reply, dict):
        raise Passing("the server's reply is not a JSON object")
    return reply


def _is_passing(status: int) -> bool:
    return status in _TRANSIENT or (status >= 500 and status != 501)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
