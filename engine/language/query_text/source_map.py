"""A translated text with the origin of each character in the source."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token

from blendfusion.errors import QueryError
from blendfusion.language.query_text.tokenizer import Sql, sql_of, tokenize


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a translation, and the characters ``start`` to ``end`` of the source that it stands
    for. ``copied``: it is those characters."""

    text: str
    start: int
    end: int
    copied: bool = False


@dataclass(frozen=True)
class Translation:
    """``source`` in our SQL, in pieces from left to right."""

    source: Sql
    pieces: tuple[Piece, ...]
    sql: Sql = field(init=False)
    _starts: tuple[int, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        starts, at = [], 0
        for piece in self.pieces:
            starts.append(at)
            at += len(piece.text)
        whole = len(self.pieces) == 1 and self.pieces[0].text == self.source
        sql = "".join(p.text for p in self.pieces)
        made = Sql(sql, lambda: _splice(self.source, self.pieces))
        object.__setattr__(self, "sql", self.source if whole else made)
        object.__setattr__(self, "_starts", tuple(starts))

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the source that the characters ``start`` to ``end`` of ``sql`` stand
        for.

        Copied text is exact to the character; of written text it is all that it was written for.
        """
        found = [self._origin_of(at) for at in (start, max(start, end - 1))]
        return found[0][0], max(found[1][1], found[0][0])

    def _origin_of(self, at: int) -> tuple[int, int]:
        if not self.pieces:
            return 0, len(self.source)
        i = max(0, bisect_right(self._starts, at) - 1)
        piece = self.pieces[i]
        if not piece.copied:
            return piece.start, piece.end
        inside = min(at - self._starts[i], len(piece.text) - 1)
        return piece.start + inside, piece.start + inside + 1

    def then(self, later: Translation) -> Translation:
        """The composition of this translation with a later one of its ``sql``."""
        pieces: list[Piece] = []
        for piece in later.pieces:
            if piece.copied:
                pieces += self._cut(piece.start, piece.end)
            else:
                pieces.append(Piece(piece.text, *self.origin(piece.start, piece.end)))
        both = Translation(self.source, tuple(pieces))
        object.__setattr__(both, "sql", later.sql)  # the same text, which has its tokens
        return both

    def _cut(self, start: int, end: int) -> Iterable[Piece]:
        """The pieces of the characters ``start`` to ``end`` of ``sql``."""
        i = max(0, bisect_right(self._starts, start) - 1)
        for piece, first in zip(self.pieces[i:], self._starts[i:], strict=True):
            if first >= end:
                break
            a, b = max(start - first, 0), min(end - first, len(piece.text))
            if a >= b:
                continue
            if piece.copied:
                yield Piece(piece.text[a:b], piece.start + a, piece.start + b, copied=True)
            else:
                yield Piece(piece.text[a:b], piece.start, piece.end)


def identity(text: str) -> Translation:
    """The translation of a text that needs none."""
    return Translation(sql_of(text), (Piece(text, 0, len(text), copied=True),) if text else ())


def place(text: str, at: int) -> str:
    """Where a character of ``text`` stands, as people count.

    >>> place("SELECT 1,\\n  x", 12)
    'line 2, column 3'
    """
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - (text.rfind(chr(10), 0, at) + 1) + 1}"


def refusal(span: tuple[int, int], problem: str, hint: str | None = None) -> QueryError:
    """The error of some characters of a text."""
    error = QueryError(problem, hint=hint)
    error.span = span
    return error


def place_in_source(error: QueryError, translation: Translation) -> QueryError:
    """An error of ``translation.sql`` that says where in the source it is, if it knows."""
    if error.span is None:
        return error
    start, end = translation.origin(*error.span)
    new = type(error)(f"{place(translation.source, start)}: {error.message}", hint=error.hint)
    new.span = start, end
    return new


def within(error: QueryError, translation: Translation) -> QueryError:
    """An error of ``translation.sql`` as one of the source."""
    if error.span is not None:
        error.span = translation.origin(*error.span)
    return error


def edit(text: str, edits: Iterable[tuple[int, int, str]]) -> Translation:
    """``text`` with the characters of each (start, end, new text) replaced; edits do not
    overlap."""
    pieces, at = [], 0
    for start, end, new in sorted(edits):
        if start > at:
            pieces.append(Piece(text[at:start], at, start, copied=True))
        if new:
            pieces.append(Piece(new, start, end))
        at = end
    if at < len(text):
        pieces.append(Piece(text[at:], at, len(text), copied=True))
    return Translation(sql_of(text), tuple(pieces))


def part(text: Sql, start: int, end: int) -> Sql:
    """The characters ``start`` to ``end`` of a text."""
    piece = Piece(text[start:end], start, end, copied=True)
    return Sql(piece.text, lambda: _splice(text, (piece,)))


# --- tokens ---------------------------------------------------------------------------------------

_APART = frozenset(" \t\r\n()[],;")
"""Characters that end the token before them, and never continue it."""


def _splice(source: Sql, pieces: Sequence[Piece]) -> list[Token]:
    """The tokens of some pieces together: those of the source where it is copied. What is written
    is read, and everything if a token may be of two pieces."""
    found: list[Token] = []
    starts: Sequence[int] = ()
    sql, at, line = "".join(piece.text for piece in pieces), 0, 1
    for piece in _merge(pieces):
        apart = not at or not _APART.isdisjoint((sql[at - 1], piece.text[0]))
        if piece.copied:
            starts = starts or [token.start for token in source.tokens]
            i, j = bisect_left(starts, piece.start), bisect_left(starts, piece.end)
            tokens = source.tokens[i:j]
            whole = not i or source.tokens[i - 1].end < piece.start
            apart = apart and whole and (not tokens or tokens[-1].end < piece.end)
            start = piece.start
            lines = line - 1 - source.count("\n", 0, start)
        else:
            tokens, start, lines = tokenize(piece.text), 0, line - 1
        if not apart:
            return tokenize(sql)
        for token in tokens:
            first, last = token.start - start + at, token.end - start + at
            kind, text = token.token_type, token.text
            found.append(Token(kind, text, token.line + lines, token.col, first, last))
        at += len(piece.text)
        line += piece.text.count("\n")
    return found


def _merge(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces; adjacent ones are merged."""
    before: Piece | None = None
    for piece in filter(lambda p: p.text, pieces):
        one = before is not None and before.copied == piece.copied
        if before is None or not one or (piece.copied and before.end != piece.start):
            if before is not None:
                yield before
            before = piece
        else:
            before = Piece(before.text + piece.text, before.start, piece.end, piece.copied)
    if before is not None:
        yield before
