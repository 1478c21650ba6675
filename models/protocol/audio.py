"""Audio among the values of requests.

As an image is, it is represented by its name: type, size and a digest of its bytes, so equal
recordings are equal values. The bytes are held as those of images are.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from blendfusion.models.protocol.images import Bytes

MOST_BYTES = 64 << 20
_DIGEST_BYTES = 16
_LONGEST_BEGINNING = 12
_BEGINNINGS = (
    (re.compile(rb"RIFF.{4}WAVE", re.DOTALL), "audio/wav"),
    (re.compile(rb"fLaC"), "audio/flac"),
    (re.compile(rb"OggS"), "audio/ogg"),
)
NO_AUDIO = "no audio: it is not the bytes of a WAV, FLAC or Ogg file (a path or URL is not read)"
TOO_LARGE = f"audio of more than {MOST_BYTES >> 20} MB, which is not transcribed"


def type_of(data: Bytes) -> str | None:
    """The media type by the first bytes of a recording; None for an unknown type.

    >>> type_of(b"fLaC...")
    'audio/flac'
    """
    start = bytes(data[:_LONGEST_BEGINNING])
    return next((kind for begins, kind in _BEGINNINGS if begins.match(start)), None)


def name_of(data: Bytes) -> str:
    """The name of a recording, or of bytes that are none.

    >>> name_of(b"fLaC")
    'audio/flac, 4 bytes, d86f8a669d6d580a96b08e75277ebd23'
    """
    kind = type_of(data) or "no audio"
    return f"{kind}, {len(data):,} bytes, {blake2b(data, digest_size=_DIGEST_BYTES).hexdigest()}"


def problem_of(name: str, size: int) -> str:
    """Why a value is not transcribed; '' if it is."""
    if not name.startswith("audio/"):
        return NO_AUDIO
    return TOO_LARGE if size > MOST_BYTES else ""
