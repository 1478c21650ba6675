"""Samples of a recording, within limits."""

from __future__ import annotations

import io
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from blendfusion.errors import ModelNotFound
from blendfusion.models.services.speech.cut_recordings import is_cut

Samples: TypeAlias = npt.NDArray[np.float32]

MOST_SECONDS = 3600
_RATES = range(4000, 200_000)
_MOST_CHANNELS = 32
_SILENCE = 1e-3
"""Below 60 dB under the loudest sample that a file can have, a model would invent words."""

_QUIET, _LOUD = 0.05, 0.25
"""A recording whose loudest sample is below the first is made as loud as the second."""


class NoAudio(Exception):
    """Bytes that cannot be transcribed; the text is the reason."""


def _soundfile() -> Any:
    try:
        import soundfile
    except (ImportError, OSError) as problem:
        raise ModelNotFound(
            "audio is read by soundfile, which is not installed",
            hint="pip install 'blendfusion[speech]'.",
        ) from problem
    return soundfile


def samples_of(data: bytes) -> tuple[Samples, int]:
    """The samples of one channel, from -1 to 1, and their rate in hertz. Raises NoAudio."""
    soundfile = _soundfile()
    if is_cut(data):
        raise NoAudio("damaged audio: its end is missing")
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            rate, channels = file.samplerate, file.channels
            if rate not in _RATES or not 0 < channels <= _MOST_CHANNELS:
                raise NoAudio(f"damaged audio: it states {rate:,} Hz and {channels} channels")
            # The header may promise anything: so much is read, and no more.
            found = file.read(MOST_SECONDS * rate // channels + 1, dtype="float32", always_2d=True)
    except NoAudio:
        raise
    except (soundfile.SoundFileError, RuntimeError, OSError, ValueError, MemoryError):
        raise NoAudio("damaged audio") from None
    if len(found) > MOST_SECONDS * rate // channels:
        raise NoAudio(f"audio longer than {MOST_SECONDS // channels:,} s, which is not transcribed")
    if not len(found):
        raise NoAudio("audio without samples")
    mono = np.nan_to_num(found.mean(axis=1), nan=0.0, posinf=0.0, neginf=0.0)
    loudest = np.abs(mono).max()
    if loudest < _SILENCE:
        raise NoAudio("audio without sound")
    if loudest < _QUIET:
        mono *= _LOUD / loudest
    return np.clip(mono, -1, 1).astype(np.float32), rate
