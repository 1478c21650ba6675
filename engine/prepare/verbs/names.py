"""The verbs of frames: how they find names, as in the text of a query."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, Expr

from blendfusion.datafusion.columns import column_of, columns_of
from blendfusion.errors import QueryError, close_matches
from blendfusion.run.hooks import Verb
from blendfusion.services import parts

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame

_UNKNOWN = re.compile(r"No field named |Column '.*' not found")


def apply(verb: Verb) -> tuple[DataFrame, Verb]:
    """The frame that a verb makes, and the verb with the names that were meant.

    Raises QueryError for a name that is equal to two columns but for case, and for a name that
    ``drop`` and ``with_column_renamed`` do not find, which DataFusion ignores."""
    made, meant = _apply(verb)
    unknown = _ignored_name(meant, made)
    if unknown is not None:
        column = column_of(unknown)
        name = unknown if column is None else column.name
        known = [column.name for column in columns_of(verb.below)]
        raise QueryError(f"unknown column '{name}'", hint=close_matches(name, known))
    return made, meant


def _apply(verb: Verb) -> tuple[DataFrame, Verb]:
    names = _names_in_any_case(verb.below)
    if names is not None and names.respells_first(verb):
        verb = names.respell_verb(verb)
    try:
        return _make(verb), verb
    except Exception as problem:
        if names is None or not _UNKNOWN.search(str(problem)):
            raise
    again = names.respell_verb(verb)
    return _make(again), again


def _names_in_any_case(frame: BaseFrame) -> Any:
    """The module that finds names in another letter case; None where none is to."""
    wanted = frame.engine.options.names_in_any_case
    return next(iter(parts("letter_case")), None) if wanted else None


def _ignored_name(verb: Verb, made: DataFrame) -> str | None:
    """A name that a verb left out because no column has it."""
    if verb.method is DataFrame.with_column_renamed:
        given = inspect.signature(verb.method).bind(verb.below, *verb.args, **verb.kwargs).arguments
        old, new = given["old_name"], given["new_name"]
        meant = column_of(old)
        same = [*columns_of(made)] == [*columns_of(verb.below)]
        return old if same and (meant is None or meant.name != new) else None
    if verb.method is not DataFrame.drop:
        return None
    before = len([*columns_of(verb.below)])
    if before - len([*columns_of(made)]) >= len(set(verb.args)):
        return None
    alone = ((name, _apply(replace(verb, args=(name,)))[0]) for name in verb.args)
    return next((name for name, frame in alone if len([*columns_of(frame)]) == before), None)


def expression(frame: BaseFrame, plan: DataFrame, text: str) -> Expr:
    """The expression of an SQL text about ``frame``, over its ``plan``."""
    try:
        return DataFrame.parse_sql_expr(plan, text)
    except Exception as problem:
        names = _names_in_any_case(frame) if _UNKNOWN.search(str(problem)) else None
        again = text if names is None else names.respell_text(plan, text)
        if again == text:
            raise
        return DataFrame.parse_sql_expr(plan, again)


def found_names(frame: BaseFrame, names: Sequence[str]) -> list[str]:
    """The names of columns that were meant by exact names."""
    if set(names) <= set(frame.schema().names):
        return [*names]
    finder = _names_in_any_case(frame)
    return [*names] if finder is None else [*finder.respell_columns(frame, names)]


def _make(verb: Verb) -> DataFrame:
    return verb.method(verb.below, *verb.args, **verb.kwargs)
