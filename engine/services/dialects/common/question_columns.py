"""The context of a question: a subquery, and its columns by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Query, Reader, Select
from blendfusion.language.query_text.rewriter import Written
from blendfusion.services.dialects.common.braces import Argument, is_call
from blendfusion.udfs.declare.arguments import quoted_name

_ENDS = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.NUMBER, TokenType.STRING)
"""Tokens besides names that may precede an alias without AS."""
_ORDER = "context_order"
"""The prefix of the columns by which a context is ordered."""


@dataclass(slots=True)
class Table:
    """A context in FROM: its columns as they are written, their names, and the order of its
    rows."""

    source: Written
    columns: list[str]
    labels: Sequence[str] = ("context",)
    order: str = ""

    @property
    def first(self) -> str:
        """The clauses that keep its first row only."""
        return f" ORDER BY {self.order} LIMIT 1" if self.order else " LIMIT 1"


class Inside:
    """A subquery that is an argument, read by itself."""

    def __init__(self, around: Reader, given: Argument) -> None:
        start, stop = given.start, given.stop
        while around.opens(start):
            start, stop = start + 1, stop - 1
        self.start = start
        self.text = around.source_text(start, stop)
        self.reader = Reader(self.text)
        found = self.reader.outer
        self.query: Query | None = found[0] if found else None

    @property
    def first(self) -> Select | None:
        """Its first SELECT, which names its columns."""
        branch: Select | Query | None = self.query
        while isinstance(branch, Query):
            branch = branch.branches[0] if branch.branches else None
        return branch

    @property
    def items_end(self) -> int:
        """The last token of the items of its first SELECT, in the text around."""
        assert self.first is not None
        return self.start + self.first.items[1] - 1

    def outputs(self) -> list[tuple[str, str]] | None:
        """(name, how it is written, '' where it has none) of each column; None if a star stands for
        some."""
        reader = self.reader
        if reader.word(0) == "VALUES":
            count = len(reader.parts(2, reader.close[1])) if reader.opens(1) else 1
            return [(f"value {i}" if count > 1 else "value", "") for i in range(1, count + 1)]
        if self.first is None:
            return None
        items = reader.items(self.first)
        if any(self._is_star(*item) for item in items):
            return None
        return [self._output(start, stop) for start, stop in items]

    def _is_star(self, start: int, stop: int) -> bool:
        """``*``, ``t.*``, ``* EXCLUDE (…)``."""
        qualified = self.reader.kind(start + 1) == TokenType.DOT
        at = start + 2 if qualified else start
        return at < stop and self.reader.kind(at) == TokenType.STAR

    def _output(self, start: int, stop: int) -> tuple[str, str]:
        reader, last = self.reader, stop - 1
        column = reader.column_end(start) == stop
        behind = reader.kind(stop - 2) in _ENDS or reader.is_name(stop - 2)
        named = reader.is_name(last) and reader.word(last) != "END"
        aliased = reader.word(stop - 2) == "AS" or (named and stop - start > 1 and behind)
        if not column and aliased and reader.kind(last) == TokenType.STRING:
            return reader.tokens[last].text, quoted_name(reader.tokens[last].text)
        if column or aliased:
            return reader.name(last), reader.source_text(last, stop)
        return " ".join(reader.source_text(start, stop).split()), ""

    def order(self) -> tuple[list[str], str]:
        """Its ORDER BY as that of an aggregate over its rows, and the items that this needs;
        nothing where what it is ordered by is no expression of them."""
        reader, query, branch = self.reader, self.query, self.first
        if query is None or branch is None or query.branches != [branch]:
            return [], ""
        at = branch.end
        distinct = reader.word(branch.items[0]) == "DISTINCT"
        if at >= query.end or reader.kind(at) != TokenType.ORDER_BY or distinct:
            return [], ""
        stop = at + 1
        while stop < query.end and reader.word(stop) not in ("LIMIT", "OFFSET", "FETCH"):
            stop = reader.close.get(stop, stop) + 1
        named = {name for name, _ in self.outputs() or []}
        terms, added = [], []
        for number, (start, end) in enumerate(reader.parts(at + 1, stop), 1):
            last = end
            while reader.word(last - 1) in ("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                last -= 1
            calls = any(is_call(reader, i) for i in range(start, last))
            alias = last == start + 1 and reader.name(start) in named
            if reader.kind(start) == TokenType.NUMBER or calls:
                return [], ""
            if (
                alias
                and reader.column_end(start) == last
                and not self._is_plain(reader.name(start))
            ):
                return [], ""
            terms.append(f"{_ORDER}{number} {reader.source_text(last, end)}".strip())
            added.append(f", {reader.source_text(start, last)} AS {_ORDER}{number}")
        return terms, "".join(added)

    def _is_plain(self, name: str) -> bool:
        """The output of this name is the column of this name."""
        assert self.first is not None
        return any(
            self.reader.column_end(start) == stop and self.reader.name(stop - 1) == name
            for start, stop in self.reader.items(self.first)
        )


def unique(names: Sequence[str]) -> list[str]:
    """The names, with a number behind those that were there already."""
    found: list[str] = []
    for name in names:
        new, number = name, 1
        while new in found:
            number += 1
            new = f"{name} {number}"
        found.append(new)
    return found
