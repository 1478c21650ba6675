"""Moonshine (Jeffries et al. 2024), with the English weights in the package moonshine-voice."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import Any

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.images import image_bytes
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.speech.decode import NoAudio, samples_of
from blendfusion.types import Answer, ModelInfo, Task, Usage

_WEIGHTS = "assets/tiny-en"
_FILES = ("encoder_model.ort", "decoder_model_merged.ort", "tokenizer.bin")
_HINT = "pip install 'blendfusion[speech]'."


class MoonshineModel:
    """Transcribes English speech, one recording after the other, on the CPU."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("moonshine_voice")
        if found is None or found.origin is None:
            raise ModelNotFound(
                "'moonshine' needs moonshine-voice, which is not installed", hint=_HINT
            )
        self._folder = Path(found.origin).parent / _WEIGHTS
        if not all((self._folder / name).is_file() for name in _FILES):
            raise ModelNotFound(
                "the installed moonshine-voice has no weights: versions from 0.1 download them",
                hint=_HINT,
            )
        self._version = version("moonshine-voice")
        self._transcriber: Any = None
        self._lock = Lock()

    @property
    def info(self) -> ModelInfo:
        name = f"moonshine tiny-en {self._version}"
        return ModelInfo("moonshine", name, window=4096)

    @property
    def abilities(self) -> Abilities:
        return Abilities(hears_speech=True, fingerprint_lasts=True)

    @property
    def batch_size(self) -> int:
        return 4

    def count_tokens(self, text: str) -> int:
        return len(text) // 4 + 1

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        if not task.audio:
            raise ModelFailed("moonshine only transcribes speech", hint="Name another model.")
        return [self._transcribe(value) for (value,) in values]

    def _transcribe(self, value: str | None) -> Answer:
        try:
            samples, rate = samples_of(image_bytes(value or ""))
        except NoAudio as problem:
            return Answer.failed(str(problem), Usage(values=1, failed=1))
        with self._lock:
            if self._transcriber is None:
                from moonshine_voice import ModelArch, Transcriber

                self._transcriber = Transcriber(str(self._folder), ModelArch.TINY)
            found = self._transcriber.transcribe_without_streaming(samples.tolist(), rate)
        text = " ".join(line.text.strip() for line in found.lines).strip()
        usage = Usage(values=1, failed=not text, calls=1, completion_tokens=self.count_tokens(text))
        return Answer(text, usage=usage) if text else Answer.failed("audio without speech", usage)

    def close(self) -> None:
        with self._lock:
            if self._transcriber is not None:
                self._transcriber.close()
                self._transcriber = None
