"""Dispatches dialects: each translates text to BlendFusion's SQL, with a source map for errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.errors import BlendFusionError, OptionError, QueryError, by_surface
from blendfusion.language.query_text.error_places import named_place
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import (
    Translation,
    identity,
    place_in_source,
    within,
)
from blendfusion.language.query_text.statements import first_word
from blendfusion.prepare.translators import OURS
from blendfusion.services.dialects.blendsql import translate as blendsql
from blendfusion.services.dialects.common.braces import is_call
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.services.dialects.decisions.systems import DECISIONS
from blendfusion.services.dialects.mysql import translate as mysql
from blendfusion.services.dialects.suql import translate as suql
from blendfusion.services.dialects.warehouses import bigquery, databricks, snowflake

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.dialects.session import Translating

WAREHOUSES = (snowflake.WAREHOUSE, bigquery.WAREHOUSE, databricks.WAREHOUSE)
DIALECTS: Mapping[str, Callable[[str, SessionFacts], Translation]] = {
    "blendsql": blendsql.translate,
    "suql": suql.translate,
    "mysql": mysql.translate,
    **{warehouse.name: warehouse.translate for warehouse in (*WAREHOUSES, *DECISIONS)},
}
"""Each dialect by its name: text → our SQL. Raises QueryError with the span of the error."""

_REMOVES = ("DELETE", "DROP", "TRUNCATE")
_ONLY_READ = {"blendsql": "BlendSQL", "suql": "SUQL", "mysql": "this dialect of MySQL"}


def dialect_of(text: str, dialect: str | None = None) -> str:
    """The dialect of ``text``: the one that is named, else blendsql if ``{{`` stands outside of
    quotes, else our own, ``sql``. Raises OptionError for an unknown name. Most texts need none of
    this: see ``prepare.translators.dialect_of``."""
    if dialect is None:
        reader = Reader(text)
        return "blendsql" if any(is_call(reader, i) for i in range(len(reader.tokens))) else OURS
    if dialect not in (OURS, *DIALECTS):
        names = ", ".join(map(repr, (OURS, *DIALECTS)))
        raise OptionError(f"dialect={dialect!r} is not possible", hint=f"Choose one of {names}.")
    return dialect


def translation(
    session: Translating,
    text: str,
    dialect: str,
    run: Callable[[Translation, str], Frame],
    positional: Sequence[Any] | None,
) -> Translation:
    """``text``, a query in ``dialect``, in our SQL. Raises QueryError, with the place in ``text``.

    ``run`` gives the frame of a query in a dialect; ``positional`` are the values of ``?``.
    """
    schemas: dict[str, pa.Schema] = {}
    problems: dict[str, BlendFusionError] = {}

    def schema(query: str) -> pa.Schema | None:
        if query not in schemas and query not in problems:
            try:
                schemas[query] = run(identity(query), dialect).schema()
            except BlendFusionError as problem:
                problems[query] = problem
        return schemas.get(query)

    in_ours: dict[str, pa.Schema | None] = {}

    def ours_of(query: str) -> pa.Schema | None:
        if query not in in_ours:
            try:
                in_ours[query] = run(identity(query), OURS).schema()
            except BlendFusionError:
                in_ours[query] = None
        return in_ours[query]

    def first(query: str) -> object:
        try:
            frame = run(identity(query), OURS)
            values = [] if frame.prepared.calls else frame.to_arrow_table().column(0).to_pylist()
        except BlendFusionError:
            return None
        return values[0] if values else None

    names = session.ingredient_names()
    known = SessionFacts(names, schema, problems.get, ours_of, first, session.enums, positional)
    if dialect in _ONLY_READ and first_word(text) in _REMOVES:
        raise QueryError(
            f"{_ONLY_READ[dialect]}'s queries only read",
            hint=by_surface("session.sql(…, dialect='sql')", "--dialect sql")
            + " removes rows and tables.",
        )
    try:
        return DIALECTS[dialect](text, known)
    except QueryError as problem:
        raise place_in_source(problem, identity(text)) from None
    except RecursionError:
        raise QueryError(
            "the query is nested too deeply",
            hint="Move parts of it into CTEs: WITH part AS (SELECT …).",
        ) from None


def plan(
    session: Translating,
    text: str,
    dialect: str,
    run: Callable[[Translation, str], Frame],
    positional: Sequence[Any] | None,
) -> Frame:
    """A frame of ``text``: see ``translation``. Errors say where in ``text`` they are."""
    ours = translation(session, text, dialect, run, positional)
    try:
        return run(ours, OURS)
    except QueryError as problem:
        raise _point_at(problem, ours) from problem


def _point_at(error: QueryError, translation: Translation) -> QueryError:
    """An error of our SQL as one of the text that the user wrote."""
    source = translation.source
    found = named_place(error.message, source)
    if found is not None and (error.span is None or "unknown " in error.message):
        error.span = found
        return place_in_source(error, identity(source))
    line = re.match(r"SQL syntax on line (\d+):", error.message)
    lines = source.splitlines()
    if line and 0 < int(line[1]) <= len(lines):
        error.reword(error.message, f"See {lines[int(line[1]) - 1].strip()!r}.")
        return within(error, translation)
    return place_in_source(error, translation)
