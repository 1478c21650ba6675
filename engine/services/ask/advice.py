"""States what a failed draft overlooked: which table has a column, and which column a value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blendfusion.services.ask.check import Attempt
from blendfusion.services.ask.links import ValueIndex
from blendfusion.services.ask.listed_values import find_list_item
from blendfusion.services.ask.literals import strings
from blendfusion.services.ask.schema.catalog import Catalog
from blendfusion.udfs.declare.arguments import sql_string

_UNKNOWN = re.compile(r"unknown column '(?:[^'.]*\.)?([^'.]+)'")
_MOST = 4


def advice(failed: Attempt, catalog: Catalog, index: ValueIndex) -> list[str]:
    """Sentences about the catalogue that bear on the problem of ``failed``, at most ``_MOST``."""
    return [*_columns(failed, catalog), *_values(failed, catalog, index)][:_MOST]


def _columns(failed: Attempt, catalog: Catalog) -> Iterator[str]:
    unknown = _UNKNOWN.search(failed.problem)
    if unknown is None:
        return
    holders = [
        f"{table.name}.{column.name}"
        for table in catalog.tables
        for column in table.columns
        if column.name.lower() == unknown[1].lower()
    ]
    if holders:
        yield f"The column is {' or '.join(holders)}: join that table."


def _values(failed: Attempt, catalog: Catalog, index: ValueIndex) -> Iterator[str]:
    item = find_list_item(failed.sql, catalog)
    if item is not None:
        yield item.fact
    for text in dict.fromkeys(strings(failed.sql)):
        if item is not None and item.item == text:
            continue
        columns = index.columns_with(text)
        if columns:
            yield f"{sql_string(text)} is a value of {' or '.join(columns[:3])}."
            continue
        near = index.links(text, most=1)
        if near:
            yield f"{sql_string(text)} is no value; {near[0].column} has {sql_string(near[0].value)}."
