"""How a frame was made: what it takes to make it once more, over other tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, SQLOptions

from blendfusion.sql.parameters import texts_of

if TYPE_CHECKING:
    from blendfusion.frame import Frame


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
    written: str = ""
    """The text as the user wrote it."""


Origin = Verb | Text | None
"""How a frame was made; None: it reads a table."""


def given(frame: Frame) -> set[str]:
    """The texts among the parameters of the queries that ``frame`` was made from."""
    origin = frame.origin
    while isinstance(origin, Verb):
        origin = origin.below.origin
    return set() if origin is None else texts_of(origin.parameters, origin.named)


def written(frame: Frame) -> str:
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
