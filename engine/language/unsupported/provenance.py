"""How a frame was made: what it takes to make it once more, over other tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from datafusion import DataFrame, SQLOptions

from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import ExecutionError, QueryError
from blendfusion.language.query_text.error_places import named_place
from blendfusion.language.query_text.parameters import texts_of
from blendfusion.language.query_text.source_map import Translation

if TYPE_CHECKING:
    from blendfusion.frame import Frame

E = TypeVar("E", bound=BaseException)


@dataclass(frozen=True, slots=True)
class Verb:
    """A frame made from another by a method of DataFrame."""

    method: Callable[..., DataFrame]
    below: Frame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Text:
    """A frame made from SQL, in which calls are functions."""

    sql: str
    options: SQLOptions | None
    parameters: Mapping[str, Any] | None
    named: Mapping[str, Any]
    tables: Mapping[str, UnnamedTable] = field(default_factory=dict)
    """The tables that stand for frames in it."""
    written: str = ""
    """The text as the user wrote it."""
    unread: tuple[str, ...] = ()
    """The parts of it that say nothing of the types of answers, since sqlglot cannot read them."""
    dialect: Translation | None = None
    """How ``written`` came from a text in another dialect."""


Origin = Verb | Text | None
"""How a frame was made; None: it reads a table."""


def _text(frame: Frame) -> Text | None:
    """The SQL that ``frame`` was made from, first."""
    origin = frame.origin
    while isinstance(origin, Verb):
        origin = origin.below.origin
    return origin


def unnamed_tables(frame: Frame) -> list[UnnamedTable]:
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


def unread_parts(frame: Frame) -> tuple[str, ...]:
    """The parts of its SQL that say nothing of the types of answers."""
    text = _text(frame)
    return () if text is None else text.unread


def place_error_in(frame: Frame, error: E) -> E:
    """An error of the plan of ``frame`` with its place in the user's text, where that is known."""
    located = isinstance(error, QueryError | ExecutionError) and error.span is None
    text = _text(frame) if located else None
    if text is not None and isinstance(error, QueryError | ExecutionError):
        found = named_place(error.message, text.written)
        error.span = text.dialect.origin(*found) if found and text.dialect else found
    return error


def parameter_texts(frame: Frame) -> set[str]:
    """The texts among the parameters of the queries that ``frame`` was made from."""
    text = _text(frame)
    return set() if text is None else texts_of(text.parameters, text.named)


def written_sql(frame: Frame) -> str:
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
