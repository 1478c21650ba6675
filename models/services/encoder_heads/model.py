"""An encoder with a head for decisions as a model: closed questions in process, one reading of an
encoder of some hundred million weights for each."""

from __future__ import annotations

import hashlib
import os
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

from blendfusion.errors import ModelFailed, ModelWarning, level_of_caller
from blendfusion.models.constraints.constraint import Json
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.events import model_call, model_loaded
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.protocol.run_aside import run_aside
from blendfusion.models.services.decisions.question import (
    Question,
    answer_of,
    question_of,
    states_of,
    unanswerable,
)
from blendfusion.models.services.encoder_heads.encoder import Encoder, probabilities
from blendfusion.models.services.encoder_heads.prompt import UnknownLayout, fit, options_of
from blendfusion.models.services.llama.context import check_gguf
from blendfusion.models.services.llama.first_load import REMEDY
from blendfusion.models.services.llama.switch import Switch
from blendfusion.models.services.llama.weights import identity
from blendfusion.models.services.weights.gguf import BrokenFile, check
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task, Usage

_BATCH = 64
_VERSION = "1"
"""A part of fingerprints: change it with the wording of prompts."""


class EncoderModel(StreamingAnswers):
    """A GGUF file of Laya's kind. Weights load at the first use. Each question about each value is
    a prompt of its own, so that no answer depends on its company. Safe for threads: they are served
    one after the other.

    A question or an option that is longer than the head was trained for is shortened as in its
    training, with a ModelWarning; a value that is too long fails."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path, self._options = path, options
        check_gguf(path)
        self._lock = threading.Lock()
        self._opened: Encoder | None = None
        self._process = os.getpid()
        key = f"{identity(path)}\n{_VERSION}"
        self._fingerprint = f"laya:{hashlib.sha256(key.encode()).hexdigest()[:32]}"

    @property
    def name(self) -> str:
        return f"laya:{self.path.name}"

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            scores_options=True,
            shots=False,
            fingerprint_lasts=True,
            loaded=self._opened is not None,
            name=self.name,
            fingerprint=self._fingerprint,
            unanswerable=unanswerable,
        )

    @property
    def info(self) -> ModelInfo:
        with self._lock:
            window = self._encoder(Switch()).window
        return ModelInfo(name=self.name, fingerprint=self._fingerprint, window=window)

    @property
    def batch_size(self) -> int:
        return _BATCH

    def count_tokens(self, text: str) -> int:
        with self._lock:
            return len(self._encoder(Switch()).tokens(text))

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; each answer is reported as it is computed."""
        question = question_of(task)
        if question is None:
            raise ModelFailed(f"{self.name} {unanswerable(task)}")
        switch = Switch()

        def work() -> list[Answer]:
            answers = []
            with self._lock:
                encoder = self._encoder(switch)
                for place, state in enumerate(states_of(task, values)):
                    switch.check()
                    answers.append(self._one(encoder, task, question, state, switch))
                    on_answer(place, answers[-1])
            return answers

        with model_call("llama.cpp", self.name) as call:
            answers = run_aside(work, switch.stop)
            call.spent = Usage.total(answer.usage for answer in answers)
        return answers

    def _one(
        self, encoder: Encoder, task: Task, question: Question, state: Json, switch: Switch
    ) -> Answer:
        n_options = len(options_of(question))
        try:
            layout = fit(
                encoder.tokens(encoder.template.render(question, state)),
                n_options,
                marker=encoder.marker,
                separator=encoder.separator,
                most=encoder.head_tokens,
            )
        except UnknownLayout as error:
            raise ModelFailed(f"'{self.path}' cannot be asked: {error}") from error
        if layout.is_cut:
            self._warn_of_cut(encoder, question)
        if len(layout.tokens) > encoder.window:
            reason = f"the prompt has {len(layout.tokens)} tokens, the model reads {encoder.window}"
            return Answer.failed(reason, too_long=True).with_usage(Usage(values=1, failed=1))
        scores = encoder.scores(layout, question.kind, switch)
        odds = probabilities(scores, encoder.temperature(question.kind, n_options))
        if question.kind == "boolean":
            odds.reverse()  # a yes comes first in answers
        count = len(layout.tokens)
        spent = Usage(values=1, prompt_tokens=count, evaluated_tokens=count)
        return answer_of(task, question, odds).with_usage(spent)

    def _warn_of_cut(self, encoder: Encoder, question: Question) -> None:
        warnings.warn(
            f"{self.name} reads {encoder.head_tokens} tokens of a question with its options, and "
            f"some of '{question.text[:60]}' are left out",
            ModelWarning,
            stacklevel=level_of_caller(),
        )

    def close(self) -> None:
        with self._lock:
            if self._opened is not None and self._process == os.getpid():
                self._opened.close()
            self._opened = None

    def _encoder(self, switch: Switch) -> Encoder:
        """The encoder, loaded at the first use and in each process. The caller holds the lock."""
        if self._opened is None or self._process != os.getpid():
            started = time.perf_counter()
            try:
                check(self.path)
            except (BrokenFile, OSError) as error:
                reason = f"llama.cpp cannot load '{self.path}': {error}"
                raise ModelFailed(reason, hint=REMEDY) from None
            self._opened = Encoder(self.path, self._options.threads, switch)
            self._process = os.getpid()
            model_loaded(self.name, time.perf_counter() - started)
        return self._opened
