"""Indexes that a recorded run searches, as inputs of its manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.planner.ir.search_tables import search_of
from blendfusion.udfs.declare.arguments import sql_string

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseSession

_NAME = re.compile(r"llm_search\('(.*)'\)", re.DOTALL)


def input_of(scan: str, session: BaseSession) -> str | None:
    """The input that a scan searches; None for any other scan, and for an index that cannot be
    opened by its folder alone."""
    search = search_of(scan.split(".", 2))
    return None if search is None else _name_of(search.index, session)


def inputs_of_rows(plan: str, session: BaseSession) -> Iterator[str]:
    """The inputs that a plan, as text, searches with a query for each row."""
    known = vars(session).get("indexes")
    for function, index in () if known is None else known.functions.items():
        if function in plan:
            found = _name_of(index, session)
            if found is not None:
                yield found


def _name_of(index: str, session: BaseSession) -> str | None:
    """The name of an index among the inputs of a manifest, where no table has it."""
    name = f"llm_search({sql_string(index)})"
    return None if folder_of(name, session) is None else name


def index_of(name: str) -> str | None:
    """The index with this name among the inputs; None: it is that of a table."""
    found = _NAME.fullmatch(name)
    return None if found is None else found[1].replace("''", "'")


def folder_of(name: str, session: BaseSession) -> Path | None:
    """The folder of an index among the inputs; None: the session has no such index."""
    found = _index(name, session)
    return None if found is None else found.folder.path


def rows_of_index(name: str, session: BaseSession) -> pa.Table | None:
    """The rows of an index among the inputs; None: the session has no such index."""
    found = _index(name, session)
    return None if found is None else found.snapshot().rows()


def _index(name: str, session: BaseSession) -> Any:
    known, index = vars(session).get("indexes"), index_of(name)
    if known is None or index is None:
        return None
    found: Any = known.index(index) if index in known.names else None
    return found if hasattr(found, "folder") else None
