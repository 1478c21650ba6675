"""Reads the body of a reply up to its size limit."""

from __future__ import annotations

import zlib

import httpx

_ENCODINGS = {"": None, "identity": None, "gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""The encodings of contents that are read, with zlib's number for the window of each."""
ACCEPTED = "gzip, deflate"


class TooLarge(Exception):
    """A reply is longer than it may be, or compressed in a way that nobody asked for."""


async def whole(response: httpx.Response, most_bytes: int) -> httpx.Response:
    """``response``, which is a stream, with its body of ``most_bytes`` at most, decompressed.

    A compressed body is never inflated beyond that. Raises ``TooLarge``, and whatever httpx raises
    for a connection that breaks; the stream is closed in any case.
    """
    try:
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if encoding not in _ENCODINGS:
            raise TooLarge(f"the server's reply is compressed as {encoding[:20]!r}")
        window = _ENCODINGS[encoding]
        inflate = None if window is None else zlib.decompressobj(window)
        body = bytearray()
        async for chunk in response.aiter_raw():
            room = most_bytes - len(body) + 1
            try:
                body += chunk[:room] if inflate is None else inflate.decompress(chunk, room)
            except zlib.error as problem:
                raise httpx.DecodingError(str(problem)) from problem
            if len(body) > most_bytes:
                raise TooLarge(f"the server's reply is longer than {most_bytes / (1 << 20):g} MiB")
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in ("content-encoding", "content-length", "transfer-encoding")
        ]
        return httpx.Response(
            response.status_code,
            headers=headers,
            content=bytes(body),
            request=response.request,
            extensions={k: v for k, v in response.extensions.items() if k == "reason_phrase"},
        )
    finally:
        await response.aclose()
