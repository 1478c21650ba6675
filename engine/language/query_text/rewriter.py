"""Rewrites a text form by form, and copies the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.source_map import Piece, Translation

Pieces: TypeAlias = "list[Piece]"
Written: TypeAlias = "list[Piece | str]"
"""The replacement of a form; a text replaces all of the form."""


@dataclass(frozen=True, slots=True)
class Form:
    """The replacement of the tokens from ``start`` up to ``stop``."""

    start: int
    stop: int
    write: Callable[[], Iterable[Piece | str]]


@dataclass
class Weaver:
    """The forms of one text. A form may contain others, which its writer weaves."""

    reader: Reader
    forms: dict[int, list[Form]] = field(default_factory=dict)
    behind: dict[int, str] = field(default_factory=dict)
    """Text to add behind the token at a position."""
    _open: list[Form] = field(default_factory=list)
    """The forms that are being written: one that weaves all of its own tokens does not meet
    itself."""

    def add(self, form: Form) -> None:
        """Claim tokens. If two forms start together, the longer one contains the shorter one."""
        here = self.forms.setdefault(form.start, [])
        here.append(form)
        here.sort(key=lambda f: -f.stop)

    def rewrite(self, start: int, stop: int, *parts: str | tuple[int, int]) -> None:
        """Replace tokens by new texts and by woven tokens."""
        self.add(Form(start, stop, lambda: self.write(*parts)))

    def rewrite_by(self, start: int, stop: int, write: Callable[[], Iterable[Piece | str]]) -> None:
        """Replace tokens by what is written when the whole text is."""
        self.add(Form(start, stop, write))

    def write(self, *parts: str | tuple[int, int]) -> Written:
        """New texts, and woven tokens."""
        woven = ([part] if isinstance(part, str) else self.weave(*part) for part in parts)
        return [piece for pieces in woven for piece in pieces]

    def whole(self) -> Translation:
        """The translation of the whole text."""
        reader = self.reader
        if not reader.tokens or not (self.forms or self.behind):
            return Translation(reader.text, self._copy(0, len(reader.text)))
        first, last = reader.span(0, len(reader.tokens))
        woven = self.weave(0, len(reader.tokens))
        end = len(reader.text)
        pieces = (*self._copy(0, first), *woven, *self._copy(last, end))
        return Translation(reader.text, pieces)

    def text(self, start: int, stop: int) -> str:
        """The text of ``weave``."""
        return "".join(piece.text for piece in self.weave(start, stop))

    def weave(self, start: int, stop: int) -> Pieces:
        """The tokens from ``start`` up to ``stop``, with the forms inside them written."""
        if start >= stop:
            return []
        reader, at = self.reader, start
        pieces: Pieces = []
        offset = reader.tokens[start].start
        while at < stop:
            form = next((f for f in self.forms.get(at, ()) if self._is_next(f, stop)), None)
            if form is None:
                form_stop = at + 1
            else:
                pieces += self._copy(offset, reader.tokens[at].start)
                pieces += self._write_form(form)
                form_stop = form.stop
                offset = reader.tokens[form_stop - 1].end + 1
            added = self.behind.get(form_stop - 1)
            if added is not None and not any(form_stop == one.stop for one in self._open):
                end = reader.tokens[form_stop - 1].end + 1
                pieces += [*self._copy(offset, end), Piece(added, end, end)]
                offset = end
            at = form_stop
        return [*pieces, *self._copy(offset, reader.tokens[stop - 1].end + 1)]

    def _is_next(self, form: Form, stop: int) -> bool:
        return form.stop <= stop and not any(form is one for one in self._open)

    def _write_form(self, form: Form) -> Pieces:
        start, end = self.reader.span(form.start, form.stop)
        self._open.append(form)
        try:
            pieces = [p if isinstance(p, Piece) else Piece(p, start, end) for p in form.write()]
        finally:
            self._open.pop()
        pieces = [p for p in pieces if p.text]
        text = self.reader.text
        if pieces and _is_one_word(text[:start], pieces[0].text):
            pieces.insert(0, Piece(" ", start, start))
        if pieces and _is_one_word(pieces[-1].text, text[end:]):
            pieces.append(Piece(" ", end, end))
        # Lines keep their numbers, which DataFusion's messages name.
        lines = text.count("\n", start, end) - sum(p.text.count("\n") for p in pieces)
        if lines > 0:
            pieces.append(Piece("\n" * lines, start, end))
        return pieces

    def _copy(self, start: int, end: int) -> tuple[Piece, ...]:
        if start >= end:
            return ()
        return (Piece(self.reader.text[start:end], start, end, copied=True),)


def _is_one_word(left: str, right: str) -> bool:
    """Both would be read as one word: ``ON`` and ``llm_join``."""
    return (
        f"{left[-1:]}a".isidentifier() and f"a{right[:1]}".isidentifier() and bool(left and right)
    )


def join_parts(parts: Sequence[Iterable[Piece | str]], separator: str = ", ") -> Written:
    """The parts with ``separator`` between them."""
    out: Written = []
    for i, part in enumerate(parts):
        if i:
            out.append(separator)
        out += part
    return out
