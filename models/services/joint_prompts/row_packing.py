"""Many values in one prompt, where tokens are paid: the question and its examples are sent once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from blendfusion.models.constraints.constraint import holds, possible_answers
from blendfusion.models.prompts.canonical import canonical
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.model import Model, OnAnswer, Values, answer_each
from blendfusion.models.services.joint_prompts.joint_model import JointAnswers, JointModel
from blendfusion.models.services.prompts.prompt import reference, render
from blendfusion.types import Answer, Constraint, ModelInfo, StructField, Task

SHORT_KINDS = ("boolean", "choice", "integer", "number", "date", "timestamp")
"""Kinds of answers that are short. A text or a struct costs more than its question."""
_SHARE = 0.5
"""The share of the window that the values of one prompt may take."""


class PackedModel(JointModel):
    """Asks ``inner`` about up to ``most`` values in one prompt, each with a field of its own in the
    answer. A value without a valid answer there is asked alone."""

    def __init__(self, inner: Model, most: int) -> None:
        super().__init__(inner)
        self._most = most

    @property
    def abilities(self) -> Abilities:
        able = abilities_of(self.inner)
        return replace(able, at_once=able.at_once * self._most, fingerprint="")

    @property
    def info(self) -> ModelInfo:
        return self._info("packed", str(self._most), rows_per_prompt=str(self._most))

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size * self._most

    def answer_each(
        self, task: Task, values: Sequence[Values], on_answer: OnAnswer
    ) -> list[Answer]:
        """Like ``answer``; the answers of a prompt are reported together."""
        single = task.images or task.aggregate or task.constraint.distribution
        if single or task.constraint.kind not in SHORT_KINDS:
            return answer_each(self.inner, task, values, on_answer)
        answers = JointAnswers(values, on_answer)
        texts = _texts(task, values)
        groups: dict[int, list[list[int]]] = {}
        for group in self._groups(texts):
            groups.setdefault(len(group), []).append(group)
        for size, alike in groups.items():
            if size == 1:
                continue
            packed = _packed_task(task, size)

            def hear(
                number: int, answer: Answer, alike: list[list[int]] = alike, packed: Task = packed
            ) -> None:
                group = alike[number]
                parts = parts_of(answer, packed)
                answers.spent[group[0]] = replace(answer.usage, values=0, failed=0)
                for place, text in zip(group, parts, strict=True):
                    if text is not None:
                        answers.settle(place, Answer(text))

            rows = [tuple(texts[place] for place in group) for group in alike]
            answer_each(self.inner, packed, rows, hear)
        return answers.complete(self.inner, task)

    def _groups(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """The places of the values of each prompt."""
        room = int(self.inner.info.window * _SHARE)
        group: list[int] = []
        tokens = 0
        for place, text in enumerate(texts):
            more = self.inner.count_tokens(text)
            if group and (len(group) == self._most or tokens + more > room):
                yield group
                group, tokens = [], 0
            group.append(place)
            tokens += more
        if group:
            yield group


def _texts(task: Task, values: Sequence[Values]) -> list[str]:
    """Each value as one line; several values of a row with their names."""
    prompt = render(task, shots=False)
    if len(task.columns) <= 1:
        return [prompt.block(row, one_line=True).strip() for row in values]
    return ["; ".join(f"{n}: {v}" for n, v in prompt.named_values(row)) for row in values]


def stated_question(task: Task, order: str = "") -> str:
    """The question of ``task`` in a sentence, an order behind it, and what else a prompt says of
    its answers: meanings and examples."""
    plain = task.in_full
    question = reference(plain.question, plain.columns)
    if plain.form == "statement":
        question = f"Is this true of the text? {question}"
    lines = [f"{question} {order}".strip()]
    if plain.constraint.meanings:
        pairs = zip(possible_answers(plain.constraint), plain.constraint.meanings, strict=True)
        lines.append("; ".join(f"{option}: {meaning}" for option, meaning in pairs))
    for example in plain.examples:
        lines.append(f"Example: {'; '.join(example.values)} → {example.answer}")
    return " ".join(lines)


def _packed_task(task: Task, size: int) -> Task:
    """The question of ``task`` about ``size`` texts, with an answer for each."""
    numbers = [str(number) for number in range(1, size + 1)]
    question = stated_question(
        task, "Answer for each text by itself, in the field with its number."
    )
    fields = tuple(StructField(number, task.in_full.constraint) for number in numbers)
    return Task(
        ingredient=task.ingredient,
        question=question.replace("{", "{{").replace("}", "}}"),
        constraint=Constraint("struct", fields=fields),
        columns=tuple(f"text {number}" for number in numbers),
    )


def parts_of(answer: Answer, joined: Task) -> list[str | None]:
    """The answer in each field of a task that asks for a struct; None where there is no valid
    one."""
    fields = joined.constraint.fields
    if answer.text is None:
        return [None] * len(fields)
    stated = json.loads(answer.text)
    found: list[str | None] = []
    for field in fields:
        value = stated.get(field.name)
        text = None if value is None else canonical(value, field.constraint)
        found.append(text if text is not None and holds(field.constraint, text) else None)
    return found
