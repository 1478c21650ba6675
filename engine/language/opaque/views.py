"""Keeps the SQL of views with calls, and the tables without a name that views read; DataFusion
keeps only their plans."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from blendfusion.datafusion.unnamed_tables import UnnamedTable
from blendfusion.language.query_text.statements import BLANK
from blendfusion.language.query_text.tokenizer import tokenize
from blendfusion.udfs.declare.call_registry import calls_in

_HEAD = re.compile(
    rf"{BLANK}*+CREATE{BLANK}++(OR{BLANK}++REPLACE{BLANK}++)?(TEMP(ORARY)?{BLANK}++)?VIEW\b",
    re.IGNORECASE | re.DOTALL,
)
_BEFORE_NAME = {"CREATE", "OR", "REPLACE", "TEMP", "TEMPORARY", "VIEW", "IF", "NOT", "EXISTS"}


class Views:
    """The views that a session's SQL created, by their names as written.

    A view may have been dropped or replaced since: callers must compare.
    """

    def __init__(self) -> None:
        self._queries: dict[str, str] = {}
        self._tables: dict[str, Iterable[UnnamedTable]] = {}

    def hold(self, name: str, tables: Iterable[UnnamedTable]) -> None:
        """Keep the ``tables`` that the view ``name`` reads, by whose names it is planned, until
        another is called so."""
        self._tables[name.strip('"').lower()] = tables

    def release(self, name: str) -> None:
        """Forget what ``hold`` kept."""
        self._tables.pop(name.strip('"').lower(), None)

    def note(self, sql: str, tables: Mapping[str, UnnamedTable]) -> None:
        """Remember ``sql`` if it creates a view with calls, and the ``tables`` of the frames in
        it."""
        has_calls = bool(calls_in(sql))
        if _HEAD.match(sql) is None or not (has_calls or tables):
            return
        tokens = tokenize(sql)
        at = 0
        while at < len(tokens) and tokens[at].text.upper() in _BEFORE_NAME:
            at += 1
        behind = next((i for i in range(at, len(tokens)) if tokens[i].text.upper() == "AS"), None)
        if behind is None or behind + 1 >= len(tokens):
            return
        name = sql[tokens[at].start : tokens[behind - 1].end + 1]
        self.hold(name, list(tables.values()))
        if has_calls:
            self._queries[name.lower()] = sql[tokens[behind + 1].start :].rstrip().rstrip(";")

    def query(self, name: str) -> str | None:
        """The query of the view ``name``, in SQL notation."""
        return self._queries.get(name.lower())
