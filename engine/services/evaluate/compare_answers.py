"""Compares a column of answers with a column of labels, row by row."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blendfusion.errors import ArgumentError
from blendfusion.redaction import Redaction
from blendfusion.udfs.declare.call import CONFIDENCE, VALUE

AnswerKind: TypeAlias = Literal["boolean", "label", "number", "text"]
KINDS: tuple[AnswerKind, ...] = get_args(AnswerKind)

Known: TypeAlias = "bool | float | str"

_SHOWN = Redaction("on")
_YES = frozenset({"yes", "true", "t", "y", "1"})
_NO = frozenset({"no", "false", "f", "n", "0"})


@dataclass(frozen=True, slots=True)
class ComparedAnswers:
    """Answers beside labels, one a row, in comparable form; None where there is none."""

    kind: AnswerKind
    answers: list[Known | None]
    labels: list[Known | None]
    confidences: list[float | None]
    """The probabilities of the answers."""
    within: float = 0.0
    values: Sequence[int] = ()
    """The number of the value that each row's call was asked about; () if every row has its own."""

    @property
    def groups(self) -> NDArray[np.intp]:
        """The number of each row's value."""
        return np.asarray(self.values or range(len(self.labels)), np.intp)

    @property
    def counted_rows(self) -> list[int]:
        """The rows that have both an answer and a label."""
        pairs = enumerate(zip(self.answers, self.labels, strict=True))
        return [i for i, (answer, label) in pairs if answer is not None and label is not None]

    def right(self, row: int) -> bool | None:
        """Whether an answer is right; None without a label, or without an answer."""
        answer, label = self.answers[row], self.labels[row]
        if answer is None or label is None:
            return None
        if self.kind == "number":
            return abs(float(answer) - float(label)) <= self.within
        return answer == label


def compare_columns(
    answers: pa.ChunkedArray,
    labels: pa.ChunkedArray,
    kind: AnswerKind | None = None,
    *,
    closed: bool = False,
    within: float = 0.0,
    redaction: Redaction = _SHOWN,
    values: Sequence[int] = (),
) -> ComparedAnswers:
    """The comparison of two columns of one length.

    ``kind`` None: by the type of the answers; text is a label if ``closed``. A struct of an answer
    and its confidence counts as the answer. Raises ArgumentError for a label that is no value of
    the kind; ``redaction`` shows or hides it. Probabilities of yes beside labels of yes and no
    count as the likelier of the two, with its probability.
    """
    if kind is not None and kind not in KINDS:
        hint = f"Known: {', '.join(KINDS)}."
        raise ArgumentError(f"kind={kind!r} is not possible", hint=hint)
    if not within >= 0 or math.isinf(within):
        raise ArgumentError(f"within={within!r} is not possible", hint="A number, at least 0.")
    given, confidences = _parts(answers)
    if _are_probabilities(given, labels, kind):
        given, confidences = _by_probability(given)
    kind = kind or _kind_of(given.type, closed)
    read = {"boolean": _yes_no, "number": _number}.get(kind, _text)
    held = [None if a is None else read(a, "an answer", redaction) for a in given.to_pylist()]
    true = [None if _missing(v) else read(v, "a label", redaction) for v in labels.to_pylist()]
    return ComparedAnswers(kind, held, true, confidences, within, values)


def _parts(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[float | None]]:
    """The answers of a column, and their probabilities."""
    kind = column.type
    if not pa.types.is_struct(kind) or kind.get_field_index(VALUE) < 0:
        return column, [None] * len(column)
    whole = column.combine_chunks()
    fields = {field.name: part for field, part in zip(kind, whole.flatten(), strict=True)}
    confidences = fields.get(CONFIDENCE)
    stated = [None] * len(column) if confidences is None else confidences.to_pylist()
    return pa.chunked_array([fields[VALUE]]), stated


def _are_probabilities(
    given: pa.ChunkedArray, labels: pa.ChunkedArray, kind: AnswerKind | None
) -> bool:
    """Whether a column holds probabilities of yes: numbers from 0 to 1 beside labels of yes and
    no."""
    if not pa.types.is_floating(given.type) or kind not in (None, "boolean"):
        return False
    if kind is None and not pa.types.is_boolean(labels.type):
        return False
    return all(p is None or 0 <= p <= 1 for p in given.to_pylist())


def _by_probability(given: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[float | None]]:
    """The likelier answers, and their probabilities."""
    yes = given.to_pylist()
    answers = pa.chunked_array(
        [pa.array([None if p is None else p >= 0.5 for p in yes], pa.bool_())]
    )
    return answers, [None if p is None else max(p, 1 - p) for p in yes]


def _kind_of(kind: pa.DataType, closed: bool) -> AnswerKind:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return "label" if closed else "text"


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _yes_no(value: object, noun: str, redaction: Redaction) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().casefold().removesuffix(".0")
    if word in _YES or word in _NO:
        return word in _YES
    raise ArgumentError(
        f"{redaction.pass_on(repr(value))} is {noun}, but neither yes nor no",
        hint="Labels of a boolean are BOOLEAN, 1 and 0, or 'yes' and 'no'.",
    )


def _number(value: object, noun: str, redaction: Redaction) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{redaction.pass_on(repr(value))} is {noun}, but not a number",
            hint="Labels of a number are numbers.",
        ) from None


def comparable(value: object) -> str:
    """A text in the form in which it is compared: NFKC, without letter case and outer blanks, every
    run of blanks one."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ", ".join(map(str, value))
    return " ".join(unicodedata.normalize("NFKC", str(value)).casefold().split())


def _text(value: object, _noun: str, _redaction: Redaction) -> str:
    return comparable(value)
