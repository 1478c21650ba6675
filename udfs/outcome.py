"""What becomes of answers in a result: a value, NULL, a struct that keeps the error, or an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.errors import AnswerError
from blendfusion.models.model import Values
from blendfusion.options import OnError
from blendfusion.redaction import Redaction
from blendfusion.types import Answer, Task
from blendfusion.udfs.call import ERROR, VALUE, Call
from blendfusion.udfs.decode import value

if TYPE_CHECKING:
    from blendfusion.udfs.asker import Asker


def outcomes(
    call: Call,
    answers: Sequence[Answer],
    values: Sequence[Values],
    asker: Asker,
    *,
    task: Task | None = None,
    to: pa.DataType | None = None,
    on_error: OnError | None = None,
) -> list[object]:
    """One result an answer, in order, as the Python value that Arrow takes for the call's type.

    A failed answer is NULL, and told to the observer; or it is kept beside no value; or AnswerError
    is raised: as ``on_error`` says, else the call, else the session. ``task`` and ``to``: what was
    asked, and the type of its answers, where that is not the call's own.
    """
    to = call.answer_type if to is None else to
    policy = on_error or asker.policy(call)
    if policy == "keep":
        return [_kept(answer, to) for answer in answers]
    failed = {v: a for v, a in zip(values, answers, strict=True) if a.error is not None}
    if failed and policy == "raise":
        raise failure(call, failed, len(values), asker.redaction)
    if failed:
        asker.observer.lost(task or call.task, failed)
    return [value(answer.text, to) for answer in answers]


def arrow(results: Sequence[object], to: pa.DataType) -> pa.Array:
    """The results as an array of the type of a call."""
    if not pa.types.is_struct(to):
        return pa.array(results, to)
    # DataFusion takes a field of a NULL struct as it is, so the fields must be NULL themselves.
    rows: list[Any] = [result or {} for result in results]
    fields = [arrow([row.get(field.name) for row in rows], field.type) for field in to]
    return pa.StructArray.from_arrays(
        fields, fields=list(to), mask=pa.array([r is None for r in results], pa.bool_())
    )


def _kept(answer: Answer, to: pa.DataType) -> dict[str, object] | None:
    if answer.text is None and answer.error is None:
        return None  # there was nothing to answer
    return {VALUE: value(answer.text, to), ERROR: answer.error}


def failure(
    call: Call, failed: Mapping[Values, Answer], among: int, redaction: Redaction
) -> AnswerError:
    """The error of values that got no valid answer, ``among`` so many asked."""
    first, answer = next(iter(failed.items()))
    return AnswerError(
        f"{call.text}: no valid answer for {redaction.row(first)}: "
        f"{redaction.reason(answer.error or 'no answer')} ({len(failed):,} of {among:,} failed)",
        hint="on_error => 'null' makes such values NULL, 'keep' keeps their errors. The other answers "
        f"are stored: the next run does not ask for them. {redaction.remedy}".strip(),
    )
