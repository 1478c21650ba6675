"""The tables that describe a session: DataFusion's rows, and those of the functions that ask a
model and of BlendFusion's options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import SessionContext

from blendfusion.language.query_text.information import from_information
from blendfusion.options import Options, about
from blendfusion.services import offers
from blendfusion.udfs.declare.call_registry import is_call_name
from blendfusion.udfs.declare.ingredient import Ingredient

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources


def with_information(
    sql: str, session: FrameSources, ingredients: Callable[[], Mapping[str, Ingredient]]
) -> str:
    """``sql`` over tables that know BlendFusion's functions and options."""
    offered = offers("tables")
    translation, names = from_information(sql, {*_SOURCES, *offered})
    for name in names:
        source = offered[name]() if name in offered else _SOURCES[name]
        session.information.tables[name] = source(session, ingredients())
    return translation.sql


def _settings(session: FrameSources, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    own = [
        {
            "name": f"blendfusion.{option.name}",
            "value": _setting_text(getattr(session.options, option.name)),
            "description": about(option).doc,
        }
        for option in fields(Options)
    ]
    return _both(_rows(session, "SELECT * FROM information_schema.df_settings"), own)


def _setting_text(value: object) -> str | None:
    """A value as SET takes it; NULL for one that is no text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


def _routines(session: FrameSources, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    place = {"catalog": "datafusion", "schema": "public"}
    own = [
        {
            **{
                f"{of}_{key}": value
                for of in ("specific", "routine")
                for key, value in place.items()
            },
            "specific_name": found.name,
            "routine_name": found.name,
            "routine_type": "FUNCTION",
            "is_deterministic": False,
            "data_type": found.result or None,
            **_describe(found),
        }
        for found in ingredients.values()
    ]
    known = _rows(session, "SELECT * FROM information_schema.routines")
    return _both(_without_calls(known, "routine_name", ingredients), own)


def _functions(session: FrameSources, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    own = [
        {
            "function_name": found.name,
            "return_type": found.result or None,
            **_describe(found),
        }
        for found in ingredients.values()
    ]
    known = _rows(session, "SHOW FUNCTIONS")
    return _both(_without_calls(known, "function_name", ingredients), own)


def _parameters(session: FrameSources, ingredients: Mapping[str, Ingredient]) -> pa.Table:
    known = _rows(session, "SELECT * FROM information_schema.parameters")
    return _without_calls(known, "specific_name", ingredients)


_SOURCES: dict[str, Callable[[FrameSources, Mapping[str, Ingredient]], pa.Table]] = {
    "df_settings": _settings,
    "routines": _routines,
    "functions": _functions,
    "parameters": _parameters,
}


def _describe(found: Ingredient) -> dict[str, str]:
    """The columns that both lists of functions have."""
    return {
        "function_type": "AGGREGATE" if found.kind.aggregate else "SCALAR",
        "description": found.summary,
        "syntax_example": found.signature,
    }


def _rows(session: FrameSources, sql: str) -> pa.Table:
    return SessionContext.sql(session, sql).to_arrow_table()


def _without_calls(table: pa.Table, column: str, ingredients: Iterable[str]) -> pa.Table:
    """``table`` without the functions that stand for single calls, and those of
    ``ingredients``."""
    known = set(ingredients)
    names = table.column(column).to_pylist()
    return table.filter(pa.array([n not in known and not is_call_name(n, known) for n in names]))


def _both(table: pa.Table, own: list[dict[str, Any]]) -> pa.Table:
    return pa.concat_tables([table, pa.Table.from_pylist(own, schema=table.schema)])
