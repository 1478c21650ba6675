"""The frames in the variables of a program as tables of its queries: ``SELECT * FROM df``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from inspect import CO_OPTIMIZED
from types import FrameType
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame

from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.errors import QueryError
from blendfusion.files.foreign_tables import is_hub_dataset
from blendfusion.language.query_text.error_places import either
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.table_names import TableName, table_names
from blendfusion.planner.ir.opaque_names import CATALOG, UNNAMED
from blendfusion.udfs.ask.reviews import Reviews
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources

Variables = Mapping[str, object]
"""The variables that a program's query may name."""

_BETWEEN = {
    "blendfusion.datafusion.method_gate",
    "blendfusion.apps.notebooks.accessors",
    "blendfusion.prepare.caller_tables",
    "blendfusion.session",
}
"""The modules between a program and this one. What any other module of the package passes to
``Session.sql`` was written by somebody else: a model, a page, a command line, a file."""
_PACKAGE = __name__.partition(".")[0]
_HIDDEN = re.compile(rf'{CATALOG}\.{UNNAMED}\.(\w+?)_\d+(?: AS "?\1"?)?')
_WORD = re.compile(r"\w+")


def caller_variables(query: object) -> Variables | None:
    """The local variables of the code that called the session, and behind them its global ones,
    whose names stand in ``query`` in any letter case; None where that is a module of this package.
    """
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__") in _BETWEEN:
        frame = frame.f_back
    if str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        return None
    words = set(_WORD.findall(str(query).lower()))
    code = frame.f_code
    found = {name: frame.f_globals[name] for name in frame.f_globals if name.lower() in words}
    if not code.co_flags & CO_OPTIMIZED:  # a module, a class, or text that was executed
        return found | {n: value for n, value in frame.f_locals.items() if n.lower() in words}
    names = (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    if any(name.lower() in words for name in names):
        locals_now = frame.f_locals
        found |= {name: value for name, value in locals_now.items() if name.lower() in words}
        if isinstance(locals_now, dict):  # before Python 3.13, a copy that the code would keep
            locals_now.clear()
    return found


def with_frames(
    text: str, session: FrameSources, given: Mapping[str, object], variables: Variables | None
) -> tuple[Translation, Mapping[str, UnnamedTable]] | None:
    """``text`` with a table for each frame that it names: those of ``given`` as ``$name``, and the
    reviews of the session and those among ``variables`` where it reads a table that the catalogue
    does not have. None if there are none. The tables, by their names, are kept for as long as the
    plan of the query is read.

    Raises QueryError for a name that is equal to those of two frames but for letter case, and
    ArgumentError for a frame that is no table.
    """
    any_case = session.options.names_in_any_case
    may_read = variables is not None and session.options.read_variables
    frames = _frames(text, variables or {}, any_case=any_case) if may_read else {}
    reviews = session.runs.kept.of(Reviews)
    if reviews.of_name:
        frames |= reviews.tables(_WORD.findall(text))
    dollars = {f"${n}": value for n, value in given.items() if isinstance(value, DataFrame)}
    if not frames and not any(name in text for name in dollars):
        return None
    reader = Reader(text)
    places: dict[int, tuple[str, object, str]] = {
        at: (token.text, dollars[token.text], "")
        for at, token in enumerate(reader.tokens)
        if token.text in dollars and text[token.start] == "$"
    }
    for found in table_names(reader):
        alias = f" AS {quoted_name(found.name.lstrip('$'))}" if found.takes_alias else ""
        if found.at in places:
            places[found.at] = (*places[found.at][:2], alias)
            continue
        known = not frames or _is_known(session, found.name, any_case=any_case)
        name = None if known else _variable(reader, found, frames, any_case=any_case)
        if name is not None:
            places[found.at] = name, frames[name], alias
    made: dict[str, UnnamedTable] = {}
    for name, value, _ in places.values():
        if name not in made:
            frame: Any = session.as_frame(value)
            stem = name.lstrip("$").lower()
            made[name] = UnnamedTable(session, frame, stem if stem.isascii() else "frame")
    edits = [
        (*reader.span(at, at + 1), made[name].name + alias)
        for at, (name, _, alias) in places.items()
    ]
    return (edit(text, edits), {t.name: t for t in made.values()}) if edits else None


def advise(problem: QueryError, variables: Variables | None) -> None:
    """Say in ``problem`` what to do if its unknown table is a variable of the program."""
    found = re.search(r"unknown table '(.+)'$", problem.message)
    if found is None or variables is None:
        return
    alike = (name for name in variables if name.lower() == found[1].lower())
    name = found[1] if found[1] in variables else next(alike, None)
    if name is None:
        near = get_close_matches(found[1], _frames_of_caller(), n=1)
        if near and "Did you mean" not in (problem.hint or ""):
            problem.reword(problem.message, f"Did you mean the variable {near[0]}?")
        return
    if not name.isidentifier():
        return
    value = variables[name]
    if is_frame(value):
        hint = f"The variable {name} is a frame: session.sql('… FROM ${name}', {name}={name})"
        problem.reword(problem.message, f"{hint} makes it a table of the query.")
    elif hasattr(type(value), "to_frame"):
        hint = f"The variable {name} is a series: {name} = {name}.to_frame() makes it a frame."
        problem.reword(problem.message, hint)
    elif isinstance(value, (list, dict)):
        maker = "from_pylist" if isinstance(value, list) else "from_pydict"
        hint = f"The variable {name} is a {type(value).__name__}: session.{maker}({name}, {name!r})"
        problem.reword(problem.message, f"{hint} makes a table of it.")


def _frames_of_caller() -> list[str]:
    """The variables of the program that called the session that are frames, innermost first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return []
    known = {**frame.f_globals, **frame.f_locals}
    return [n for n, value in known.items() if not n.startswith("_") and is_frame(value)]


def without_hidden_names(text: str) -> str:
    """``text`` with the names that a query gives frames in place of their tables' own."""
    return _HIDDEN.sub(r"\1", text)


def is_frame(value: object) -> bool:
    """``value`` is a table of pandas, Polars (a lazy one, too), Arrow or DataFusion, or of another
    library that gives its rows as Arrow's; a series is none."""
    kind = type(value)
    if isinstance(value, DataFrame) or hasattr(kind, "collect_schema"):
        return True
    if hasattr(kind, "__datafusion_table_provider__") or is_hub_dataset(value):
        return True
    has_columns = hasattr(kind, "columns") or hasattr(kind, "schema")
    return has_columns and hasattr(kind, "__arrow_c_stream__")


def _frames(text: str, variables: Variables, *, any_case: bool) -> dict[str, object]:
    """The frames among the variables whose names stand in ``text``."""
    words = set(_WORD.findall(text))
    names = words | {word.lower() for word in words}
    if any_case:
        folded = {name.lower() for name in names}
        names = {name for name in variables if name.lower() in folded}
    found = {name: variables[name] for name in names if name in variables}
    return {name: value for name, value in found.items() if is_frame(value)}


def _variable(
    reader: Reader, found: TableName, frames: Mapping[str, object], *, any_case: bool
) -> str | None:
    """The variable that a table's name means: the equal one, else, as the names of tables do, the
    only one that is equal but for letter case."""
    for exact in (found.name, reader.tokens[found.at].text) if any_case else (found.name,):
        if exact in frames:
            return exact
    names = [name for name in frames if name.lower() == found.name.lower()] if any_case else []
    if len(names) > 1:
        raise reader.refusal(found.at, *either(reader.tokens[found.at].text, sorted(names)))
    return names[0] if names else None


def _is_known(session: FrameSources, name: str, *, any_case: bool) -> bool:
    if session.table_exist(quoted_name(name)):
        return True
    tables = session.catalog().schema().names() if any_case else ()
    return any(table.lower() == name.lower() for table in tables)
