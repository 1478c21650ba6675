"""Sends requests to one server: the HTTP library, behind the few names that the package uses.

The library is imported with the first connection, as it takes a quarter of a second.
"""

from __future__ import annotations

import json
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any, Self
from urllib.request import getproxies, proxy_bypass

from blendfusion.errors import ModelFailed
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.web_access import basic_login
from blendfusion.models.services.http.response import Response

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

_ACCEPTED = "gzip, deflate"
_WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""The encodings of contents that are read, with zlib's number for the window of each."""
_PLAIN = ("", "identity")
_JSON = {"Content-Type": "application/json"}
_IDLE_SECONDS = 5.0
"""An idle connection is closed after so long, before most servers do it."""
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_LARGE_BYTES = 1 << 20
_LONGEST_HEADER = 64 << 10


class NoConnection(Exception):
    """No connection to the server: nothing was sent. The text says why."""


class BrokenConnection(Exception):
    """A connection broke, or carried no HTTP. The text names the kind of failure."""


class TooLarge(Exception):
    """A reply is longer than it may be, or compressed in a way that nobody asked for."""


def proxy_for(url: URL) -> URL | None:
    """The proxy that the environment names for a server; None for none. Raises ModelFailed for one
    that does not speak HTTP."""
    from yarl import URL

    host = url.host or ""
    proxies = getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named or proxy_bypass(host) or proxy_bypass(f"{host}:{url.port}"):
        return None
    proxy = URL(named if "://" in named else f"http://{named}")
    if proxy.scheme not in ("http", "https") or not proxy.host:
        raise ModelFailed(
            f"the proxy for {url.scheme}:// in the environment has a URL with {proxy.scheme}://",
            hint="Name one with http:// or https://, or name the server in NO_PROXY.",
        )
    return proxy


@dataclass(frozen=True, slots=True)
class File:
    """A file of a form."""

    name: str
    content: bytes
    kind: str
    """Its type of content."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form that uploads a file."""

    fields: Mapping[str, str]
    file: File

    def encode(self) -> aiohttp.FormData:
        """The form as an object of aiohttp."""
        import aiohttp

        form = aiohttp.FormData(dict(self.fields))
        form.add_field(
            "file", self.file.content, filename=self.file.name, content_type=self.file.kind
        )
        return form


@dataclass(frozen=True, slots=True)
class Request:
    """A request: a GET without ``content``, else a POST of JSON, or of a form."""

    url: URL
    content: bytes | Form | None = None


