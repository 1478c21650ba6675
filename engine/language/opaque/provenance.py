"""How a frame was made: what it takes to make it once more, over other tables."""

from __future__ import annotations

from typing import TypeVar

from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import ExecutionError, QueryError
from blendfusion.language.query_text.error_places import named_place
from blendfusion.language.query_text.parameters import texts_of
from blendfusion.run.hooks import BaseFrame, Text, Verb

E = TypeVar("E", bound=BaseException)


def _text(frame: BaseFrame) -> Text | None:
    """The SQL that ``frame`` was made from, first."""
    origin = frame.origin
    while isinstance(origin, Verb):
        origin = origin.below.origin
    return origin


def unnamed_tables(frame: BaseFrame) -> list[UnnamedTable]:
    """The tables without a name of their own that ``frame`` reads."""
    found, waiting = [], [frame]
    while waiting:
        one = waiting.pop()
        found += [] if one.unnamed_table is None else [one.unnamed_table]
        if isinstance(one.origin, Text):
            found += one.origin.tables.values()
        elif one.origin is not None:
            given = (one.origin.below, *one.origin.args, *one.origin.kwargs.values())
            waiting += [value for value in given if hasattr(value, "unnamed_table")]
    return found


def unread_parts(frame: BaseFrame) -> tuple[str, ...]:
    """The parts of a frame's SQL that cannot be parsed, so that they type no answer."""
    text = _text(frame)
    return () if text is None else text.unread


def place_error_in(frame: BaseFrame, error: E) -> E:
    """An error of the plan of ``frame`` with its place in the user's text, where that is known."""
    located = isinstance(error, QueryError | ExecutionError) and error.span is None
    text = _text(frame) if located else None
    if text is not None and isinstance(error, QueryError | ExecutionError):
        found = named_place(error.message, text.written)
        error.span = text.dialect.origin(*found) if found and text.dialect else found
    return error


def parameter_texts(frame: BaseFrame) -> set[str]:
    """The texts among the parameters of the queries that ``frame`` was made from."""
    text = _text(frame)
    return set() if text is None else texts_of(text.parameters, text.named)


def written_sql(frame: BaseFrame) -> str:
    """The SQL that ``frame`` was made from, with the verbs after it as comments; '' without SQL."""
    verbs: list[str] = []
    origin = frame.origin
    while isinstance(origin, Verb):
        verbs.append(origin.method.__name__.strip("_"))
        origin = origin.below.origin
    if origin is None or not origin.written:
        return ""
    later = [verb for verb in reversed(verbs) if verb != "with_column_renamed"]
    return "\n".join([origin.written.strip(), *(f"-- then: {verb}" for verb in later)])
