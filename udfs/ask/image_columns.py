"""Converts columns of images, bytes or URLs, to values of requests."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from blendfusion.models.protocol import audio
from blendfusion.models.protocol.images import (
    Bytes,
    is_image,
    is_web,
    name_of,
    type_of,
)
from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.media import check_senses
from blendfusion.udfs.declare.call import Call

Column: TypeAlias = "pa.Array | pa.ChunkedArray"

_NO_IMAGE = "no image: it is neither the bytes of a PNG, JPEG, GIF or WebP, nor an http(s) or data: URL of one"
_NO_URL = "an image at a URL, which is not sent: image_urls is off"
_REFUSED = "no image, "
"""The beginning of the names of such values."""
_DATA_URL = re.compile(rb"data:[\w.+/;=\-]*;base64,", re.IGNORECASE)
_LONGEST_URL = 8192
_SHOWN = 80
"""Characters of a text in the place of an image."""


class Images(NamedTuple):
    """Columns in which a text, a name or a URL, represents each image; and the bytes by name."""

    texts: list[pa.Array]
    held: dict[str, Bytes]


def name_images(columns: Sequence[Column]) -> Images:
    """The columns of a question about images. NULL, no bytes and blank text are NULL. The bytes
    stay where they are in the columns.

    In a single column, each value is an image or has failed. Among several, a text that is no image
    is a text beside the images of its row.
    """
    held: dict[str, Bytes] = {}
    beside = len(columns) > 1
    texts = [
        pa.array([_name(value, held, beside=beside) for value in column], pa.string())
        for column in columns
    ]
    return Images(texts, held)


def among_texts(columns: Sequence[Column]) -> Images | None:
    """The columns of a question about texts, some of which are images: bytes, or a data: URL of an
    image. None if none is. An http(s) URL is a text here."""
    if not may_hold_images(columns):
        return None
    held: dict[str, Bytes] = {}
    texts = [
        pa.array([_name_or_text(value, held) for value in column], pa.string())
        for column in columns
    ]
    return Images(texts, held)


def answer_images(call: Call, values: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    """One answer a tuple of values with images, in order; NULL for a row whose images are all NULL.
    Those with something that is no image have failed.

    Raises QueryError for a model that sees no images, or hears no recordings.
    """
    name = call.ingredient.name
    answered = ((v, _without_question(name, v, dispatcher)) for v in values)
    known = {v: answer for v, answer in answered if answer is not None}
    fit = [v for v in values if v not in known]
    if fit:
        model = dispatcher.model_of(call)
        check_senses(name, model.name, model.abilities, fit)
    task = call.task if call.task.images else replace(call.task, images=True)
    answers = dict(zip(fit, dispatcher.ask(task, fit, call), strict=True)) if fit else {}
    return [answers[v] if v in answers else known[v] for v in values]


def seen_among_texts(call: Call, values: Sequence[Values], dispatcher: Dispatcher) -> list[Answer]:
    """One answer a tuple of values, some of which hold images."""
    images = [v for v in values if any(one is not None and _shows(one) for one in v)]
    pictured = {*images}
    texts = [v for v in values if v not in pictured]
    answers = dict(zip(images, answer_images(call, images, dispatcher), strict=True))
    if texts:
        answers |= zip(texts, dispatcher.ask(call.task, texts, call), strict=True)
    return [answers[v] for v in values]


def _without_question(name: str, values: Values, dispatcher: Dispatcher) -> Answer | None:
    """The answer about values that are not asked about; None for all others."""
    present = [value for value in values if value is not None]
    if any(value.startswith(_REFUSED) for value in present):
        return Answer.failed(f"{name}: {_NO_IMAGE}")
    if not dispatcher.image_urls and any(map(is_web, present)):
        return Answer.failed(f"{name}: {_NO_URL}")
    return None if any(map(is_image, present)) else Answer(None)


def _shows(value: str) -> bool:
    return value.startswith(_REFUSED) or is_image(value)


def may_hold_images(columns: Sequence[Column]) -> bool:
    """Whether some of the values may be images, as ``among_texts`` reads them."""
    return any(map(_may_show, columns))


def _may_show(column: Column) -> bool:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return bool(pc.any(pc.starts_with(column, "data:image/")).as_py())
    if pa.types.is_string_view(column.type):
        return _may_show(column.cast(pa.string()))
    kind = column.type
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _name_or_text(value: pa.Scalar, held: dict[str, Bytes]) -> str | None:
    if not value.is_valid:
        return None
    data: Bytes = memoryview(value.as_buffer())
    if type_of(data) is None and audio.type_of(data) is None:
        text = _text(data)
        if text is None or not text.startswith("data:image/"):
            return _refusal_name(data) if text is None else _beside(text)
    return _name(value, held, beside=True)


def _beside(text: str) -> str:
    """A text as a value beside images: one that looks like an image's name begins with a blank."""
    return f" {text}" if _shows(text) else text


def _text(data: Bytes) -> str | None:
    """Bytes as text; None if they are none."""
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _name(value: pa.Scalar, held: dict[str, Bytes], *, beside: bool) -> str | None:
    """The name or URL of an image, or (``beside`` images) a text."""
    if not value.is_valid:
        return None
    data: Bytes = memoryview(value.as_buffer())
    if audio.type_of(data) is not None:
        name = audio.name_of(data)
        held.setdefault(name, data)
        return name
    if type_of(data) is None:
        url = _url(data)
        if beside and isinstance(url, str) and not is_web(url):
            text = _text(data)
            inline = text is not None and _DATA_URL.match(text.encode().lstrip())
            return url if text is None or inline else _beside(text)
        if url is None or isinstance(url, str):
            return url
        data = url
    image = name_of(data)
    if image is None:
        return _refusal_name(data)
    held.setdefault(image, data)
    return image


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
            return _refusal_name(data)
    if len(text) > _LONGEST_URL or not text.isascii():
        return _refusal_name(data)
    url = text.decode().strip()
    return url if is_web(url) else _refusal_name(data)


def _refusal_name(data: Bytes) -> str:
    """A name of its own for each value that is no image."""
    text = bytes(data).decode("ascii", "replace") if len(data) <= _SHOWN else ""
    return f"{_REFUSED}{text if text.isprintable() and text else f'{len(data):,} bytes'}"
