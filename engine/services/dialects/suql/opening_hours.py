"""Opening hours of SUQL: ``'after 2pm on Monday' = opening_hours``, in its agent's words ``=
ANY(CAST opening_hours AS ARRAY)``; the phrase is asked about once, and the rows are compared
without a model."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Reader
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.services.dialects.suql.hours_text import PATTERN, read
from blendfusion.services.dialects.suql.open_during import NAME
from blendfusion.udfs.declare.arguments import sql_string

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
            column = reader.source_text(at + 1, stop or at + 2)
            raise reader.refusal(
                at,
                f"CAST {column} AS ARRAY is no SQL",
                f"Compare hours with a text: 'Monday after 2pm' = ANY(CAST {column} AS ARRAY), or "
                f"write {NAME}({column}, 'Monday 14:00-24:00').",
            )
        _write(weaver, at - 4, (at + 1, stop), (at - 4, stop + 3))
    for at in range(1, len(reader.tokens)):
        if reader.kind(at) != TokenType.EQ:
            continue
        before, behind = reader.operand_before(at), reader.operand_after(at + 1)
        if reader.kind(at - 1) == TokenType.STRING and _is_hours(reader, at + 1, behind):
            _write(weaver, at - 1, (at + 1, behind), (at - 1, behind))
        elif reader.kind(at + 1) == TokenType.STRING and _is_hours(reader, before, at):
            _write(weaver, at + 1, (before, at), (before, at + 2))


def _is_hours(reader: Reader, start: int, stop: int) -> bool:
    """The tokens are the column that SUQL compares with phrases."""
    return reader.column_end(start) == stop and reader.name(stop - 1).lower() == "opening_hours"


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


def _write(weaver: Weaver, at: int, column: tuple[int, int], whole: tuple[int, int]) -> None:
    """Have the comparison ``whole`` of a column with the phrase at ``at`` written."""
    times: str = weaver.reader.source_text(at, at + 1)
    if read(weaver.reader.tokens[at].text) is None:
        call = f"llm_map({sql_string(_QUESTION)}, phrase, regex => {sql_string(_TIMES)})"
        times = f"(SELECT {call} FROM (SELECT {times} AS phrase))"
    weaver.rewrite(*whole, f"{NAME}(", column, f", {times})")
