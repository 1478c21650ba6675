"""A model of the library outlines (``outlines.from_transformers(…)`` and the like) as a model.

outlines masks the tokens that a regular expression does not allow, so answers are inside their
constraints as in process. Answers are greedy.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from blendfusion.errors import ModelFailed, ModelNotFound
from blendfusion.models.constraints.constraint import answer_without_model, holds, regex_of
from blendfusion.models.prompts.thoughts import without_thoughts
from blendfusion.models.protocol.model import OnAnswer, StreamingAnswers, Values
from blendfusion.models.services.prompts.examples import shows_examples
from blendfusion.models.services.prompts.prompt import Prompt, render
from blendfusion.options import Options
from blendfusion.types import Answer, Constraint, ModelInfo, Task, Usage

_MOST_GENERATORS = 16
"""The compiled constraints that are kept."""
_BATCH_ROWS = 16
_WINDOW = 4_096
"""The window of a model that does not declare it."""
_BACK_END = "llguidance"
"""The library with which outlines masks tokens: its own kernels need numba for llama.cpp, and lose
the error."""
_BATCHED = ("Transformers", "VLLMOffline", "MLXLM")
"""The classes of outlines whose models take several prompts at once."""


class OutlinesModel(StreamingAnswers):
    """Answers by a model of outlines, which the caller opened and may close."""

    def __init__(self, model: Any, options: Options) -> None:
        self._model = model
        self._options = options
        self._kind = type(model).__name__
        self._generators: OrderedDict[Constraint, Any] = OrderedDict()
        try:
            self._generator = import_module("outlines").Generator
            self._chat = import_module("outlines.inputs").Chat
            self._regex = import_module("outlines.types").Regex
        except (ImportError, AttributeError) as problem:
            raise ModelNotFound(
                f"outlines cannot be used: {problem}", hint="pip install 'blendfusion[outlines]'."
            ) from None
        self._info = ModelInfo(
            f"outlines:{self._kind}",
            f"outlines:{uuid.uuid4().hex}",
            _window(model),
            {
                "max_tokens": str(options.max_tokens),
                "shots": str(shows_examples(options.shots)).lower(),
            },
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def batch_size(self) -> int:
        return _BATCH_ROWS

    def count_tokens(self, text: str) -> int:
        """The tokens of the model's tokenizer; an upper estimate for a model without one."""
        encode = getattr(getattr(self._model, "tokenizer", None), "encode", None)
        if encode is None or not text:
            return len(text.encode())
        tokens, _ = encode(text)
        count = getattr(tokens, "numel", None)  # of a tensor
        return int(count() if callable(count) else len(tokens))

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """The answers in order, each reported when its batch is done."""
        if task.images:
            raise ModelFailed(f"{self._info.name} takes no images here")
        answers: list[Answer] = []
        step = _BATCH_ROWS if self._kind in _BATCHED else 1
        prompt = render(task, shots=shows_examples(self._options.shots))
        for start in range(0, len(values), step):
            for answer in self._batch(prompt, values[start : start + step]):
                on_answer(len(answers), answer)
                answers.append(answer)
        return answers

    def _batch(self, prompt: Prompt, values: Sequence[Values]) -> list[Answer]:
        constraint = prompt.task.constraint
        only = answer_without_model(constraint)
        if only is not None:
            return [only] * len(values)
        turns = [prompt.messages(row) for row in values]
        tokens = [sum(self.count_tokens(t["content"]) + 8 for t in one) for one in turns]
        room = self._info.window - self._options.max_tokens
        fitting = [i for i, count in enumerate(tokens) if count <= room]
        began = time.perf_counter()
        texts = self._texts(constraint, [turns[i] for i in fitting]) if fitting else []
        seconds = (time.perf_counter() - began) / max(1, len(fitting))
        replies = dict(zip(fitting, texts, strict=True))
        answers = []
        for place, count in enumerate(tokens):
            if place not in replies:
                reason = f"the value takes {count} tokens with its question, the window is {room}"
                answers.append(Answer.failed(reason, Usage(failed=1), too_long=True))
                continue
            usage = Usage(
                values=1,
                calls=int(place == fitting[0]),
                prompt_tokens=count,
                evaluated_tokens=count,
                completion_tokens=self.count_tokens(replies[place]),
                seconds=seconds,
            )
            answers.append(_read(constraint, replies[place], usage))
        return answers

    def _texts(self, constraint: Constraint, turns: Sequence[Any]) -> list[str]:
        """The texts that the model generates. Raises ModelFailed for any error of outlines."""
        try:
            generate = self._under(constraint)
            chats = [self._chat(list(one)) for one in turns]
            settings = self._settings(constraint)
            if len(chats) > 1:
                return [_first(reply) for reply in generate.batch(chats, **settings)]
            return [_first(generate(chat, **settings)) for chat in chats]
        except Exception as problem:
            raise ModelFailed(
                f"{self._info.name}: {type(problem).__name__}: {problem}", foreign=True
            ) from problem

    def _under(self, constraint: Constraint) -> Any:
        """A generator of outlines under a constraint, compiled once; of free text without one."""
        if constraint not in self._generators:
            free = constraint.kind == "text"
            pattern = None if free else self._regex(regex_of(constraint))
            self._generators[constraint] = self._generator(self._model, pattern, _BACK_END)
            if len(self._generators) > _MOST_GENERATORS:
                self._generators.popitem(last=False)
        self._generators.move_to_end(constraint)
        return self._generators[constraint]

    def _settings(self, constraint: Constraint) -> dict[str, Any]:
        """The arguments of the library below outlines for greedy answers of limited length."""
        most = constraint.max_tokens or self._options.max_tokens
        if self._kind.startswith("Transformers"):
            return {"max_new_tokens": most, "do_sample": False}
        if self._kind == "VLLMOffline":
            sampling = import_module("vllm").SamplingParams
            return {"sampling_params": sampling(max_tokens=most, temperature=0.0)}
        if self._kind == "MLXLM":  # greedy unless it gets a sampler
            return {"max_tokens": most}
        return {"max_tokens": most, "temperature": 0.0}

    def close(self) -> None:
        """Drop compiled constraints; the model belongs to the caller."""
        self._generators.clear()


def _window(model: Any) -> int:
    """The window of the model below, as far as it declares one."""
    inner = getattr(model, "model", None)
    n_ctx = getattr(inner, "n_ctx", None)
    if callable(n_ctx):
        return int(n_ctx())
    most = getattr(getattr(inner, "config", None), "max_position_embeddings", None)
    return most if isinstance(most, int) and most > 0 else _WINDOW


def _first(reply: Any) -> str:
    """The text of a reply, of several samples the first."""
    return str(reply[0] if isinstance(reply, list) else reply)


def _read(constraint: Constraint, text: str, usage: Usage) -> Answer:
    if constraint.kind == "text":
        text = without_thoughts(text) or ""
        text = next((line for line in text.strip().splitlines() if line.strip()), "").strip()
    if (constraint.kind == "text" and not text) or not holds(constraint, text):
        reason = f"answered {text[:60]!r}, which is not {constraint}"
        return Answer.failed(reason, replace(usage, failed=1))
    return Answer(text, usage=usage)
