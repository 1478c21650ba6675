"""Builds the prompt of a task and its values, the same for every back end.

The common part of a task's requests comes first and the values come last, so that a back end can
compute the common prefix once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from blendfusion.models.constraints.constraint import closed_set, points, possible_answers
from blendfusion.models.protocol.images import is_image
from blendfusion.models.protocol.model import Values
from blendfusion.models.services.prompts.examples import ANSWERED_YES, BUILT_IN, SCORED, Shot
from blendfusion.types import Constraint, Example, StructField, Task

T = TypeVar("T")

PROMPT_VERSION = "3"
"""A part of fingerprints: change it with any wording here or in ``examples``."""

BEHIND = ("likelihood", "behind")
"""The forms of tasks whose question stands behind the text."""
_LINE_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
"""A place of a value in a question; a brace that is doubled is a brace."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The texts of one task.

    ``shots`` pairs questions with their right replies. ``replies`` are the model's outputs for each
    canonical answer of a closed set, in its order (Yes/No for true/false); () for an open set.
    """

    task: Task
    instruction: str
    shots: tuple[tuple[str, str], ...]
    question: str
    label: str
    replies: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """The beginning of every question of this task; the block of values follows."""
        return self.label if self.task.form in BEHIND else f"{self.question}\n{self.label}"

    def common(self, values: Values, *, one_line: bool = False) -> str:
        """The beginning of the block that other requests of a task repeat, as a back end that keeps
        it computes it once: the tables of a query. '' for none."""
        if self.task.form != "query" or values[0] is None:
            return ""
        return f" {_fold_spaces(values[0])}" if one_line else f"\n{values[0]}"

    def block(self, values: Values, *, one_line: bool = False) -> str:
        """The values alone, with a leading blank or line break. Among several values, the further
        lines of one are indented: only this module begins a line with a name or a dash. With
        ``one_line``, a value cannot begin a line (for plain templates, where a line break ends a
        turn)."""
        if common := self.common(values, one_line=one_line):
            return common + self.block((None, *values[1:]), one_line=one_line)
        alone = len(values) == 1 and not self.task.aggregate
        inner: Callable[[str], str] = _fold_spaces if one_line else str if alone else _indent
        present = [(name, inner(value)) for name, value in self.named_values(values)]
        if self.task.aggregate:
            return "".join(f"\n- {value}" for _, value in present)
        if alone:
            return "".join(f" {value}" for _, value in present)
        return "".join(f"\n{name}: {value}" for name, value in present)

    def head_of(self, values: Values) -> str:
        """The beginning of the question about these values: images, or also texts beside them."""
        mixed = self.task.images and not all(
            is_image(value) for _, value in self.named_values(values)
        )
        return f"{self.question}\nValues:" if mixed else self.head

    def beside(self, values: Values) -> list[tuple[str, str, str]]:
        """The values that are not NULL, each with its name and its text, which is '' for an image;
        a line break in a text does not begin a line of the prompt."""
        return [
            (name, value, "" if is_image(value) else _indent(value))
            for name, value in self.named_values(values)
        ]

    def ask(self, values: Values) -> str:
        """The whole question about one tuple of values."""
        return self.head + self.block(values)

    def messages(self, values: Values) -> list[dict[str, str]]:
        """The prompt as turns of a chat: system, the shots, the question."""
        return [*self.opening, {"role": "user", "content": self.ask(values)}]

    @property
    def opening(self) -> list[dict[str, str]]:
        """The messages before the values, equal for all: the instruction and worked examples."""
        turns = [{"role": "system", "content": self.instruction}]
        for question, reply in self.shots:
            turns.append({"role": "user", "content": question})
            turns.append({"role": "assistant", "content": reply})
        return turns

    def named_values(self, values: Values) -> list[tuple[str, str]]:
        """The values that are not NULL, each with its name."""
        names = self._names(len(values))
        return [(n, v) for n, v in zip(names, values, strict=True) if v is not None]

    def _names(self, count: int) -> list[str]:
        if self.task.aggregate:
            return [""] * count
        names = [*self.task.columns, *[""] * count][:count]
        noun = "image" if self.task.images else "value"
        return [_fold_spaces(name) or f"{noun} {place}" for place, name in enumerate(names, 1)]


def render(task: Task, *, shots: bool = True, listed: bool = True) -> Prompt:
    r"""The prompt of ``task``: with its own examples if it has any, else (with ``shots``) the
    built-in ones.

    ``listed``: name the options of a choice. A model that generates its answer must know them. A
    model that scores options was measured to do better without (benchmarks/lab.md), unless the
    options have meanings, and options from data then stay out of the common prefix. Meanings are
    listed in an order independent of the user's.

    >>> task = Task("llm_filter", "Is {} a fruit?", columns=("name",))
    >>> render(task, shots=False).ask(("apple",))
    'Question: Is the text a fruit?\nText: apple'
    """
    label = "Texts:" if task.aggregate else "Text:" if len(task.columns) <= 1 else "Values:"
    if task.form == "query":
        label = ""  # the first value has its own
    if task.images:
        label = "Image:" if len(task.columns) <= 1 else "Images:"
    if task.form in BEHIND:
        return _question_behind(task, label)
    options = ""
    if task.constraint.kind == "choice" and (listed or task.constraint.meanings):
        constraint = task.constraint if listed else _in_order(task.constraint)
        options = _options_text(constraint, task.variant)
    fields = [(f.name, _field_description(f)) for f in task.constraint.fields]
    question = _question_text(_question(task), options, fields, _scale_text(task.constraint))
    examples = _shots(task, question, label, built_in=shots, listed=listed)
    return Prompt(
        task=task,
        instruction=f"{_instruction(task, listed=listed)}{_MANNERS[task.variant % len(_MANNERS)]}",
        shots=_vary_order(examples, task.variant),
        question=question,
        label=label,
        replies=replies_of(task),
    )


def _question_behind(task: Task, label: str) -> Prompt:
    """The prompt of a question that stands behind the text: after texts, each with a question whose
    answer is yes, or with either answer where the answer counts, too."""
    alone = task.form == "likelihood"
    shots = tuple(
        (f"Text: {shot.text}\nQuestion: {shot.question}", shot.reply)
        for shot in (ANSWERED_YES if alone else SCORED["boolean"])
    )
    instruction = "" if alone else _INSTRUCTIONS["boolean"]
    return Prompt(task, instruction, _vary_order(shots, task.variant), "", label, replies_of(task))


def replies_of(task: Task) -> tuple[str, ...]:
    """The model's output for each canonical answer of the task's closed set, in its order; for a
    score, the points of its scale; for the likelihood of a question, the question."""
    if task.form in BEHIND:
        return (_question(task),)
    if task.constraint.kind == "boolean":
        return ("Yes", "No")
    return possible_answers(task.constraint)


def reference(question: str, columns: Sequence[str], noun: str = "text") -> str:
    """The question with ``{}`` and ``{column}`` replaced by words that refer to the value, and
    ``{{word}}`` by ``{word}``.

    >>> reference("Does {title} fit {}?", ["title", "body_text"])
    'Does the title fit the body text?'
    """
    places = iter(range(len(columns)))

    lowered = [column.lower() for column in columns]
    doubled = 0

    def point_at(found: re.Match[str]) -> str:
        nonlocal doubled
        if found[1] is None:
            doubled += 1 if found[0] == "{{" else -1
            if doubled < 0:  # the end of braces in braces
                doubled = 0
                return found[0]
            return str(found[0][0])
        name = found[1].strip().lower()
        if name and name not in lowered:
            return found[0]
        if len(columns) <= 1:
            return f"the {noun}"
        place = lowered.index(name) if name else next(places, None)
        if not name:
            while place is not None and lowered[place] in named:
                place = next(places, None)
        if place is None:
            return f"the {noun}"
        return f"the {(columns[place] or f'{unnamed} {place + 1}').replace('_', ' ')}"

    unnamed = "value" if noun == "text" else noun
    named = {found.strip().lower() for found in _PLACEHOLDER.findall(question) if found.strip()}
    return _PLACEHOLDER.sub(point_at, question)


def _question(task: Task) -> str:
    question = task.question.strip() or _question_unsaid(task)
    if task.form == "statement":
        question = f"Is this statement true? {question}"
    noun = "image" if task.images else "text"
    return " ".join(reference(question, task.columns, noun).split())


def _question_unsaid(task: Task) -> str:
    if task.form == "summary":
        return "What is a short summary?"
    if task.constraint.kind == "struct":
        if len(task.columns) > 1:
            return "What do the values say about these fields?"
        return f"What does the {'image' if task.images else 'text'} say about these fields?"
    return "Which label fits best?" if task.constraint.kind == "choice" else ""


def _question_text(
    question: str,
    options: str = "",
    fields: Sequence[tuple[str, str]] = (),
    scale: str = "",
) -> str:
    lines = [f"Question: {question}"] if question else []
    if options:
        lines.append(f"Options: {options}")
    if fields:
        lines.append(f"Fields: {_fields_text(fields)}")
    if scale:
        lines.append(f"Scale: {scale}")
    return "\n".join(lines)


def _scale_text(constraint: Constraint) -> str:
    """The ends of a scale, or its points with their meanings; '' without a scale."""
    if constraint.scale is None:
        return ""
    if not constraint.meanings:
        return f"{constraint.scale[0]} to {constraint.scale[1]}"
    pairs = zip(points(constraint), map(_one_line, constraint.meanings), strict=True)
    return "; ".join(f"{point} ({meaning})" for point, meaning in pairs)


def _options_text(constraint: Constraint, variant: int) -> str:
    """The options of a choice, with their meanings if they have any."""
    options = list(map(_one_line, constraint.options))
    if not constraint.meanings:
        return ", ".join(_vary_order(options, variant))
    pairs = list(zip(options, map(_one_line, constraint.meanings), strict=True))
    return "; ".join(f"{option} ({meaning})" for option, meaning in _vary_order(pairs, variant))


def _in_order(constraint: Constraint) -> Constraint:
    pairs = sorted(zip(constraint.options, constraint.meanings, strict=True))
    options, meanings = zip(*pairs, strict=True)
    return replace(constraint, options=options, meanings=meanings)


_MANNERS = ("", " Read the text first.", " Go by what the text says.")
"""Additions to a question in the ways of self-consistency."""


def _vary_order(listed: Sequence[T], variant: int) -> tuple[T, ...]:
    """The items in another order for each variant; variant 0 keeps the order."""
    turn = variant % len(listed) if listed else 0
    turned = (*listed[turn:], *listed[:turn])
    return turned[::-1] if variant % 2 else turned


def _fields_text(fields: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{_one_line(name)} ({meant})" for name, meant in fields)


def _field_description(member: StructField) -> str:
    """The description of a field: its form, then the user's comment."""
    form, description = _form(member.constraint), _fold_spaces(member.description)
    return f"{form}: {description}" if description else form


