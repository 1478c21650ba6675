"""Finds the relation of a column in a text, and its type."""

from __future__ import annotations

import re
from typing import NamedTuple

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.datafusion.arrow_types import is_bytes, is_text
from blendfusion.errors import QueryError
from blendfusion.language.query_text.error_places import named_place
from blendfusion.language.query_text.query_tree import Source
from blendfusion.language.query_text.rewriter import Weaver, Written
from blendfusion.language.query_text.source_map import refusal
from blendfusion.language.query_text.token_tree import RESERVED
from blendfusion.services.dialects.common.braces import Argument
from blendfusion.services.dialects.common.catalog import SessionFacts
from blendfusion.udfs.declare.arguments import quoted_name


class Base(NamedTuple):
    """A column by itself: its name, and itself and its relation as SQL."""

    name: str
    column: str
    relation: str


_PICTURES = re.compile(r"image|img|photo|picture", re.IGNORECASE)
_PICTURE = re.compile(
    r"data:image/|https?://[^\s?#]+\.(?:png|jpe?g|gif|webp|bmp)(?:[?#]|$)", re.IGNORECASE
)
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")


class Columns:
    """The columns of one text."""

    def __init__(self, weaver: Weaver, known: SessionFacts) -> None:
        self.weaver = weaver
        self.reader = weaver.reader
        self.known = known

    def schema(self, query: str, at: int) -> pa.Schema | None:
        """The schema of a query that stands at ``at``, in our words or in those of the text."""
        return self.known.schema(self._with_common(query, at))

    def unknown_schema(self, query: str, at: int) -> QueryError:
        """The error of a query that stands at ``at`` and whose schema is not known."""
        problem = self.known.problem(self._with_common(query, at))
        span = None if problem is None else named_place(problem.message, self.reader.text)
        if problem is None or span is None:
            hint = "Name them in its SELECT in the place of *."
            return self.reader.refusal(at, "the columns of this context are not known", hint)
        message = problem.message[problem.message.index("unknown") :]  # without its own place
        return refusal(span, message, problem.hint)

    def _with_common(self, query: str, at: int) -> str:
        common = self.reader.visible_tables(at)
        nested = common and query[:4].upper() == "WITH"
        if nested:
            return f"{common}SELECT * FROM ({query})"
        return common + query if common else query

    def source(self, start: int, stop: int) -> Source | None:
        """The relation of the column that the tokens name; None if they name no column, or an
        ambiguous one."""
        reader = self.reader
        if stop - start > 1:
            return reader.relation(reader.name(stop - 3), start)
        for select, _ in reader.around(start):
            sources = list(reader.sources(select))
            if len(sources) == 1 and sources[0].kind != "function":
                return sources[0]
            having = [s for s in sources if self._type_in(s, start, stop) is not None]
            if having:
                return having[0] if len(having) == 1 else None
        return None

    def type(self, start: int, stop: int) -> pa.DataType | None:
        """The type of the column that the tokens are; None if it is not known."""
        source = self.source(start, stop)
        return None if source is None else self._type_in(source, start, stop)

    def _type_in(self, source: Source, start: int, stop: int) -> pa.DataType | None:
        named = source.kind == "query" or self.reader.name_of(source) is not None
        if source.kind == "function" or not named:
            return None
        column = self.reader.source_text(stop - 1, stop)
        schema = self.schema(f"SELECT {column} FROM {self.relation(source)}", start)
        return schema.types[0] if schema is not None and len(schema.types) == 1 else None

    def relation(self, source: Source) -> str:
        """The translation of one relation of FROM, without its filter."""
        stop = source.end if source.kind == "table" else source.stop
        return "".join(p.text for p in self.weaver.weave(source.start, stop))

    def is_images(self, given: Argument) -> bool:
        """The column of a table holds images: bytes, ``data:image/…``, or URLs of image files. Its
        first value is read where its name says so."""
        source = self.source(given.start, given.stop) if self.is_column(given) else None
        if source is None or source.kind != "table":
            return False
        kind = self._type_in(source, given.start, given.stop)
        if kind is None or not is_text(kind):
            return kind is not None and is_bytes(kind)
        column = self.reader.source_text(given.stop - 1, given.stop)
        if not _PICTURES.search(column) or self.reader.visible_tables(given.start):
            return False
        found = self.known.first(
            f"SELECT {column} FROM {self.relation(source)} WHERE {column} IS NOT NULL LIMIT 1"
        )
        return isinstance(found, str) and _PICTURE.match(found) is not None

    # --- columns as arguments ---------------------------------------------------------------------

    def is_column(self, given: Argument) -> bool:
        """The argument is a column: ``c``, ``t.c``, ``'t::c'``."""
        reader = self.reader
        one = given.stop == given.start + 1
        if one and reader.kind(given.start) == TokenType.STRING:
            return reader.pair(given.start) is not None
        constant = reader.word(given.start) in ("NULL", "NONE", "TRUE", "FALSE")
        parameter = reader.source_text(given.start, given.stop).startswith("$")
        return not constant and not parameter and reader.column_end(given.start) == given.stop

    def value(self, given: Argument) -> Written:
        """An argument as a value: ``'table::column'`` is a column."""
        reader = self.reader
        pair = reader.pair(given.start) if given.stop == given.start + 1 else None
        if pair is not None:
            table, column = pair
            actual = self.actual(table, column, given.start)
            return [f"{plain_name(table)}.{plain_name(actual)}"]
        return list(self.weaver.weave(given.start, given.stop))

    def base(self, given: Argument) -> Base | None:
        """The base column behind a column; None if its relation is unknown or not a single one."""
        reader, at = self.reader, given.start
        pair = reader.pair(at) if given.stop == at + 1 else None
        if pair is not None:
            table, column = pair
            source = reader.relation(table, at)
            relation = plain_name(table) if source is None else self.relation(source)
            actual = self.actual(table, column, at)
            return Base(actual, quoted_name(actual), relation)
        last = given.stop - 1
        source = self.source(at, given.stop)
        if source is None and last == at:
            return None
        relation = reader.source_text(at, last - 1) if source is None else self.relation(source)
        # As it is written: DataFusion folds it, or does not.
        name = reader.name(last)
        reserved = reader.word(last) in RESERVED
        column = quoted_name(name) if reserved else reader.source_text(last, given.stop)
        return Base(name, column, relation)

    def actual(self, table: str, column: str, at: int) -> str:
        """The column as its table writes it: names had no case in SQLite."""
        source = self.reader.relation(table, at)
        relation = plain_name(table) if source is None else self.relation(source)
        schema = self.schema(f"SELECT * FROM {relation}", at)
        names = [] if schema is None else [str(n) for n in schema.names]
        same = [n for n in names if n.casefold() == column.casefold()]
        return column if column in names or len(same) != 1 else same[0]


def plain_name(name: str) -> str:
    """A name as an identifier, in quotes where it needs them."""
    return name if _SIMPLE.fullmatch(name) else quoted_name(name)
