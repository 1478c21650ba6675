"""Semantic equality of SUQL: a literal compared with a declared enum stands for the members that
mean it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_list
from blendfusion.language.query_text.rewriter import Form, Weaver
from blendfusion.language.query_text.source_map import Piece
from blendfusion.services.dialects.common.columns import Columns
from blendfusion.services.dialects.suql.postgres_functions import contains, list_texts
from blendfusion.udfs.declare.arguments import quoted_name

_EQUAL = (TokenType.EQ, TokenType.NEQ)
Written = list[Piece | str]


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of an enum: the tokens that name it, and its table as it stands in FROM."""

    start: int
    stop: int
    name: str
    table: str
    is_list: bool


class Enums:
    """Claims the comparisons of one text with columns of enums. ``claimed``: their operators."""

    def __init__(self, weaver: Weaver, columns: Columns) -> None:
        self.weaver = weaver
        self.reader = weaver.reader
        self.columns = columns
        self.claimed: set[int] = set()
        if not columns.known.enums:
            return
        for at in range(len(self.reader.tokens)):
            if self.reader.kind(at) in _EQUAL:
                self._equality(at)
            elif self.reader.kind(at) == TokenType.DAMP:
                self._sets(at, at + 1, " OR ")
            elif contains(self.reader, at):
                turned = self.reader.kind(at) == TokenType.LT
                self._sets(at, at + 2, " AND ", turned=turned)
            elif self.reader.word(at) == "IN" and self.reader.opens(at + 1):
                self._among(at)

    def _column(self, start: int, stop: int) -> _Column | None:
        """The column of an enum that the tokens are; None if they are none."""
        if self.reader.column_end(start) != stop:
            return None
        source = self.columns.source(start, stop)
        if source is None or source.kind != "table":
            return None
        table = self.reader.name(source.end - 1)
        name = self.reader.name(stop - 1)
        if name not in self.columns.known.enums.get(table, ()):
            return None
        kind = self.columns.type(start, stop)
        relation = self.reader.source_text(source.start, source.end)
        return _Column(start, stop, name, relation, kind is not None and is_list(kind))

    # --- forms ------------------------------------------------------------------------------------

    def _equality(self, at: int) -> None:
        """``'x' = ANY(column)``, ``'x' <> ALL(column)``, ``column = 'x'`` and the like."""
        reader = self.reader
        differs = reader.kind(at) == TokenType.NEQ
        quantifier = reader.word(at + 1)
        if quantifier in ("ANY", "SOME", "ALL") and reader.opens(at + 2):
            close = reader.close[at + 2]
            column = self._column(at + 3, close)
            needed = "ALL" if differs else "ANY"
            right = quantifier == needed or (quantifier == "SOME" and not differs)
            if column is None or not right or reader.kind(at - 1) != TokenType.STRING:
                return
            literal = reader.source_text(at - 1, at)
            self._claim(at, at - 1, close + 1, column, [literal], " OR ", negated=differs)
            return
        for beside, start, stop in (
            (at + 1, reader.operand_before(at), at),
            (at - 1, at + 1, reader.operand_after(at + 1)),
        ):
            column = self._column(start, stop)
            if column is None or column.is_list or reader.kind(beside) != TokenType.STRING:
                continue
            first, last = min(start, beside), max(stop, beside + 1)
            literal = reader.source_text(beside, beside + 1)
            self._claim(at, first, last, column, [literal], " OR ", negated=differs)

    def _among(self, at: int) -> None:
        """``column [NOT] IN ('x', 'y')``."""
        reader = self.reader
        negated = reader.word(at - 1) == "NOT"
        stop = at - negated
        start = reader.operand_before(stop)
        column = self._column(start, stop)
        close = reader.close[at + 1]
        parts = reader.parts(at + 2, close)
        plain = all(b == a + 1 and reader.kind(a) == TokenType.STRING for a, b in parts)
        if column is not None and not column.is_list and plain:
            texts = [reader.source_text(*part) for part in parts]
            self._claim(at, start, close + 1, column, texts, " OR ", negated=negated)

    def _sets(self, at: int, after: int, together: str, *, turned: bool = False) -> None:
        """``column && ARRAY[…]``, ``column @> ARRAY[…]``, ``ARRAY[…] <@ column``."""
        reader = self.reader
        left = reader.operand_before(at), at
        right = after, reader.operand_after(after)
        sides = [(left, right), (right, left)]
        if together == " AND ":
            sides = sides[1:] if turned else sides[:1]
        for named, given in sides:
            column, texts = self._column(*named), list_texts(reader, *given)
            if column is not None and column.is_list and texts is not None:
                self._claim(at, left[0], right[1], column, texts, together)
                return

    def _claim(
        self,
        at: int,
        start: int,
        stop: int,
        column: _Column,
        literals: Sequence[str],
        together: str,
        *,
        negated: bool = False,
    ) -> None:
        self.claimed.add(at)
        tests = [self._test(column, literal) for literal in literals]
        if not tests:
            tests = [["TRUE" if together == " AND " else "FALSE"]]

        def write() -> Iterable[Piece | str]:
            yield "NOT (" if negated else "(" if len(tests) > 1 else ""
            for i, test in enumerate(tests):
                yield together if i else ""
                yield from test
            yield ")" if negated or len(tests) > 1 else ""

        self.weaver.add(Form(start, stop, write))

    def _test(self, column: _Column, literal: str) -> Written:
        """The column is (has) a member that a literal stands for."""
        reader = self.reader
        value = Piece(
            reader.source_text(column.start, column.stop),
            *reader.span(column.start, column.stop),
            copied=True,
        )
        name = quoted_name(column.name)
        member = f"unnest({name})" if column.is_list else name
        members = (
            f"(SELECT llm_members(term, domain) FROM (SELECT {literal} AS term, "
            "array_agg(DISTINCT member ORDER BY member) AS domain "
            f"FROM (SELECT {member} AS member FROM {column.table})))"
        )
        if column.is_list:
            return ["array_has_any(", value, f", {members})"]
        return [f"array_has({members}, ", value, ")"]
