"""Rows for people to review, and the answers that come back."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

import pyarrow as pa

from blendfusion.errors import QueryError, close_matches
from blendfusion.services.evaluate.run import table_of
from blendfusion.udfs.ask.reviews import Review, Reviews

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.prepare.frame_sources import FrameSources


def review(session: FrameSources, name: str, labels: object) -> Frame:
    """The rows of a review, with new labels: see ``Session.review``."""
    reviews = session.runs.kept.of(Reviews)
    if labels is not None:
        _, table = table_of(session, labels)
        changed = deepcopy(reviews.review_of(name))
        _take_labels(changed, table)
        reviews.of_name[name] = changed
    elif name not in reviews.of_name:
        hint = close_matches(name, reviews.of_name) or f"A call with review => '{name}' makes it."
        raise QueryError(f"no review is called '{name}'", hint=hint)
    return session.new_table(reviews.review_of(name).table())


def _take_labels(review: Review, table: pa.Table) -> None:
    missing = [column for column in ("value", "label") if column not in table.column_names]
    if missing:
        raise QueryError(
            f"the labels have no column '{missing[0]}'",
            hint="They are a table of value and label, as session.review('…') gives it.",
        )
    values, labels = (_texts(table[column]) for column in ("value", "label"))
    given = [at for at, label in enumerate(labels) if label is not None and label.strip()]
    if "question" in table.column_names:
        questions = _texts(table["question"])
    else:
        questions = [review.only_question() if given else ""] * len(values)
    for at in given:
        question, value, label = questions[at], values[at], labels[at]
        if value is not None and label is not None:
            review.label(question or "", value, label)


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [_text(value) for value in column.to_pylist()]


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
