"""Parses a full-text query: plain words, phrases, and the operators AND, OR, NOT.

Queries may come from data, one per row, so every text is valid: a query with misplaced operators is
read as plain words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lance.query import FullTextQuery

_PARTS = re.compile(r'"[^"]*"|[()]|[^\s()"]+')
_OPERATORS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True)
class Words:
    """Any of these words; rows with more of them, and with rarer ones, rank higher."""

    text: str


@dataclass(frozen=True, slots=True)
class Phrase:
    """These words in sequence."""

    text: str


@dataclass(frozen=True, slots=True)
class CombinedTerms:
    """``some``: at least one of them, if there is any; ``all``: each of them; ``none``: none of
    them."""

    some: tuple[Term, ...] = ()
    all: tuple[Term, ...] = ()
    none: tuple[Term, ...] = ()


Term: TypeAlias = "Words | Phrase | CombinedTerms"


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A parsed query. ``term`` is None without words. ``plain``: no operators and no phrases, so no
    row is excluded. ``text`` is the query for a vector."""

    term: Term | None
    plain: bool
    text: str


def text_query(text: str) -> TextQuery:
    """The parsed ``text``; never an error.

    Adjacent words form one group, of which any may match. NOT binds more strongly than AND, and AND
    more strongly than OR; operators are in capitals.

    >>> text_query('gravel bike AND NOT "road bike"').term
    CombinedTerms(some=(), all=(Words(text='gravel bike'),), none=(Phrase(text='road bike'),))
    """
    parts = _PARTS.findall(text)
    if any(part in _OPERATORS or part[0] == '"' for part in parts):
        try:
            reader = _Reader(parts)
            term = reader.whole()
        except (_SenselessError, RecursionError):
            pass
        else:
            return TextQuery(term, False, " ".join(reader.wanted))
    words = " ".join(part for part in parts if part not in ("(", ")"))
    return TextQuery(Words(words) if words else None, True, text)


def lance_query(term: Term, column: str) -> FullTextQuery:
    """``term`` as a query of Lance's full-text search."""
    from lance.query import BooleanQuery, MatchQuery, Occur, PhraseQuery

    if isinstance(term, Words):
        return MatchQuery(term.text, column)
    if isinstance(term, Phrase):
        return PhraseQuery(term.text, column)
    return BooleanQuery(
        [
            *((Occur.SHOULD, lance_query(part, column)) for part in term.some),
            *((Occur.MUST, lance_query(part, column)) for part in term.all),
            *((Occur.MUST_NOT, lance_query(part, column)) for part in term.none),
        ]
    )


class _SenselessError(Exception):
    pass


class _Reader:
    """A recursive descent parser. ``wanted`` collects the words that no NOT excludes."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        self._at = 0
        self._negated = 0
        self.wanted: list[str] = []

    def whole(self) -> Term:
        term = self._or()
        if self._at < len(self._parts):
            raise _SenselessError
        return term

    def _next(self) -> str:
        return self._parts[self._at] if self._at < len(self._parts) else ""

    def _or(self) -> Term:
        return self._several("OR", self._and)

    def _several(self, operator: str, read: Callable[[], Term]) -> Term:
        terms = [read()]
        while self._next() == operator:
            self._at += 1
            terms.append(read())
        return terms[0] if len(terms) == 1 else CombinedTerms(some=tuple(terms))

    def _and(self) -> Term:
        wanted, unwanted = [self._group()], list[Term]()
        while self._next() in ("AND", "NOT"):
            self._at += self._next() == "AND"
            if self._next() != "NOT":
                wanted.append(self._group())
                continue
            self._at += 1
            self._negated += 1
            unwanted.append(self._group())
            self._negated -= 1
        if len(wanted) == 1 and not unwanted:
            return wanted[0]
        return CombinedTerms(all=tuple(wanted), none=tuple(unwanted))

    def _group(self) -> Term:
        """Adjacent words, phrases and parentheses."""
        terms: list[Term] = []
        words: list[str] = []

        def settle() -> None:
            if words:
                terms.append(Words(" ".join(words)))
                words.clear()

        while (part := self._next()) and part != ")" and part not in _OPERATORS:
            self._at += 1
            if part == "(":
                settle()
                terms.append(self._or())
                if self._next() != ")":
                    raise _SenselessError
                self._at += 1
            elif part[0] == '"':
                inside = part.strip('"').strip()
                if inside:
                    settle()
                    terms.append(Phrase(inside))
                    self._note(inside)
            else:
                words.append(part)
                self._note(part)
        settle()
        if not terms:
            raise _SenselessError
        return terms[0] if len(terms) == 1 else CombinedTerms(some=tuple(terms))

    def _note(self, text: str) -> None:
        if not self._negated:
            self.wanted.append(text)
