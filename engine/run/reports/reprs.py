"""The display of a frame in a terminal, a notebook or a debugger: its rows if that asks nothing.

A frame may be displayed without the intention to run it: as the last line of a cell, or by a
debugger that inspects a variable. So its rows appear only if the cache has all of their answers,
and else its plan with the expected questions.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.errors import BlendFusionError
from blendfusion.files.python_values import python_values
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.run.observe.progress import count_noun
from blendfusion.run.reports.html import Html, cut, join_html, style, table, tag
from blendfusion.types import ModelInfo
from blendfusion.udfs.ask.dispatcher import Dispatcher, UnknownAnswerError
from blendfusion.udfs.ask.observer import NullObserver

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame
    from blendfusion.udfs.declare.call import Call

_ROWS = 20
_CELL = 500
_MOST_COLUMNS, _MANY_COLUMNS = 20, 30
"""The columns that the text shows if there are more than many."""
_CHARACTERS = 20_000
_HOW = "Its rows: show(), to_pandas(), to_arrow_table() and the like run it."
_WITHHELD = f"A display shows no values here: show_values='off'. {_HOW}"
_WRITES = ("Dml", "CopyTo")
"""Prefixes of plans that write."""


def as_text(frame: BaseFrame) -> str:
    """The rows of ``frame`` in DataFusion's format, else its plan."""
    if _hides(frame):
        return f"Frame [{_columns(frame)}]. {_WITHHELD}"
    rows = _rows(frame)
    if rows is not None:
        some = rows.select(rows.column_names[:_MOST_COLUMNS]) if _are_many(rows) else rows
        text = DataFrame.__repr__(frame.engine.tables.plain_frame(some))
        more = rows.num_columns - some.num_columns
        return f"{text}\n… and {more} more columns" if more else text
    return f"Frame [{_columns(frame)}], not run: it {_does(frame)}. {_HOW}\n{_plan(frame)}"


def _are_many(rows: pa.Table) -> bool:
    names = rows.column_names
    return len(names) > _MANY_COLUMNS and len(set(names)) == len(names)


def as_html(frame: BaseFrame) -> str:
    """The HTML for a notebook. Values are escaped as text; in DataFusion 55 they are markup, and
    scripts in them run."""
    if _hides(frame):
        return str(tag("div", style(), tag("p", _columns(frame)), tag("p", _WITHHELD), class_="bf"))
    rows = _rows(frame)
    if rows is not None:
        return str(tag("div", style(), _table(rows), class_="bf"))
    does = _does(frame)
    held = f": it {does}, and a display {does.partition(' ')[0]} nothing. "
    head = tag("p", tag("b", "Not run"), held, _HOW)
    columns = tag("p", _columns(frame), class_="mute")
    plan = tag("pre", _plan(frame), class_="plan", tabindex="0")
    return str(tag("div", style(), head, columns, plan, class_="bf"))


def _table(rows: pa.Table) -> Html:
    caption = count_noun(len(rows), "row")
    if len(rows) > _ROWS:
        rows = rows.slice(0, _ROWS)
        caption = f"The first {_ROWS} rows; more follow: to_pandas(), to_arrow_table() give all"
    heads = [
        join_html([field.name, tag("span", str(field.type), class_="note")])
        for field in rows.schema
    ]
    kinds = ["n" if _is_number(field.type) else "wide" for field in rows.schema]
    cells = [[_cell(value) for value in python_values(column, " ")] for column in rows.columns]
    return table(caption, heads, list(zip(*cells, strict=True)), kinds=kinds)


def _cell(value: object) -> Html:
    if value is None:
        return tag("span", "NULL", class_="mute")
    return tag("bdi", cut(str(value), _CELL))


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _rows(frame: BaseFrame) -> pa.Table | None:
    """The first rows; None if they need a model, or if the plan writes."""
    if _writes(frame):
        return None
    limited = frame.limit(_ROWS + 1)  # one more than shown, to know whether there are more
    if not frame.prepared.calls:
        return limited.to_arrow_table()
    dispatcher = _StoredAnswers(frame)
    try:
        with limited.running(), closing(limited.answer_tables(dispatcher, eager=True)) as tables:
            return pa.concat_tables(list(tables))
    except (UnknownAnswerError, BlendFusionError):
        return None


def _does(frame: BaseFrame) -> str:
    """Why a frame without rows to show is not run."""
    return "asks a model" if frame.prepared.calls else "writes"


def _writes(frame: BaseFrame) -> bool:
    return frame.logical_plan().display().startswith(_WRITES)


def _plan(frame: BaseFrame) -> str:
    try:
        return cut(frame.explain_text(), _CHARACTERS)
    except BlendFusionError:  # the plan is shown even if the data is unreadable
        return cut(frame.explain_text(estimates=False), _CHARACTERS)


def _hides(frame: BaseFrame) -> bool:
    return frame.engine.options.show_values == "off"


def _columns(frame: BaseFrame) -> str:
    schema = frame.schema()
    return cut(", ".join(f"{field.name}: {field.type}" for field in schema), 1_000)


class _StoredAnswers(Dispatcher):
    """Returns stored answers. Every other question, including one that would load a model or call a
    server, raises UnknownAnswerError."""

    def __init__(self, frame: BaseFrame) -> None:
        engine = frame.engine
        super().__init__(
            lambda: engine.models.own(engine.options),
            NullObserver(),
            engine.options.on_error,
            targets=targets_in(engine.options),  # a cascade's decisions are known only when it runs
            named=lambda names: engine.models.of(names, engine.options),
        )
        self._only_known = True

    def _open(self, model: CachedModel, names: ModelNames) -> CachedModel:
        return model

    def info_of(self, call: Call | None) -> ModelInfo:
        model = self.model_of(call)
        if not model.abilities.loaded:
            raise UnknownAnswerError
        return model.info
