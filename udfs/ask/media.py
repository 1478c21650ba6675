"""Images and recordings among the texts of groups, pairs and columns, by their names.

Such a value is text wherever DataFusion and the functions handle it: the name of its bytes, which
are held for as long as the session runs queries. A model gets the bytes in the places of the names.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from blendfusion.errors import QueryError, connect_with
from blendfusion.models.protocol import audio, images
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.images import Bytes, any_lent, give_back, lend
from blendfusion.models.protocol.model import Values

NAME_OF_BYTES = "name_of_media"
"""The function of SQL that stands around a value that is bytes."""
NOT_READ = (
    "bytes that are neither text nor the image (PNG, JPEG, GIF, WebP) or recording (WAV, FLAC, "
    "Ogg) of a model's question"
)


class Media:
    """The bytes of a session's images and recordings, as long as it runs queries."""

    def __init__(self) -> None:
        self._held: dict[str, Bytes] = {}
        self._runs = 0
        self._lock = threading.Lock()

    def names(self, column: pa.Array) -> pa.Array:
        """The values as texts: the names of images and recordings, whose bytes are held, texts as
        they are, and a name that says so for everything else. NULL and no bytes stay NULL."""
        return pa.array([self._name(value) for value in column], pa.string())

    @contextmanager
    def running(self) -> Iterator[None]:
        """A run of a query; the bytes go with the last one."""
        with self._lock:
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                if not self._runs:
                    give_back(self._held)
                    self._held = {}

    def _name(self, value: pa.Scalar) -> str | None:
        data = bytes(value.as_buffer()) if value.is_valid else b""
        if not data:
            return None
        name = images.name_of(data)
        if name is None and audio.type_of(data) is not None:
            name = audio.name_of(data)
        if name is None:
            text = _text(data)
            if text is not None:
                return text
            name = images.name_of_unreadable(data)
        with self._lock:
            if self._runs and name not in self._held:  # an estimate shows them to nobody
                self._held[name] = data
                lend({name: data})
        return name


def _text(data: bytes) -> str | None:
    """The text of bytes; None if they are none."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def has_media(values: Values) -> bool:
    """Whether values name images, recordings or unreadable bytes."""
    return any_lent() and any(value is not None and images.kinds_in(value) for value in values)


def is_unreadable(values: Values) -> bool:
    """Whether a value, or an item of a list in one, is the name of unreadable bytes."""
    return any(value is not None and "unreadable" in images.kinds_in(value) for value in values)


def list_of_bytes(function: str) -> QueryError:
    """The error of a value that is a list of bytes, which as a text would be their digits."""
    return QueryError(
        f"{function}: a value of type LIST of BINARY is no text",
        hint="Write one image or recording a row: SELECT unnest(images) AS image FROM t in a "
        "subquery. llm_qa(question, image) … GROUP BY reads those of a group together.",
    )


def check_senses(function: str, model: str, abilities: Abilities, values: Sequence[Values]) -> None:
    """Raise QueryError for a model that does not see the images, or hear the recordings, that are
    among ``values``."""
    kinds = {kind for row in values for value in row if value for kind in images.kinds_in(value)}
    kinds |= {"image" for row in values for value in row if value and images.is_web(value)}
    if "image" in kinds and not abilities.sees_images:
        raise QueryError(
            f"{function}: {model} reads text only, no images",
            hint="Connect a model that sees images: on a server with OpenAI's chat API, "
            f"{connect_with('openai:MODEL@http://…/v1')}, or local weights with their projector, "
            f"{connect_with('llama:….gguf', projector='mmproj….gguf')}.",
        )
    if "audio" in kinds and not abilities.hears_audio:
        raise QueryError(
            f"{function}: {model} hears no recordings",
            hint=f"Have them written first: {function}(…, llm_transcribe(recording)). A model that hears "
            "is asked on a server with OpenAI's chat API: "
            f"{connect_with('openai:MODEL@http://…/v1')}.",
        )
