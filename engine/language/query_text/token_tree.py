"""A text as tokens: brackets that match, operands, names, and what takes the place of some."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.source_map import edit, part, refusal
from blendfusion.language.query_text.tokenizer import QUOTED, Sql, identifier, nesting, sql_of

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_PREFIXES = ("ARRAY", "DATE", "TIME", "TIMESTAMP", "INTERVAL")
_EXPLAIN = ("EXPLAIN", "ANALYZE", "VERBOSE", "FORMAT")
_NOT_CALLED = {
    *("AND", "OR", "NOT", "WHERE", "IN", "ON", "HAVING", "SELECT", "WHEN", "THEN", "ELSE", "BY"),
}

RESERVED = {
    *("ALL", "AND", "ANY", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CREATE", "CROSS"),
    *("DELETE", "DESC", "DISTINCT", "DROP", "ELSE", "END", "EXCEPT", "EXISTS", "FALSE"),
    *("FILTER", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INSERT", "INTERSECT", "INTO"),
    *("IS", "JOIN", "LATERAL", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NULL", "NULLS"),
    *("OFFSET", "ON", "OR", "ORDER", "OUTER", "OVER", "PARTITION", "RIGHT", "SELECT", "SET"),
    *("TABLE", "THEN", "TRUE", "UNION", "UPDATE", "USING", "VALUES", "WHEN", "WHERE", "WITH"),
}
"""Words that are no names unless they are quoted."""


class TokenTree:
    """The tokens of one text. Positions are those of tokens unless they are called offsets; an end
    is one past the last."""

    def __init__(self, text: str) -> None:
        self.text = sql_of(text)
        self.data: frozenset[int] = frozenset()
        """Where values of parameters stand: text that is nothing but text."""
        self.tokens: list[Token] = self.text.tokens
        self.words = self.text.words
        """The word of each token: see ``word``."""
        self.close, self.open, self.balanced = self.text.brackets

    @cached_property
    def statement(self) -> int:
        """Where the statement starts, behind EXPLAIN and its words."""
        at = 0
        while self.word(0) == "EXPLAIN":
            if self.opens(at) and self.word(at + 1) in _EXPLAIN:
                at = self.close[at] + 1
            elif self.word(at) in _EXPLAIN:
                at += 1 + (self.word(at) == "FORMAT")
            else:
                break
        return at

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The offsets of the tokens from ``start`` up to ``end``."""
        return self.tokens[start].start, self.tokens[end - 1].end + 1

    def source_text(self, start: int, end: int) -> Sql:
        """The tokens from ``start`` up to ``end`` as they were written; '' for none."""
        return part(self.text, *self.span(start, end)) if start < end else Sql("")

    def one_line(self, start: int, end: int) -> str:
        """The tokens from ``start`` up to ``end`` as they were written, on one line."""
        return " ".join(self.source_text(start, end).split())

    def kind(self, at: int) -> TokenType | None:
        """The type of the token at ``at``; None outside of the text."""
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def word(self, at: int) -> str:
        """The word at ``at`` in upper case; '' for a quoted token, or outside of the text."""
        return self.words[at] if 0 <= at < len(self.tokens) else ""

    def opens(self, at: int) -> bool:
        """A parenthesis that is closed stands at ``at``."""
        return self.kind(at) == TokenType.L_PAREN and at in self.close

    def is_name(self, at: int) -> bool:
        """An identifier stands at ``at``, quoted or a word that may be a name."""
        if self.kind(at) in _NAMES:
            return True
        text = self.tokens[at].text if 0 <= at < len(self.tokens) else ""
        return self.kind(at) != TokenType.STRING and text.replace("_", "a").isidentifier()

    def is_called(self, at: int) -> bool:
        """The parenthesis at ``at`` holds the arguments of a function."""
        return self.is_name(at - 1) and self.word(at - 1) not in _NOT_CALLED

    def is_query(self, start: int, end: int) -> bool:
        """The tokens are a query in parentheses."""
        inside = start
        while inside < end and self.opens(inside):
            inside += 1
        known = self.word(inside) in ("SELECT", "WITH", "VALUES")
        return known and self.close.get(start) == end - 1

    def bare(self, start: int, end: int) -> tuple[int, int]:
        """The tokens without parentheses around all of them; a query keeps one pair."""
        while self.opens(start) and self.close[start] == end - 1 > start + 1:
            if self.is_query(start, end) and not self.opens(start + 1):
                break
            start, end = start + 1, end - 1
        return start, end

    def pair(self, at: int) -> tuple[str, str] | None:
        """(table, column) of ``'table::column'`` at ``at``; None if something else stands there."""
        if self.kind(at) not in QUOTED or at in self.data or "::" not in self.tokens[at].text:
            return None
        table, _, column = self.tokens[at].text.partition("::")
        return table, column

    def column_end(self, at: int) -> int | None:
        """One past the column (``c``, ``t.c``) that starts at ``at``; None if none does."""
        if self.kind(at) not in _NAMES and not (
            self.is_name(at) and self.kind(at + 1) == TokenType.DOT
        ):
            return None
        while self.kind(at + 1) == TokenType.DOT and self.is_name(at + 2):
            at += 2
        return None if self.opens(at + 1) else at + 1

    def operand_after(self, at: int) -> int:
        """One past the operand that starts at ``at``: a name, literal, call or parenthesis, with
        its subscripts and casts."""
        first = at
        if self.kind(at) == TokenType.DASH:
            at += 1
        if self.word(at) in _PREFIXES and self.kind(at + 1) in (
            TokenType.L_BRACKET,
            TokenType.STRING,
        ):
            at += 1
        at = self.close.get(at, at) + 1
        while at < len(self.tokens):
            if self.kind(at) == TokenType.DOT:
                at += 2
            elif self.kind(at) in (TokenType.L_PAREN, TokenType.L_BRACKET) and at in self.close:
                if self.kind(at) == TokenType.L_PAREN and self.kind(at - 1) == TokenType.STRING:
                    break
                at = self.close[at] + 1
            elif self.kind(at) == TokenType.DCOLON:
                at = self.type_end(at + 1)
            else:
                break
        return max(at, first + 1)

    def type_end(self, at: int) -> int:
        """One past the type that starts at ``at``: a word or several, ``(10, 2)``, ``[]``."""
        at += 1
        while self.opens(at) or (self.kind(at) == TokenType.L_BRACKET and at in self.close):
            at = self.close[at] + 1
        return at

    def operand_before(self, at: int) -> int:
        """Where the operand starts that ends before ``at``: see ``operand_after``."""
        start = at - 1
        while start > 0:
            if start in self.open:  # a call, a subscript, ARRAY […], or the type numeric(10, 2)
                start = self.open[start]
                before = self.tokens[start - 1] if start else None
                if before is None:
                    return start
                if self.kind(start) == TokenType.L_BRACKET:
                    if self.kind(start - 1) == TokenType.DCOLON:
                        return start
                    joined = (
                        self.is_name(start - 1)
                        or self.kind(start - 1) == TokenType.ARRAY
                        or start - 1 in self.open
                    )
                    if not joined:
                        return start
                    start -= 1
                    continue
                if not self.is_called(start):
                    return start
                start -= 1
                continue
            before_kind = self.kind(start - 1)
            if before_kind in (TokenType.DOT, TokenType.DCOLON):
                start -= 2
                continue
            if self.kind(start) == TokenType.STRING and self.word(start - 1) in _PREFIXES:
                return start - 1
            return start
        return start

    def parts(
        self, start: int, end: int, separator: TokenType = TokenType.COMMA
    ) -> list[tuple[int, int]]:
        """The tokens between separators that stand in no bracket."""
        found, first, at = [], start, start
        while at < end:
            if self.kind(at) == separator:
                found.append((first, at))
                first = at + 1
            at = self.close.get(at, at) + 1
        if first < end:
            found.append((first, end))
        return found

    def depth(self, start: int, end: int) -> int:
        """How many brackets are open before ``end`` that were not before ``start``."""
        return sum(map(nesting, self.tokens[start:end]))

    def first(self, start: int, end: int, kind: TokenType) -> int | None:
        """The position of the first token of a kind that stands in no bracket."""
        while start < end and self.kind(start) != kind:
            start = self.close.get(start, start) + 1
        return start if start < end else None

    def name(self, at: int) -> str:
        """The name that the identifier at ``at`` means."""
        return identifier(self.tokens[at])

    def refusal(self, at: int, problem: str, hint: str | None = None) -> QueryError:
        """The error of the token at ``at``."""
        if at >= len(self.tokens):
            return refusal((len(self.text), len(self.text)), problem, hint)
        return refusal(self.span(at, at + 1), problem, hint)

    def edit(
        self, edits: Iterable[tuple[int, int, str]], start: int = 0, end: int | None = None
    ) -> Sql:
        """The text, or that of the tokens from ``start`` up to ``end``, with tokens replaced:
        (first, one past the last, text). Edits elsewhere, and one inside another, are dropped."""
        text = self.text if end is None else self.source_text(start, end)
        end = len(self.tokens) if end is None else end
        before = 0 if text is self.text else self.tokens[start].start
        found, at = [], start
        for first, stop, new in sorted(edits, key=lambda e: (e[0], -e[1])):
            if at <= first and stop <= end:
                a, b = self.span(first, stop)
                found.append((a - before, b - before, new))
                at = stop
        return edit(text, found).sql
