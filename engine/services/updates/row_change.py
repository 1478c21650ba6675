"""Reads UPDATE and DELETE as a query of the rows that they change.

``UPDATE t SET n = e WHERE p`` changes the rows of ``SELECT row, e FROM t WHERE p``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.source_map import Translation, edit
from blendfusion.language.query_text.statements import first_word
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.udfs.declare.arguments import quoted_name

_UNKNOWN = ("FROM", "USING", "RETURNING", "ORDER", "LIMIT", "FETCH", "OFFSET")
"""Clauses that are no part of what is read here. DataFusion leaves LIMIT out of its plan."""
_IGNORED = ("ORDER", "LIMIT", "FETCH", "OFFSET")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A column, and the tokens of its new value."""

    column: str
    start: int
    end: int


class RowChange:
    """An UPDATE or DELETE. ``table``: the name of its table as SQL; ``alias``: by which columns are
    named."""

    def __init__(self, text: str) -> None:
        self.tree = tree = TokenTree(text)
        self.deletes = tree.word(0) == "DELETE"
        self._end = len(tree.tokens)
        while self._end and tree.kind(self._end - 1) == TokenType.SEMICOLON:
            self._end -= 1
        first = 2 if self.deletes else 1
        at = first + 1
        while tree.kind(at) == TokenType.DOT:
            at += 2
        self.table = str(tree.source_text(first, at))
        self._where = self._clause("WHERE", at)
        self._set = at if self.deletes else self._clause("SET", at)
        alias = self._set - 1
        self.alias = tree.name(alias if alias >= at and not self.deletes else at - 1)

    @property
    def is_known(self) -> bool:
        """Whether the statement has no other clauses than are read here."""
        return self.tree.balanced and not any(self._words(_UNKNOWN))

    @property
    def ignored_clause(self) -> int | None:
        """The token of a clause that DataFusion would leave out."""
        return next(self._words(_IGNORED), None)

    @property
    def chooses(self) -> bool:
        """Whether it has a WHERE."""
        return self._where < self._end

    @property
    def has_query(self) -> bool:
        """Whether a subquery stands in it."""
        return "SELECT" in self.tree.words

    def assignments(self) -> list[Assignment]:
        """The assignments of SET, in order; none for DELETE."""
        if self.deletes:
            return []
        tree = self.tree
        parts = tree.parts(self._set + 1, self._where)
        return [Assignment(tree.name(start), start + 2, end) for start, end in parts]

    def query(self, rows: str, row: str, cast: Callable[[str], str | None]) -> Translation:
        """The query of the changed rows of the table ``rows``, in which they have numbers in the
        column ``row``: that, and the new values. ``cast``: the type of SQL of a column; None: the
        value needs no cast."""
        tree, edits = self.tree, list[tuple[int, int, str]]()
        source = f" FROM {rows} AS {quoted_name(self.alias)} "
        before, at = f"SELECT {quoted_name(row)}", 0
        for one in self.assignments():
            start, end = tree.span(one.start, one.end)
            kind = cast(one.column)
            edits.append((at, start, f"{before}, {'CAST(' if kind else ''}"))
            before = f"{f' AS {kind})' if kind else ''} AS {quoted_name(one.column)}"
            at = end
        stop = len(tree.text) if self._where == self._end else tree.span(self._where, self._end)[0]
        edits.append((at, stop, before + source))
        return edit(tree.text, edits)

    def _clause(self, word: str, start: int) -> int:
        """The token of a clause, outside of brackets; the end without one."""
        return next(self._words((word,), start), self._end)

    def _words(self, words: tuple[str, ...], start: int = 2) -> Iterator[int]:
        at = start
        while at < self._end:
            if self.tree.word(at) in words:
                yield at
            at = self.tree.close.get(at, at) + 1


def row_change(text: str) -> RowChange | None:
    """The UPDATE or DELETE of ``text``; None for another statement."""
    return RowChange(text) if first_word(text) in ("UPDATE", "DELETE") else None
