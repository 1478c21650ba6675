"""Completion of SQL in the shell: tables, columns, functions, their options, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

import blendfusion as bf
from blendfusion.errors import given_names
from blendfusion.udfs.register.user_functions import known_ingredients

_KEYWORDS = """
    ALL AND AS ASC BETWEEN BY CASE CAST COPY CREATE CROSS DESC DESCRIBE DISTINCT ELSE END EXCEPT
    EXISTS EXPLAIN ANALYZE FILTER FROM FULL GROUP HAVING IN INNER INSERT INTERSECT INTO IS JOIN
    LEFT LIKE LIMIT NOT NULL OFFSET ON OR ORDER OVER PARTITION RIGHT SELECT SET SHOW TABLE TABLES
    THEN TO UNION UPDATE USING VALUES VIEW WHEN WHERE WITH
    """.split()
_WORD = re.compile(r"[\w.\\]*$")
_OPEN_CALL = re.compile(r"(\w+)\s*\(([^()]|\([^()]*\))*$")


class SqlCompleter(Completer):
    """Completes the word at the cursor. Tables and columns are read from the session when they are
    needed."""

    def __init__(self, session: bf.Session, commands: Iterable[str]) -> None:
        self._session = session
        self._commands = tuple(commands)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        found = _WORD.search(before)
        word = found[0] if found else ""
        if before.lstrip().startswith("\\") and " " not in before.strip():
            yield from self._matching(word, self._commands, "command")
            return
        if not word:
            return
        table, dot, start = word.rpartition(".")
        if dot:
            yield from self._matching(start, self._columns(table), "column")
            return
        yield from self._matching(word, self._options(before), "option")
        yield from self._matching(word, self._tables(), "table")
        for name in self._tables():
            yield from self._matching(word, self._columns(name), f"column of {name}")
        yield from self._matching(word, known_ingredients(), "function")
        yield from self._matching(word, _KEYWORDS, "")

    def _matching(self, start: str, names: Iterable[str], kind: str) -> Iterator[Completion]:
        for name in names:
            if name.lower().startswith(start.lower()) and name != start:
                yield Completion(name, start_position=-len(start), display_meta=kind)

    def _tables(self) -> list[str]:
        return given_names(self._session.catalog().schema().names())

    def _columns(self, table: str) -> list[str]:
        try:
            return list(self._session.table(table).schema().names)
        except Exception:  # an alias, or no table: nothing is completed
            return []

    def _options(self, before: str) -> list[str]:
        """The options of the innermost call that is open."""
        call = _OPEN_CALL.search(before)
        ingredient = known_ingredients().get(call[1].lower()) if call else None
        return [f"{name} => " for p in ingredient.options for name in p.names] if ingredient else []
