"""The prompt of an encoder with a head for decisions: a question, its options, each behind a token
at which the head is read, and a state."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from blendfusion.models.constraints.constraint import Json
from blendfusion.models.services.decisions.question import Question

_MOST_OPTION_TOKENS = 48
_LEAST_OPTION_TOKENS = 4
"""With their marker."""
_LEAST_QUESTION_TOKENS = 8
_SPARED = 16
"""Tokens that options leave to the question where they can."""


class UnknownLayout(Exception):
    """A template did not put the parts of a prompt where the head expects them."""


@dataclass(frozen=True)
class Template:
    """The template that a file carries, and the texts of its control tokens, which no question,
    option or value may name."""

    source: str
    control: frozenset[str]

    @cached_property
    def _control_names(self) -> re.Pattern[str]:
        longest_first = sorted(filter(None, self.control), key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def render(self, question: Question, state: Json) -> str:
        """The prompt of a question about a state. Raises UnknownLayout."""
        from jinja2.exceptions import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        try:
            return environment.from_string(self.source).render(
                id="q",
                type=type_of(question.kind),
                instructions=self._plain(question.text),
                options=self._plain(options_of(question)),
                state=self._plain(state),
                images=[],
            )
        except (TemplateError, TypeError, ValueError) as error:
            raise UnknownLayout(f"its template cannot be filled in: {error}") from error

    def _plain(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._control_names.sub(" ", value)
        if isinstance(value, list):
            return [*map(self._plain, value)]
        if isinstance(value, dict):
            return {key: self._plain(held) for key, held in value.items()}
        return value


def type_of(kind: str) -> str:
    """The name of a kind of questions in templates and files."""
    return "noul" if kind == "boolean" else kind


def options_of(question: Question) -> list[Json]:
    """The options of a question with their descriptions, in the order in which the head was trained
    to see them: no before yes, levels from the lowest on."""
    if question.kind == "boolean":
        return [{"key": key, "description": None} for key in ("false", "true")]
    if question.kind == "score":
        levels = enumerate(question.level_names)
        return [{"key": str(number), "description": name} for number, name in levels]
    pairs = zip(question.options, question.meanings, strict=True)
    return [{"key": option, "description": meaning or None} for option, meaning in pairs]


@dataclass(frozen=True, slots=True)
class Layout:
    """The tokens of a prompt, with the places of the options' markers; whether the question or an
    option lost some."""

    tokens: tuple[int, ...]
    markers: tuple[int, ...]
    is_cut: bool


def fit(tokens: Sequence[int], n_options: int, *, marker: int, separator: int, most: int) -> Layout:
    """The prompt with at most ``most`` tokens for question and options, shortened as in the head's
    training: long options first, then the question; the state is whole. Raises UnknownLayout."""
    at = [place for place, token in enumerate(tokens) if token == marker]
    behind = [p for p, token in enumerate(tokens) if token == separator and at and p > at[-1]]
    if len(at) != n_options or at[0] < 2 or tokens[at[0] - 1] != separator or len(behind) < 2:
        raise UnknownLayout("its template has another form than question, options, state")
    whole = [tuple(tokens[begin:end]) for begin, end in pairwise((*at, behind[0]))]
    options = [option[: _MOST_OPTION_TOKENS + 1] for option in whole]
    if sum(map(len, options)) + _SPARED > most:
        share = max(_LEAST_OPTION_TOKENS, max(0, most - _SPARED) // n_options)
        options = [option[:share] for option in options]
    room = max(_LEAST_QUESTION_TOKENS, most - sum(map(len, options)))
    question = tuple(tokens[1 : at[0] - 1])
    found = [tokens[0], *question[:room], separator]
    markers = []
    for option in options:
        markers.append(len(found))
        found += option
    is_cut = options != whole or len(question) > room
    return Layout((*found, *tokens[behind[0] :]), tuple(markers), is_cut)
