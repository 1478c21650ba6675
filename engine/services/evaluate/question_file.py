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

_KNOWN = ("name", "version", "call", "threshold", "measured", "sample")


@dataclass(frozen=True)
class StoredQuestion(SavedAsToml):
    """A question under a name: ``llm_ask('name', value, …)`` stands for its ``call``.

    ``call`` is the SQL of one call, whose values are plain columns. ``threshold``: the least
    probability of yes for a yes; None: the call's own answer. ``measured`` are figures for the
    reader. ``sample``: the answers by which ``choose_model`` chose; runs whose answers differ warn.
    Raises ArgumentError for a name that is no plain word.
    """

    name: str
    call: str
    version: int = 1
    threshold: float | None = None
    measured: Mapping[str, float] = field(default_factory=dict)
    sample: AnswerSample | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "question")

    @property
    def stored_call(self) -> StoredCall:
        return StoredCall(self.call, self.threshold)

    def to_toml(self) -> str:
        """The text of the file: the same question gives the same text."""
        lines = [f"name = {toml_text(self.name)}", f"version = {self.version}"]
        lines.append(f"call = {toml_text(self.call)}")
        if self.threshold is not None:
            lines.append(f"threshold = {self.threshold!r}")
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
    threshold, version = held.get("threshold"), held.get("version", 1)
    texts = all(isinstance(held.get(key), str) for key in ("name", "call"))
    share = threshold is None or (isinstance(threshold, int | float) and 0 <= threshold <= 1)
    figures = are_figures(held.get("measured", {}))
    whole = type(version) is int and ("sample" not in held or _is_sample(held["sample"]))
    if not (texts and share and figures and whole):
        raise ArgumentError(
            f"'{file}' holds no question",
            hint="It needs the texts name and call, a whole number version, and may have a "
            "threshold from 0 to 1.",
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