def _form(constraint: Constraint) -> str:
    if constraint.kind == "choice":
        *others, last = map(_one_line, constraint.options)
        return f"{', '.join(others)} or {last}" if others else last
    if constraint.kind == "list":
        return f"list of {_form(constraint.item or Constraint())}"
    if constraint.kind == "struct":
        return f"object of {_fields_text([(f.name, _field_description(f)) for f in constraint.fields])}"
    return _FORMS.get(constraint.kind, "text")


_FORMS = {
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "date": "date YYYY-MM-DD",
    "timestamp": "time YYYY-MM-DDTHH:MM:SS",
}


_INSTRUCTIONS = {
    "boolean": "Answer each question about a text with yes or no.",
    "choice": "Answer each question about a text with one of the options.",
    "integer": "Answer each question about a text with a whole number.",
    "number": "Answer each question about a text with a number.",
    "date": "Answer each question about a text with a date (YYYY-MM-DD).",
    "timestamp": "Answer each question about a text with a time (YYYY-MM-DDTHH:MM:SS).",
    "list": "Answer each question about a text with a JSON list.",
    "score": "Answer each question about a text with a whole number on the scale.",
    "struct": "Answer each question about a text with a JSON object of the fields, null for what "
    "the text does not say.",
}


def _instruction(task: Task, *, listed: bool) -> str:
    if task.form == "summary":
        return "Summarize the text in one or two sentences."
    if task.form == "query":
        return "You write SQL. Reply with one query and nothing else."
    kind = task.constraint.kind
    if kind == "choice" and not listed:
        return "Answer each question about a text."
    instruction = _INSTRUCTIONS.get(kind, "Answer each question about a text in a few words.")
    if task.images:
        instruction = instruction.replace("a text", "an image").replace("the text", "the image")
    if kind == "list" and task.constraint.lengths:
        instruction += f" It has {task.constraint.lengths}items."
    if task.constraint.literals and kind != "choice":
        instruction += f" Possible answers look like: {', '.join(task.constraint.literals)}."
    return instruction


