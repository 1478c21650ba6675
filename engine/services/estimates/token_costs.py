"""Expected tokens and seconds of values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blendfusion.models.protocol.images import IMAGE_TOKENS, has_bytes, is_image
from blendfusion.models.protocol.model import Values
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.services.prompts.prompt import BEHIND, render, replies_of
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.observe.throughput import MeasuredUsage
from blendfusion.services.estimates.loaded_models import KnownModels
from blendfusion.services.estimates.simulated_model import CHARACTERS_PER_TOKEN, Tally
from blendfusion.types import ConstraintKind, Task

ANSWER_TOKENS: dict[ConstraintKind, int] = {
    "boolean": 1,
    "choice": 2,
    "integer": 2,
    "number": 3,
    "date": 6,
    "timestamp": 12,
    "regex": 4,
    "text": 12,
    "list": 12,
    "struct": 40,
    "score": 1,
}
"""Tokens of one answer before any measurement."""
_TURN_TOKENS = 5
"""Tokens of a chat template around one turn."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a number of values; ``seconds`` None: unknown. ``constant_tokens``: the tokens of
    each prompt that are the same for all values."""

    prompt_tokens: int
    evaluated_tokens: int
    completion_tokens: int
    seconds: float | None
    tokens_basis: str
    seconds_basis: str
    constant_tokens: int = 0


class Meter:
    """Costs of requests to the models that a call names: as measured in this session, else by
    counted tokens, else by characters.

    The work of a model once per task, such as calibration, is not included.
    """

    def __init__(
        self, measured: MeasuredUsage, models: KnownModels, names: tuple[str, ...]
    ) -> None:
        self._measured = measured
        self._names = names
        self._model = models.model
        self._shares = models.abilities.shares_prefix
        """Whether the common prefix of prompts is computed once."""
        self._scores = models.abilities.scores_options
        """Whether answers of closed sets are scored instead of generated."""
        self._model_tasks = models.abilities.model_tasks
        self._takes_sample = models.abilities.takes_sample
        self._shots = models.abilities.shots

    def cost(
        self,
        task: Task,
        tally: Tally,
        values: int,
        *,
        beside: int = 0,
        sample: Sequence[Values] = (),
    ) -> Cost:
        """The cost of ``values`` values of ``task``, if they resemble those of ``tally``, of which
        ``beside`` are read for another question; ``sample``: the values that place its threshold.
        """
        if values == 0:
            return Cost(0, 0, 0, 0.0, "nothing to ask", "nothing to ask")
        seen = self._measured.of((task, self._names))
        if seen is not None:
            share = values / seen.values
            basis = f"measured on {count_noun(seen.values, 'value')}"
            return Cost(
                round(seen.prompt_tokens * share),
                round(seen.evaluated_tokens * share),
                round(seen.completion_tokens * share),
                seen.seconds * share,
                basis,
                basis,
                self._head(task),
            )
        readings = 1 if self._is_scripted else len(self._model_tasks(task))
        head, each = self._head(task), readings * self._each(task, tally) + self._behind(task)
        ways = task.consistency
        once = self._sample(task, sample, readings)
        read = (values - beside) * each
        prompt = round(ways * (values * head + read + once))
        evaluated = round(ways * (head + read + once)) if self._shares else prompt
        scored = self._scores and bool(replies_of(task))
        completion = 0 if scored else ways * values * ANSWER_TOKENS[task.constraint.kind]
        tokens_basis = f"{CHARACTERS_PER_TOKEN} characters a token"
        if self._model is not None:
            tokens_basis = "the model's count"
        rate = self._measured.seconds_per_token(self._names)
        seconds = None if rate is None else rate * (evaluated + completion)
        seconds_basis = "no rate yet" if rate is None else "this session's seconds a token"
        return Cost(prompt, evaluated, completion, seconds, tokens_basis, seconds_basis, head)

    def _tokens(self, text: str) -> int:
        if self._model is not None:
            return self._model.count_tokens(text)
        return -(-len(text) // CHARACTERS_PER_TOKEN)

    def _head(self, task: Task) -> int:
        """Tokens of the common prefixes of a task's prompts."""
        if self._is_scripted:
            return self._tokens(task.question)
        turns: list[str] = []
        for run in self._model_tasks(task):
            prompt = render(run, shots=self._shots, listed=not self._scores)
            turns += [prompt.instruction, *(text for shot in prompt.shots for text in shot)]
            turns.append(prompt.head)
        return sum(self._tokens(text) + _TURN_TOKENS for text in turns)

    def _each(self, task: Task, tally: Tally) -> float:
        """Mean tokens of the values of one prompt."""
        if not tally.examples:
            return 0.0
        values = [value for row in tally.examples for value in row if value is not None]
        if any(map(is_image if task.images else has_bytes, values)):
            tokens = sum(IMAGE_TOKENS if is_image(v) else self._tokens(v) for v in values)
            return tokens / len(tally.examples)
        if self._model is None:
            return tally.characters / max(1, tally.values) / CHARACTERS_PER_TOKEN
        return sum(self._value(task, v) for v in tally.examples) / len(tally.examples)

    def _behind(self, task: Task) -> int:
        """Tokens of the question behind each value, where its likelihood counts."""
        if self._is_scripted:
            return 0
        behind = [run for run in self._model_tasks(task) if run.form in BEHIND]
        return sum(self._tokens(text) for run in behind for text in replies_of(run))

    def _sample(self, task: Task, sample: Sequence[Values], readings: int) -> int:
        """Tokens of the sample, each value of which is read once a run."""
        if not self._takes_sample(task):
            return 0
        head = 0 if self._shares else self._head(task)
        each = head + self._behind(task)
        return sum(readings * self._value(task, values) + each for values in sample)

    def _value(self, task: Task, values: Values) -> int:
        if self._is_scripted:
            return sum(self._tokens(v) for v in values if v)
        return self._tokens(render(task, shots=False).block(values))

    @property
    def _is_scripted(self) -> bool:
        """Whether a Python function answers, which reads no prompt: its tokens are those of the
        question and the values."""
        return self._model is not None and isinstance(self._model.inner, ScriptedModel)
