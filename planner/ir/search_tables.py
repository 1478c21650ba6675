"""Searches as tables whose name encodes the search, so that no other state is needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from blendfusion.planner.ir.opaque_names import CATALOG
from blendfusion.udfs.declare.arguments import sql_string

SEARCHES = "searches"
"""The schema of these tables."""

Mode = Literal["text", "vector", "hybrid"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Search:
    """The best ``k`` rows of an index for a query.

    ``where``: an SQL condition over the index's columns, or ''. ``query`` is None if each row of
    another table has its own.
    """

    index: str
    query: str | None
    k: int
    mode: Mode
    where: str = ""

    def __str__(self) -> str:
        query = "…" if self.query is None else sql_string(self.query)
        parts = [
            sql_string(self.index),
            query,
            f"k => {self.k}",
            f"mode => {sql_string(self.mode)}",
        ]
        if self.where:
            parts.append(f"where => {sql_string(self.where)}")
        return f"llm_search({', '.join(parts)})"


def search_name(search: Search) -> str:
    """The name of the table of a search, in its schema."""
    # A dollar would become a parameter of the query, and a backslash escapes only in JSON.
    return json.dumps(asdict(search)).replace("$", "\\u0024")


def search_of(names: Sequence[str]) -> Search | None:
    """The search that a table's name encodes, from its parts; None for any other table."""
    if len(names) != 3 or names[0] != CATALOG or names[1] != SEARCHES:
        return None
    return Search(**json.loads(names[2]))
