"""The columns of a frame with their relations; DataFusion's Python gives their names only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from datafusion import DataFrame, Expr, col

from blendfusion.udfs.declare.arguments import quoted_name

_PART = r'(?:"(?:[^"]|"")*"|[^".,\s]+)'
_FIELD = re.compile(rf"(?:, )?({_PART}(?:\.{_PART})*)")
_WHOLE = re.compile(_PART)
_LAST = re.compile(rf"{_PART}\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its ``name``, and its ``relation`` as SQL; '' for none."""

    name: str
    relation: str = ""

    @property
    def sql(self) -> str:
        """The column as SQL that means exactly it."""
        return f"{self.relation}{'.' if self.relation else ''}{quoted_name(self.name)}"

    @property
    def expr(self) -> Expr:
        """The column as an expression."""
        return col(self.sql)

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the relation's name in lower case: catalog, schema, table; () for none."""
        return tuple(plain(part).lower() for part in re.findall(_PART, self.relation))

    @property
    def table(self) -> str:
        """The last part of the relation's name; '' for none."""
        return plain(re.findall(_PART, self.relation)[-1]) if self.relation else ""


def columns_of(frame: DataFrame) -> Iterator[Column]:
    """The columns of ``frame`` in order. DataFusion lists them where it finds no column."""
    listed = ""
    try:
        DataFrame.parse_sql_expr(frame, '"\x00"')
    except Exception as problem:
        listed = str(problem)
    yield from columns_listed(listed)


def columns_listed(problem: str) -> Iterator[Column]:
    """The columns that an error of DataFusion lists, in order; none if it lists none."""
    listed, at = problem.partition("Valid fields are ")[2], 0
    while found := _FIELD.match(listed, at):
        column, at = column_of(found[1]), found.end()
        if column is not None:
            yield column


def column_of(text: str) -> Column | None:
    """The column that a piece of SQL names, in lower case unless it is quoted; None if it names no
    column."""
    start = _last_part(text)
    if start is None:
        start = next((start for start in _starts(text) if _LAST.match(text, start)), None)
    if start is None:
        return None
    relation, name = text[: max(0, start - 1)], text[start:]
    return Column(plain(name) if name.startswith('"') else name.lower(), relation)


def _last_part(text: str) -> int | None:
    """The place of the last part of a name; None for another text."""
    start = 0
    while found := _WHOLE.match(text, start):
        if found.end() == len(text):
            return start
        if text[found.end()] != ".":
            return None
        start = found.end() + 1
    return None


def _starts(text: str) -> Iterator[int]:
    """The places of ``text`` where its last part may begin: behind its last dot, or its last dot
    before a quote."""
    yield text.rfind(".") + 1
    if text.endswith('"'):
        yield from dict.fromkeys((text.rfind('."') + 1, 0))


def plain(part: str) -> str:
    """A part of a name without its quotes."""
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
