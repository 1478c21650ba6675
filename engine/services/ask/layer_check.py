"""Holds a semantic layer against the tables of the session that reads it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from blendfusion.errors import (
    BlendFusionError,
    FileWarning,
    QueryError,
    close_matches,
    level_of_caller,
)
from blendfusion.services.ask.read_catalog import exact_name
from blendfusion.services.ask.schema.layer import Layer
from blendfusion.services.ask.where import parse, tables
from blendfusion.udfs.declare.arguments import quoted_name

if TYPE_CHECKING:
    from blendfusion.prepare.frame_sources import FrameSources


def check_layer(session: FrameSources, layer: Layer) -> None:
    """Raise QueryError for a column that a table of the session lacks, and for a metric or an
    example that does not plan or is no query. Warn of tables that the session does not have: a
    layer may describe more than one session reads."""
    columns = {name: _columns(session, name) for name in sorted(_tables(layer))}
    for place in (*layer.columns, *(side for pair in layer.keys for side in pair)):
        table, _, column = place.rpartition(".")
        own = columns[table.lower()]
        if own is not None and column.lower() not in (name.lower() for name in own):
            raise QueryError(
                f"the semantic layer describes {place}, which is not a column",
                hint=close_matches(column, own),
            )
    for what, sql, read in _queries(layer):
        if all(columns[name] is not None for name in read):
            _plan(session, what, sql)
    missing = [name for name, own in columns.items() if own is None]
    if missing:
        near = close_matches(missing[0], session.catalog().schema().names())
        warnings.warn(
            f"the semantic layer names tables that the session does not have: {', '.join(missing)}. "
            f"{near}".rstrip(),
            FileWarning,
            stacklevel=level_of_caller(),
        )


def _tables(layer: Layer) -> Iterator[str]:
    """The names of all tables of a layer, in lower case."""
    yield from layer.tables
    yield from (place.rpartition(".")[0] for place in layer.columns)
    yield from (side.rpartition(".")[0].lower() for pair in layer.keys for side in pair)
    for _, _, read in _queries(layer):
        yield from read


def _queries(layer: Layer) -> Iterator[tuple[str, str, list[str]]]:
    """Each metric and example: what it is, its query, and the tables that this reads. Raises
    QueryError for a text that is no query."""
    for metric in layer.metrics:
        what = f"the metric '{metric.name}'"
        sql = f"SELECT {metric.sql} FROM {metric.table}"
        yield what, sql, [*_read(what, f"SELECT {metric.sql}"), metric.table.lower()]
    for question, sql in layer.examples:
        what = f"the example '{question}'"
        yield what, sql, _read(what, sql)


def _read(what: str, sql: str) -> list[str]:
    tree = parse(sql)
    if tree is None:
        raise QueryError(f"{what} of the semantic layer is not a query: {sql}")
    return [name.lower() for name in tables(tree)]


def _columns(session: FrameSources, name: str) -> list[str] | None:
    """The columns of a table; None if the session has no such table."""
    known = session.catalog().schema().names()
    exact = exact_name(name, known)
    try:
        return list(session.table(quoted_name(exact) if exact in known else name).schema().names)
    except BlendFusionError:
        return None


def _plan(session: FrameSources, what: str, sql: str) -> None:
    try:
        session.sql(sql, read_only=True)
    except BlendFusionError as problem:
        raise QueryError(
            f"{what} of the semantic layer does not plan: {problem.message}", hint=problem.hint
        ) from problem
