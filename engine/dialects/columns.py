"""Which relation a column of a text belongs to, and of what type it is."""

from __future__ import annotations

import pyarrow as pa

from blendfusion.clauses import Source, name_of
from blendfusion.dialects.known import Known
from blendfusion.dialects.reader import Reader
from blendfusion.scopes import visible_tables


class Columns:
    """The columns of one text."""

    def __init__(self, reader: Reader, known: Known) -> None:
        self.reader = reader
        self.known = known

    def source(self, start: int, stop: int) -> Source | None:
        """The relation of the column that the tokens are; None if it is none, or not one alone."""
        reader = self.reader
        if stop - start > 1:
            return reader.relation(reader.name(stop - 3), start)
        for select, _ in reader.around(start):
            sources = list(reader.sources(select))
            if len(sources) == 1 and sources[0].kind != "function":
                return sources[0]
            having = [s for s in sources if self._named_type(s, start, stop) is not None]
            if having:
                return having[0] if len(having) == 1 else None
        return None

    def type(self, start: int, stop: int) -> pa.DataType | None:
        """The type of the column that the tokens are; None if it is not known."""
        source = self.source(start, stop)
        return None if source is None else self._named_type(source, start, stop)

    def _named_type(self, source: Source, start: int, stop: int) -> pa.DataType | None:
        reader = self.reader
        if source.kind == "function":
            return None
        alias = name_of(source, reader.tokens)
        column = reader.written(stop - 1, stop)
        if alias is None and source.kind != "query":
            return None
        relation = reader.written(source.start, source.stop)
        common = visible_tables(reader.text, reader.tokens, reader.tokens[start].start)
        schema = self.known.schema(f"{common}SELECT {column} FROM {relation}")
        return schema.types[0] if schema is not None and len(schema.types) == 1 else None

    @staticmethod
    def is_list(kind: pa.DataType) -> bool:
        """A type of lists."""
        return bool(
            pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind)
        )
