"""Keeps the SQL of views, and the tables without a name that they read; DataFusion keeps only their
plans."""

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
_DROP = re.compile(
    rf"{BLANK}*+DROP{BLANK}++VIEW{BLANK}++(?:IF{BLANK}++EXISTS{BLANK}++)?([^\s;]++)",
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
        self.statements: dict[str, str] = {}
        """The statements that create the views again, in the order in which these were created, by
        their names in small letters, without quotes."""

    def hold(self, name: str, tables: Iterable[UnnamedTable]) -> None:
        """Keep the ``tables`` that the view ``name`` reads, by whose names it is planned, until
        another is called so."""
        self.release(name)
        self._tables[_key(name)] = tables

    def release(self, name: str) -> None:
        """Forget a view, but for its query."""
        self._tables.pop(_key(name), None)
        self.statements.pop(_key(name), None)

    def note(self, sql: str, tables: Mapping[str, UnnamedTable]) -> None:
        """Remember ``sql`` if it creates a view, and the ``tables`` of the frames in it."""
        dropped = _DROP.match(sql)
        if dropped is not None:
            self.release(dropped[1])
        if _HEAD.match(sql) is None:
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
        self.statements[_key(name)] = f"CREATE OR REPLACE VIEW {sql[tokens[at].start :]}"
        if calls_in(sql):
            self._queries[name.lower()] = sql[tokens[behind + 1].start :].rstrip().rstrip(";")

    def query(self, name: str) -> str | None:
        """The query of the view ``name``, in SQL notation."""
        return self._queries.get(name.lower())


def _key(name: str) -> str:
    return name.replace('"', "").lower()
