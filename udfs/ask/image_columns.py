"""Converts columns of images, bytes or URLs, to values of requests."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import urlsplit

import pyarrow as pa

from blendfusion.errors import QueryError
from blendfusion.models.protocol.images import Bytes, name_of, type_of
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer
from blendfusion.udfs.ask.dispatcher import Asker
from blendfusion.udfs.declare.call import Call

Column: TypeAlias = "pa.Array | pa.ChunkedArray"

NO_IMAGE = "no image: it is neither the bytes of a PNG, JPEG, GIF or WebP, nor an http(s) or data: URL of one"
_NO_URL = "an image at a URL, which is not sent: image_urls is off"
_REFUSED = "no image, "
"""The beginning of the names of such values."""
_DATA_URL = re.compile(rb"data:[\w.+/;=\-]*;base64,", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)
_LONGEST_URL = 8192
_SHOWN = 80
"""Characters of a text in the place of an image."""


def named(columns: Sequence[Column]) -> tuple[list[pa.Array], dict[str, Bytes]]:
    """The columns as texts, a name or URL an image, and the bytes of the images by name.

    NULL, no bytes and blank text are NULL. The bytes stay where they are in the columns.
    """
    held: dict[str, Bytes] = {}
    texts = [pa.array([_name(value, held) for value in column], pa.string()) for column in columns]
    return texts, held


def seen(call: Call, values: Sequence[Values], asker: Asker) -> list[Answer]:
    """One answer a tuple of images, in order; those with something that is no image have failed.

    Raises QueryError for a model that sees no images.
    """
    problems = {v: problem for v in values if (problem := _problem(v, asker))}
    fit = [v for v in values if v not in problems]
    if fit and not asker.model_of(call).abilities.sees_images:
        raise QueryError(
            f"{call.ingredient.name}: {asker.model_of(call).name} reads text only, no images",
            hint="Connect a model that sees images: on a server with OpenAI's chat API, "
            "bf.connect('openai:MODEL@http://…/v1'), or local weights with their projector, "
            "bf.connect('llama:….gguf', projector='mmproj….gguf').",
        )
    answers = dict(zip(fit, asker.ask(call.task, fit, call), strict=True)) if fit else {}
    return [answers[v] if v in answers else Answer.failed(problems[v]) for v in values]


def _problem(images: Values, asker: Asker) -> str:
    """Why these are not asked about; '' if they are."""
    named = [image for image in images if image is not None]
    if any(image.startswith(_REFUSED) for image in named):
        return NO_IMAGE
    return _NO_URL if not asker.image_urls and any(map(_is_web, named)) else ""


def _name(value: pa.Scalar, held: dict[str, Bytes]) -> str | None:
    if not value.is_valid:
        return None
    data: Bytes = memoryview(value.as_buffer())
    if type_of(data) is None:
        url = _url(data)
        if url is None or isinstance(url, str):
            return url
        data = url
    name = name_of(data)
    if name is None:
        return _refused(data)
    held.setdefault(name, data)
    return name


def _url(data: Bytes) -> str | bytes | None:
    """The meaning of bytes that are no image, as text: a URL, the bytes within a data: URL, None if
    blank, or a name that says that they are refused."""
    text = bytes(data)
    if not text.strip():
        return None
    inline = _DATA_URL.match(text.lstrip())
    if inline is not None:
        try:
            return base64.b64decode(text.lstrip()[inline.end() :], validate=True)
        except binascii.Error:
            return _refused(data)
    if len(text) > _LONGEST_URL or not text.isascii():
        return _refused(data)
    url = text.decode().strip()
    return url if _is_web(url) else _refused(data)


def _is_web(url: str) -> bool:
    try:
        return bool(_URL.fullmatch(url) and urlsplit(url).hostname)
    except ValueError:
        return False


def _refused(data: Bytes) -> str:
    """A name of its own for each value that is no image."""
    text = bytes(data).decode("ascii", "replace") if len(data) <= _SHOWN else ""
    return f"{_REFUSED}{text if text.isprintable() and text else f'{len(data):,} bytes'}"