def _shots(
    task: Task, question: str, label: str, *, built_in: bool, listed: bool
) -> tuple[tuple[str, str], ...]:
    if task.examples:
        bare = Prompt(task, "", (), question, label)
        # They may come from data, which must not begin a line.
        return tuple(
            (
                bare.head + bare.block(example.values, one_line=True),
                _one_line(_reply(task, example)),
            )
            for example in task.examples
        )
    if not built_in or task.form in ("summary", "query") or task.aggregate or task.images:
        return ()
    shots = (BUILT_IN if listed else SCORED).get(task.constraint.kind, ())
    return tuple((_shot_text(shot, listed=listed), shot.reply) for shot in shots)


def _shot_text(shot: Shot, *, listed: bool) -> str:
    question = _question_text(shot.question, ", ".join(shot.options) if listed else "", shot.fields)
    return f"{question}\nText: {shot.text}"


def _reply(task: Task, example: Example) -> str:
    canonical = closed_set(task.constraint)
    if canonical and example.answer in canonical:
        return replies_of(task)[canonical.index(example.answer)]
    return example.answer


def _indent(value: str) -> str:
    return _LINE_BREAK.sub(r"\g<0>  ", value)


def _one_line(option: str) -> str:
    return _LINE_BREAK.sub(" ", option)


def _fold_spaces(value: str) -> str:
    return " ".join(value.split())
