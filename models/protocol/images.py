"""Images among the values of requests.

A value is text, so an image is represented by its name: type, size and a digest of its bytes. Equal
images are equal values; traces, logs, errors and cache keys have names. The bytes are held here
while a model is asked about them. An image at a URL is represented by the URL.
"""

from __future__ import annotations

import base64
import re
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TypeAlias
from urllib.parse import urlsplit

from blendfusion.errors import QueryError
from blendfusion.models.constraints.constraint import Json

Bytes: TypeAlias = "bytes | memoryview"

IMAGE_TOKENS = 765
"""Tokens of one image before any measurement: OpenAI's count for a photo of 1024 x 1024."""

_DIGEST_BYTES = 16
_BEGINNINGS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)
_LONGEST_BEGINNING = 12
_SOUND = re.compile(r"data:audio/(\w+);base64,")
_WEB = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_NAME = re.compile(r"((image|audio|unreadable)/\w+), [\d,]+ bytes, [0-9a-f]{32}")


def type_of(data: Bytes) -> str | None:
    """The media type by the first bytes of an image; None for an unknown type.

    >>> type_of(b"GIF89a...")
    'image/gif'
    """
    start = bytes(data[:_LONGEST_BEGINNING])
    return next((kind for begins, kind in _BEGINNINGS if begins.match(start)), None)


def name_of(data: Bytes) -> str | None:
    """The name of an image, from its bytes; None if they are not an image.

    >>> name_of(b"GIF89a")
    'image/gif, 6 bytes, a4ebc5f66162847b445559c37cdf009b'
    """
    kind = type_of(data)
    return None if kind is None else _name_as(kind, data)


def name_of_unreadable(data: Bytes) -> str:
    """The name of bytes that are nothing that a model reads."""
    return _name_as("unreadable/bytes", data)


def _name_as(kind: str, data: Bytes) -> str:
    return f"{kind}, {len(data):,} bytes, {blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()}"


_LENT: dict[str, tuple[Bytes, int]] = {}
"""Bytes by name, with the number of current users. Names are digests, so sessions can share them.
"""
_GUARD = threading.Lock()


@contextmanager
def lend_within(images: Mapping[str, Bytes]) -> Iterator[None]:
    """Provide these images, by name, within this context."""
    lend(images)
    try:
        yield
    finally:
        give_back(images)


def lend(images: Mapping[str, Bytes]) -> None:
    """Provide these images, by name, until they are given back."""
    with _GUARD:
        for name, data in images.items():
            known, times = _LENT.get(name, (data, 0))
            _LENT[name] = (known, times + 1)


def give_back(images: Mapping[str, Bytes]) -> None:
    """End one loan of each of these images."""
    with _GUARD:
        for name in images:
            known, times = _LENT.pop(name)
            if times > 1:
                _LENT[name] = (known, times - 1)


def any_lent() -> bool:
    """Whether anything is lent at present."""
    return bool(_LENT)


def kinds_in(text: str) -> set[str]:
    """The kinds of what is lent and named in a text: "image", "audio", or "unreadable" for bytes
    that are none of them. A text that only looks like a name is of no kind: nothing lent has its
    digest."""
    return {found[2] for found in _NAME.finditer(text) if found[0] in _LENT} if _LENT else set()


def split(text: str) -> list[str]:
    """A text cut around the names in it of what is lent, which are pieces of their own; no piece is
    blank."""
    pieces, start = [], 0
    for found in _NAME.finditer(text) if _LENT else ():
        if found[0] in _LENT:
            pieces += [text[start : found.start()], found[0]]
            start = found.end()
    return [piece for piece in (*pieces, text[start:]) if piece.strip()]


def image_bytes(value: str) -> bytes:
    """The bytes of an image among the values of a request, for a model that is a Python function.

    Raises QueryError for a URL, and for an image whose request has ended.
    """
    held = _LENT.get(value)
    if held is None:
        raise QueryError(
            f"{value!r} has no bytes here",
            hint="Bytes are available while a model is asked about the image; a URL has none.",
        )
    return bytes(held[0])


def is_web(text: str) -> bool:
    """Whether a text is an http(s) URL, and nothing else."""
    try:
        return bool(_WEB.fullmatch(text) and urlsplit(text).hostname)
    except ValueError:
        return False


def has_bytes(value: str) -> bool:
    """Whether a value is the name of an image."""
    return _NAME.fullmatch(value) is not None


def is_image(value: str) -> bool:
    """Whether a value of a task with images is one: a name, or a URL. All others are texts."""
    return has_bytes(value) or is_web(value)


def url_of(value: str) -> str:
    """The image's URL for a server, or a data: URL with its bytes."""
    kind = _NAME.fullmatch(value)
    if kind is None:
        return value
    return f"data:{kind[1]};base64,{base64.b64encode(image_bytes(value)).decode()}"


def content(text: str, values: Sequence[tuple[str, str, str]]) -> list[Json]:
    """The content of a message with values, each with its name, its URL if it is an image, and
    otherwise its text. A single value has no name."""
    parts: list[Json] = [{"type": "text", "text": text}]
    for name, url, shown in values:
        if url:
            parts += [_part(f"{name}:")] if len(values) > 1 and name else []
            parts.append(_media_part(url))
            continue
        label = f"{name}: " if name else "- "
        for piece in split(f"{label}{shown}" if len(values) > 1 else shown):
            parts.append(_media_part(url_of(piece)) if has_bytes(piece) else _part(piece))
    return parts


def _part(text: str) -> Json:
    return {"type": "text", "text": text.rstrip()}


def _media_part(url: str) -> Json:
    """The part of a message that is an image, or a recording in a data: URL."""
    sound = _SOUND.match(url)
    if sound is None:
        return {"type": "image_url", "image_url": {"url": url}}
    audio: Json = {"data": url[sound.end() :], "format": sound[1]}
    return {"type": "input_audio", "input_audio": audio}


def url_in(part: Json) -> str:
    """The URL, or the data, of an image or recording in a part of a message; '' for a text."""
    if not isinstance(part, dict):
        return ""
    for kind, inner in (("image_url", "url"), ("input_audio", "data")):
        found = part.get(kind)
        if isinstance(found, dict):
            return str(found[inner])
    return ""


def plain_image() -> list[Json]:
    """A question about a white square of 64 x 64, which every vision model can answer."""
    side = 64
    rows = (b"\0" + b"\xff" * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
    url = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return content("Which colour is this? Answer in one word.", [("", url, "")])