@dataclass(slots=True)
class Client:
    """The connections to a server, as an asynchronous context manager of one event loop. Redirects
    are not followed, and no cookies are kept.

    ``trusted``: what a certificate must be signed by; None without TLS.
    """

    headers: Mapping[str, str] = field(repr=False)
    trusted: ssl.SSLContext | None
    connect_seconds: float
    proxy: URL | None = None
    _session: aiohttp.ClientSession = field(init=False, repr=False)
    _headers: dict[str, str] = field(init=False, repr=False)
    _json_headers: dict[str, str] = field(init=False, repr=False)
    _proxied: dict[str, Any] = field(init=False, repr=False)
    _failures: tuple[type[Exception], ...] = field(init=False, repr=False)

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

    def open(self) -> None:
        """Begin: in the event loop that will use it, which must also ``close`` it."""
        import aiohttp

        self._failures = aiohttp.ClientError, OSError
        connector = aiohttp.TCPConnector(
            limit=0,  # callers bound what is in flight
            ssl=self.trusted if self.trusted is not None else True,
            keepalive_timeout=_IDLE_SECONDS,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._times(None),
            auto_decompress=False,
            trust_env=False,
            max_field_size=_LONGEST_HEADER,
        )
        # With each request: the session's own headers would go to a proxy as well, keys included.
        self._headers = {"Accept-Encoding": _ACCEPTED, **self.headers}
        self._proxied = {}
        if self.proxy is not None:
            self._proxied = {"proxy": self.proxy.with_user(None)}
        if self.proxy is not None and self.proxy.user is not None:
            login = {"Proxy-Authorization": basic_login(self.proxy.user, self.proxy.password or "")}
            if self.trusted is None:
                self._headers |= login
            else:  # for the proxy alone, which sees nothing of the request itself
                self._proxied["proxy_headers"] = login
        self._json_headers = self._headers | _JSON

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(
        self, request: Request, most_bytes: int, *, silence_seconds: float | None = None
    ) -> Response:
        """The whole reply to a request, decompressed. Raises ``TooLarge`` for a body of more than
        ``most_bytes``, ``NoConnection``, ``BrokenConnection``, and TimeoutError where the server
        is silent for ``silence_seconds``, once the request is sent."""
        settings = self._proxied
        if silence_seconds is not None:
            settings = settings | {"timeout": self._times(silence_seconds)}
        content = request.content
        headers = self._json_headers if isinstance(content, bytes) else self._headers
        data = content.encode() if isinstance(content, Form) else _in_parts(content)
        method = "GET" if content is None else "POST"
        try:
            async with self._session.request(
                method, request.url, data=data, headers=headers, allow_redirects=False, **settings
            ) as reply:
                return Response(reply.status, await _whole(reply, most_bytes), reply.headers)
        except self._failures as error:
            raise _own_error(error) from error

    def _times(self, silence_seconds: float | None) -> aiohttp.ClientTimeout:
        from aiohttp import ClientTimeout

        return ClientTimeout(total=None, connect=self.connect_seconds, sock_read=silence_seconds)

    @asynccontextmanager
    async def stream(
        self, url: URL, seconds: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """The status of the reply to a GET, and the pieces of its body as they arrive, each within
        ``seconds``. Raises as ``send``."""
        plain = self._headers | {"Accept-Encoding": _PLAIN[1]}
        times = self._times(seconds)
        try:
            async with self._session.get(
                url, headers=plain, timeout=times, allow_redirects=False, **self._proxied
            ) as reply:
                yield reply.status, _inflate_pieces(reply)
        except self._failures as error:
            raise _own_error(error) from error


def json_bytes(value: Json) -> bytes:
    """A value as the JSON of a request. Raises ValueError for a number that is none."""
    return _ENCODER.encode(value).encode("utf-8")


async def beginning(chunks: AsyncIterator[bytes], most_bytes: int) -> bytes:
    """The first bytes of a body. Raises as ``Client.send``."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) >= most_bytes:
            break
    return bytes(body[:most_bytes])


def _in_parts(content: bytes | None) -> bytes | BytesIO | None:
    """A large body (of images, say) as aiohttp sends it part by part: other requests go on."""
    return BytesIO(content) if content is not None and len(content) > _LARGE_BYTES else content


async def _whole(reply: aiohttp.ClientResponse, most_bytes: int) -> bytes:
    """The body, decompressed, and never inflated beyond ``most_bytes``."""
    content = reply.content
    inflate = _inflater(reply)
    body = await content.readany()
    if inflate is None and content.at_eof() and len(body) <= most_bytes:
        return body  # as most replies are: small, in one piece
    return await _join(content, Pieces(most_bytes, inflate), body)


async def _inflate_pieces(reply: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The pieces of a body, decompressed: some servers compress what was asked for as it is."""
    inflate = _inflater(reply)
    async for chunk in reply.content.iter_any():
        if inflate is None:
            yield chunk
        while inflate is not None and chunk:
            try:
                yield inflate.decompress(chunk, _LARGE_BYTES)
            except zlib.error as problem:
                raise BrokenConnection("DecodingError") from problem
            chunk = inflate.unconsumed_tail
    if inflate is not None and (not inflate.eof or inflate.unused_data):
        raise BrokenConnection("DecodingError")


def _inflater(reply: aiohttp.ClientResponse) -> zlib._Decompress | None:
    """The decompressor of a body; None for a plain one. Raises ``TooLarge``."""
    encoding = reply.headers.get("Content-Encoding", "").strip().lower()
    if encoding in _PLAIN:
        return None
    if encoding not in _WINDOWS:
        raise TooLarge(f"the server's reply is compressed as {encoding[:20]!r}")
    return zlib.decompressobj(_WINDOWS[encoding])


async def _join(content: aiohttp.StreamReader, pieces: Pieces, chunk: bytes) -> bytes:
    while chunk:
        pieces.add(chunk)
        chunk = await content.readany()
    return bytes(pieces.body)


class Pieces:
    """The pieces of a body, together of ``most_bytes`` at most."""

    def __init__(self, most_bytes: int, inflate: zlib._Decompress | None = None) -> None:
        self.body = bytearray()
        self._most, self._inflate = most_bytes, inflate

    def add(self, chunk: bytes) -> None:
        """Raises ``TooLarge``, and ``BrokenConnection`` for what cannot be decompressed."""
        room = self._most - len(self.body) + 1
        try:
            self.body += (
                chunk[:room] if self._inflate is None else self._inflate.decompress(chunk, room)
            )
        except zlib.error as problem:
            raise BrokenConnection("DecodingError") from problem
        if len(self.body) > self._most:
            raise TooLarge(f"the server's reply is longer than {self._most / (1 << 20):g} MiB")


def _own_error(error: Exception) -> Exception:
    """An error of the library as one of this module; TimeoutError as it is."""
    import aiohttp

    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return NoConnection("no connection in time")
    if isinstance(error, aiohttp.ClientConnectorError):
        return NoConnection(_reason(error.os_error))
    if isinstance(error, TimeoutError):
        return TimeoutError(str(error))
    return BrokenConnection(type(error).__name__)


def _reason(error: OSError) -> str:
    """Why there is no connection, in the words of the system."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return error.reason or type(error).__name__
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
