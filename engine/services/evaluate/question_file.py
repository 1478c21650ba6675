"""A named, versioned question in a TOML file, which can be reviewed and committed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blendfusion.errors import ArgumentError
from blendfusion.language.query_text.stored_calls import StoredCall
from blendfusion.services.evaluate.toml_file import (
    SavedAsToml,
    are_figures,
    check_name,
    read_toml,
    toml_text,
    with_measured,
)
from blendfusion.udfs.ask.answer_samples import BINS, AnswerSample

_TEXTS = ("name", "call", "owner", "checks")
_KNOWN = (*_TEXTS, "version", "threshold", "at_least", "names", "measured", "sample")


@dataclass(frozen=True)
class StoredQuestion(SavedAsToml):
    """A question under a name: ``llm_ask('name', value, …)`` stands for its ``call``.

    ``call`` is the SQL of one call, whose values are plain columns. ``threshold``: the least
    probability of yes for a yes; None: the call's own answer. ``measured`` are figures for the
    reader. ``sample``: the answers by which ``choose_model`` chose; runs whose answers differ warn.
    ``names``: other names of answers, for queries; two answers may get one. ``owner``: who answers
    for it. ``checks``: SQL whose rows are values of the call and then the right answer, new ones at
    the end. The refresh of a view that asks the question fails where one of these is wrong; with
    ``at_least``, where they show that a smaller share is right. Raises ArgumentError for a name
    that is no plain word, and for names beside a threshold.
    """

    name: str
    call: str
    version: int = 1
    threshold: float | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    sample: AnswerSample | None = None
    owner: str = ""
    checks: str = ""
    at_least: float = 1.0
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name, "question")
        if self.names and self.threshold is not None:
            raise ArgumentError(
                f"the question '{self.name}' has names of answers and a threshold",
                hint="A threshold makes answers of yes or no: leave one out.",
            )

    @property
    def stored_call(self) -> StoredCall:
        names, checked = tuple(self.names.items()), (self.checks, self.at_least)
        return StoredCall(self.call, self.threshold, names, self.version, self.owner, *checked)

    def to_toml(self) -> str:
        """The text of the file: the same question gives the same text."""
        lines = [f"name = {toml_text(self.name)}", f"version = {self.version}"]
        lines.append(f"call = {toml_text(self.call)}")
        if self.threshold is not None:
            lines.append(f"threshold = {self.threshold!r}")
        lines += [f"{n} = {toml_text(getattr(self, n))}" for n in _TEXTS[2:] if getattr(self, n)]
        if self.at_least != 1:
            lines.append(f"at_least = {self.at_least!r}")
        if self.names:
            named = (f"{toml_text(a)} = {toml_text(name)}" for a, name in self.names.items())
            lines += ["", "[names]", *named]
        text = with_measured(lines, self.measured)
        return text if self.sample is None else text + _sample_toml(self.sample)

    @staticmethod
    def read(path: str | os.PathLike[str]) -> StoredQuestion:
        """The question of a file. Raises ArgumentError, which names the file."""
        file = Path(path)
        return _check(file, read_toml(file))


def _check(file: Path, held: dict[str, Any]) -> StoredQuestion:
    wrong = [key for key in held if key not in _KNOWN]
    if wrong:
        raise ArgumentError(f"'{file}': unknown field '{wrong[0]}'", hint=f"Known: {_KNOWN}.")
    version = held.get("version", 1)
    shares = [held[key] for key in ("threshold", "at_least") if held.get(key) is not None]
    names = held.get("names", {})
    strings = [held.get("name"), held.get("call"), held.get("owner", ""), held.get("checks", "")]
    texts = isinstance(names, dict) and all(isinstance(s, str) for s in [*strings, *names.values()])
    share = all(isinstance(s, int | float) and 0 <= s <= 1 for s in shares)
    figures = are_figures(held.get("measured", {}))
    whole = type(version) is int and ("sample" not in held or _is_sample(held["sample"]))
    if not (texts and share and figures and whole):
        raise ArgumentError(
            f"'{file}' holds no question",
            hint="It needs the texts name and call, a whole number version, and may have a "
            "threshold and an at_least from 0 to 1, texts owner and checks, and a table of names.",
        )
    if "sample" in held:
        held["sample"] = AnswerSample(**held["sample"])
    try:
        return StoredQuestion(**held)
    except ArgumentError as problem:
        raise ArgumentError(f"'{file}': {problem.message}", hint=problem.hint) from None


_SAMPLE_TEXTS = ("model", "wording")


def _sample_toml(sample: AnswerSample) -> str:
    lines = [f"{name} = {toml_text(getattr(sample, name))}" for name in _SAMPLE_TEXTS]
    counts = [f"{toml_text(answer)} = {count}" for answer, count in sorted(sample.answers.items())]
    lines.append(f"confidences = {[*sample.confidences]}")
    return "\n".join(["", "[sample]", *lines, "", "[sample.answers]", *counts]) + "\n"


def _is_sample(held: Any) -> bool:
    if not isinstance(held, dict) or held.keys() != {*_SAMPLE_TEXTS, "confidences", "answers"}:
        return False
    bins, answers = held["confidences"], held["answers"]
    if not isinstance(bins, list) or len(bins) != BINS or not isinstance(answers, dict):
        return False
    counts = all(type(n) is int and n >= 0 for n in (*bins, *answers.values()))
    return counts and all(isinstance(held[name], str) for name in _SAMPLE_TEXTS)
