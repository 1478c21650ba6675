"""A text as tokens, with matching brackets, operands, names, and the queries around a place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from sqlglot.tokenizer_core import Token, TokenType

from blendfusion.errors import QueryError
from blendfusion.sql.call_sites import nesting
from blendfusion.sql.query_tree import Query, Select, Source, identifier, name_of, queries, word
from blendfusion.sql.source_map import refused
from blendfusion.sql.tokenizer import tokenize

_NAMES = (TokenType.VAR, TokenType.IDENTIFIER)
_PREFIXES = ("ARRAY", "DATE", "TIME", "TIMESTAMP", "INTERVAL")


class Reader:
    """The tokens of one text. Positions are those of tokens unless they are called offsets."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data: frozenset[int] = frozenset()
        """Where values of parameters stand: text that is nothing but text."""
        self.tokens: list[Token] = tokenize(text)
        self.close: dict[int, int] = {}
        self.open: dict[int, int] = {}
        opened: list[int] = []
        for i, token in enumerate(self.tokens):
            change = nesting(token)
            if change > 0:
                opened.append(i)
            elif change < 0 and opened:
                first = opened.pop()
                self.close[first], self.open[i] = i, first

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The offsets of the tokens from ``start`` up to ``end``."""
        return self.tokens[start].start, self.tokens[end - 1].end + 1

    def written(self, start: int, end: int) -> str:
        """The tokens from ``start`` up to ``end`` as they were written; '' for none."""
        if start >= end:
            return ""
        first, last = self.span(start, end)
        return self.text[first:last]

    def kind(self, at: int) -> TokenType | None:
        """The type of the token at ``at``; None outside of the text."""
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def word(self, at: int) -> str:
        """The word at ``at`` in upper case; '' for what is quoted or outside of the text."""
        return word(self.tokens[at]) if 0 <= at < len(self.tokens) else ""

    def opens(self, at: int) -> bool:
        """A parenthesis that is closed stands at ``at``."""
        return self.kind(at) == TokenType.L_PAREN and at in self.close

    def is_name(self, at: int) -> bool:
        """An identifier stands at ``at``, quoted or a word that may be a name."""
        if self.kind(at) in _NAMES:
            return True
        text = self.tokens[at].text if 0 <= at < len(self.tokens) else ""
        return self.kind(at) != TokenType.STRING and text.replace("_", "a").isidentifier()

    def is_query(self, start: int, end: int) -> bool:
        """The tokens are a query in parentheses."""
        inside = start
        while inside < end and self.opens(inside):
            inside += 1
        known = self.word(inside) in ("SELECT", "WITH", "VALUES")
        return known and self.close.get(start) == end - 1

    def pair(self, at: int) -> tuple[str, str] | None:
        """(table, column) of ``'table::column'`` at ``at``; None if something else stands there."""
        quoted = self.kind(at) in (TokenType.STRING, TokenType.IDENTIFIER)
        if not quoted or at in self.data or "::" not in self.tokens[at].text:
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
        """One past the operand that starts at ``at``: a name, literal, call or parenthesis with
        what is behind it (a subscript, a cast)."""
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
                if not self.is_name(start - 1) or self.word(start - 1) in _NOT_CALLED:
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

    # --- queries around a place -----------------------------------------------------------------

    @cached_property
    def outer(self) -> list[Query]:
        """The outermost queries; none if the text is not understood."""
        return queries(self.tokens)

    @cached_property
    def selects(self) -> list[tuple[int, int, Select, Query]]:
        """Every SELECT with the range of tokens in which its columns are known, and its query."""
        found = []
        for outer in self.outer:
            for query, _ in outer.walk():
                for branch in query.branches:
                    if isinstance(branch, Select):
                        alone = len(query.branches) == 1
                        start, end = (
                            (query.start, query.end) if alone else (branch.start, branch.end)
                        )
                        found.append((start, end, branch, query))
        return found

    def around(self, at: int) -> list[tuple[Select, Query]]:
        """The SELECTs around ``at``, the innermost first."""
        holding = [(end - start, s, q) for start, end, s, q in self.selects if start <= at < end]
        return [(s, q) for _, s, q in sorted(holding, key=lambda found: found[0])]

    def sources(self, select: Select) -> Iterator[Source]:
        """The relations of a SELECT, those in parentheses too."""
        for source in select.sources:
            if source.group is not None:
                yield from self.sources(source.group)
            else:
                yield source

    def relation(self, name: str, at: int) -> Source | None:
        """What ``name`` qualifies columns of at ``at``: in the SELECTs around, else in any."""
        around = [s for s, _ in self.around(at)]
        others = [s for _, _, s, _ in self.selects if not any(s is other for other in around)]
        for select in (*around, *others):
            for source in self.sources(select):
                if name_of(source, self.tokens) == name:
                    return source
        return None

    def is_item(self, start: int, end: int) -> bool:
        """The tokens are a whole item of a select list, without an alias."""
        for select, _ in self.around(start):
            first, last = select.items
            if first <= start and end <= last:
                depth = sum(map(nesting, self.tokens[first:start]))
                begins = self.kind(start - 1) == TokenType.COMMA or self.word(start - 1) in (
                    "SELECT",
                    "DISTINCT",
                    "ALL",
                )
                ends = end == last or self.kind(end) == TokenType.COMMA
                return depth == 0 and begins and ends
        return False

    def items(self, select: Select) -> list[tuple[int, int]]:
        """The items of a select list."""
        first, last = select.items
        if self.word(first) in ("DISTINCT", "ALL"):
            first += 1
            if self.word(first) == "ON" and self.opens(first + 1):
                first = self.close[first + 1] + 1
        return self.parts(first, last)

    def parts(self, start: int, end: int) -> list[tuple[int, int]]:
        """The tokens between commas that stand in no bracket."""
        found, first, at = [], start, start
        while at < end:
            if self.kind(at) == TokenType.COMMA:
                found.append((first, at))
                first = at + 1
            at = self.close.get(at, at) + 1
        if first < end:
            found.append((first, end))
        return found

    def name(self, at: int) -> str:
        """The name that the identifier at ``at`` means."""
        return identifier(self.tokens[at])

    def refused(self, at: int, problem: str, hint: str | None = None) -> QueryError:
        """The error of the token at ``at``."""
        if at >= len(self.tokens):
            return refused((len(self.text), len(self.text)), problem, hint)
        return refused(self.span(at, at + 1), problem, hint)


_NOT_CALLED = {
    "AND",
    "OR",
    "NOT",
    "WHERE",
    "IN",
    "ON",
    "HAVING",
    "SELECT",
    "WHEN",
    "THEN",
    "ELSE",
    "BY",
}
