"""Opening hours of SUQL: ``'after 2pm on Monday' = ANY(CAST opening_hours AS ARRAY)``, which its
agent rewrites; the phrase is asked about once, and the rows are compared without a model."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot.tokenizer_core import TokenType

from blendfusion.sql.query_tree import Reader
from blendfusion.sql.rewriter import Form, Weaver
from blendfusion.sql.source_map import Piece
from blendfusion.udfs.declare.arguments import quoted
from blendfusion.udfs.register.open_during import NAME
from blendfusion.udfs.text.opening_hours import PATTERN, read

_QUESTION = "Which times of the week does it mean? Write the day, the first and the last time."
_TIMES = f"{PATTERN}(, {PATTERN}){{0,13}}"
"""Two spans a day."""


def claim(weaver: Weaver) -> None:
    """Have the comparisons of one text written. Raises QueryError for such a cast anywhere else."""
    reader = weaver.reader
    for at in range(len(reader.tokens) - 3):
        if reader.word(at) != "CAST" or reader.opens(at + 1) or not reader.is_name(at + 1):
            continue
        stop = reader.column_end(at + 1)
        if stop is None or reader.word(stop) != "AS" or not _is_compared(reader, at, stop):
            column = reader.written(at + 1, stop or at + 2)
            raise reader.refused(
                at,
                f"CAST {column} AS ARRAY is no SQL",
                f"Compare hours with a text: 'Monday after 2pm' = ANY(CAST {column} AS ARRAY), or "
                f"write {NAME}({column}, 'Monday 14:00-24:00').",
            )
        weaver.add(_form(weaver, at, stop))


def _is_compared(reader: Reader, at: int, stop: int) -> bool:
    """``'text' = ANY(CAST column AS ARRAY)``, the cast at ``at`` and AS at ``stop``."""
    return (
        reader.word(stop + 1) == "ARRAY"
        and reader.opens(at - 1)
        and reader.close[at - 1] == stop + 2
        and reader.word(at - 2) == "ANY"
        and reader.kind(at - 3) == TokenType.EQ
        and reader.kind(at - 4) == TokenType.STRING
    )


def _form(weaver: Weaver, at: int, stop: int) -> Form:
    reader = weaver.reader
    phrase = reader.written(at - 4, at - 3)
    known = read(reader.tokens[at - 4].text) is not None

    def write() -> Iterable[Piece | str]:
        yield f"{NAME}("
        yield from weaver.woven(at + 1, stop)
        yield ", "
        if known:
            yield phrase
        else:
            parse_call = f"llm_map({quoted(_QUESTION)}, phrase, regex => {quoted(_TIMES)})"
            yield f"(SELECT {parse_call} FROM (SELECT {phrase} AS phrase))"
        yield ")"

    return Form(at - 4, stop + 3, write)
