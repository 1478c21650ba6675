"""Casts of other systems: their types, and what a cast leaves out."""

from __future__ import annotations

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver, Written
from blendfusion.services.dialects.functions.call import Span, System
from blendfusion.services.dialects.functions.operands import operand_start
from blendfusion.services.dialects.functions.types import Types
from blendfusion.udfs.declare.arguments import sql_string

_WHOLE = ("BIGINT", "INT", "SMALLINT", "TINYINT", "INTEGER")
_AS_OURS = {
    *(*_WHOLE, "BOOLEAN", "DATE", "TEXT", "VARCHAR", "STRING", "DOUBLE", "REAL", "TIMESTAMP"),
    *("TIME", "DECIMAL", "INT8", "INT4", "INT2", "BOOL", "CHARACTER VARYING", "DOUBLE PRECISION"),
    *("NUMERIC", "BYTEA", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"),
}
"""Types that are spelled so in our SQL, too."""
_SAME = {
    "INT8": ("BIGINT",),
    "INT4": ("INT",),
    "INT2": ("SMALLINT",),
    "BOOL": ("BOOLEAN",),
    "DOUBLE PRECISION": ("DOUBLE",),
    "NUMERIC": ("DECIMAL",),
    "TIMESTAMPTZ": ("TIMESTAMP WITH TIME ZONE",),
    "INTEGER": ("INT",),
}
_OF_NUMBERS = {
    *(TokenType.NUMBER, TokenType.DASH, TokenType.PLUS, TokenType.STAR, TokenType.SLASH),
    *(TokenType.L_PAREN, TokenType.R_PAREN),
}
_TRIES = ("TRY_CAST", "SAFE_CAST")


class Casts:
    """The casts of one text to the types of a system."""

    def __init__(self, weaver: Weaver, types: Types, system: System) -> None:
        self.weaver = weaver
        self.reader: Reader = weaver.reader
        self.types = types
        self.system = system

    def claim(self, at: int) -> None:
        """Have the cast at ``at`` written: ``CAST(`` or ``::``."""
        reader = self.reader
        if reader.kind(at) == TokenType.DCOLON:
            stop = reader.type_end(at + 1)
            start = operand_start(reader, at)
            self._add((start, stop), "CAST", (start, at), (at + 1, stop))
        elif reader.word(at) in ("CAST", *_TRIES) and reader.opens(at + 1):
            close = reader.close[at + 1]
            behind = next(
                (
                    i
                    for i in range(at + 2, close)
                    if reader.word(i) == "AS" and not reader.depth(at + 2, i)
                ),
                None,
            )
            if behind is None:
                return
            end = next((i for i in range(behind, close) if reader.word(i) == "FORMAT"), close)
            if end != close:
                raise reader.refusal(
                    end, "CAST with FORMAT has no equal here", "Write to_char(time, '%Y-%m-%d')."
                )
            function = "TRY_CAST" if reader.word(at) in _TRIES else "CAST"
            self._add((at, close + 1), function, (at + 2, behind), (behind + 1, close))

    def _add(self, whole: Span, function: str, value: Span, kind: Span) -> None:
        word, _ = self._type(*kind)
        if word not in self.system.casts:
            if self.system.strict:
                raise self.refusal(kind[0], word)
            return

        def write() -> Written:
            ours = self._write(function, value, kind)
            return list(self.weaver.weave(*whole)) if ours is None else ours

        self.weaver.rewrite_by(*whole, write)

    def _type(self, start: int, stop: int) -> tuple[str, str]:
        """The type's word and what stands behind it, in parentheses."""
        opened = self.reader.first(start, stop, TokenType.L_PAREN)
        end = stop if opened is None else opened
        word = " ".join(self.reader.tokens[i].text.upper() for i in range(start, end))
        behind = "" if opened is None else self.reader.one_line(opened, stop)
        return word, behind

    def refusal(self, at: int, word: str) -> QueryError:
        known = ", ".join(sorted(self.system.casts))
        return self.reader.refusal(
            at, f"the type {word} of {self.system.title} has no equal here", f"Types: {known}."
        )

    def _write(self, function: str, value: Span, kind: Span) -> Written | None:
        """The cast in our SQL; None if it is written alike."""
        word, behind = self._type(*kind)
        ours = self.system.casts[word]
        found = self.types.of(*value)
        text: Written = [*self.weaver.weave(*value)]
        if ours == "VARCHAR":
            made = self._as_text(function, text, behind, found)
            return (
                None if made is None and word in _AS_OURS else made or _cast(function, text, ours)
            )
        if behind and ours.startswith("DECIMAL"):
            ours = f"DECIMAL{behind}"
        fraction = found is not None and (pa.types.is_floating(found) or pa.types.is_decimal(found))
        if self.system.rounds and ours in _WHOLE and fraction:
            even = self.system.rounds_to_even and pa.types.is_floating(found)
            even = even and not self._is_literal(*value)  # which is a DECIMAL there
            return [f"{function}({_to_even(text) if even else _round(text)} AS {ours})"]
        alike = word in _AS_OURS and ours.partition("(")[0] in (word, *_SAME.get(word, ()))
        plain = alike and (behind or "(" not in ours)
        return None if plain else _cast(function, text, ours)

    def _is_literal(self, start: int, stop: int) -> bool:
        return {self.reader.kind(i) for i in range(start, stop)} <= _OF_NUMBERS

    def _as_text(
        self, function: str, text: Written, behind: str, found: pa.DataType | None
    ) -> Written | None:
        moment = found is not None and pa.types.is_timestamp(found) and self.system.moment
        made = [*_cast(function, text, "VARCHAR")]
        if moment:
            made = ["to_char(", *text, f", {sql_string(self.system.moment)})"]
        if behind and self.system.shortens:
            return ["left(", *made, f", {behind.strip('()')})"]
        return made if moment else None


def _round(text: Written) -> str:
    return f"round({_join_pieces(text)})"


def _to_even(text: Written) -> str:
    x = _join_pieces(text)
    return f"CASE WHEN abs({x}) % 1 = 0.5 THEN 2 * round({x} / 2) ELSE round({x}) END"


def _join_pieces(text: Written) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in text)


def _cast(function: str, text: Written, kind: str) -> Written:
    return [f"{function}(", *text, f" AS {kind})"]
