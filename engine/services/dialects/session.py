"""The part of a session that knows the SQL of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from blendfusion.errors import QueryError, close_matches
from blendfusion.prepare.frame_sources import FrameSources

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.language.query_text.source_map import Translation


class Translating(FrameSources):
    """A context that translates the queries of other systems."""

    @cached_property
    def enums(self) -> dict[str, set[str]]:
        """The columns that SUQL compares by meaning, by table."""
        return {}

    def translated(
        self, query: str, dialect: str | None = None, param_values: Sequence[Any] | None = None
    ) -> str:
        """``query`` translated to BlendFusion's SQL: see docs/dialects.md. Nothing runs."""
        from blendfusion.prepare.translators import OURS, dialect_of
        from blendfusion.services.dialects.dispatch import translation

        words = dialect_of(query, dialect)
        if words == OURS:
            return query

        def run(ours: Translation, words: str) -> Frame:
            return self.sql(ours.sql, dialect=words)

        return translation(self, query, words, run, param_values).sql

    def register_enum(self, table: str, *columns: str) -> None:
        """Compare ``columns`` of ``table`` by meaning in SUQL: ``'coffee' = ANY(cuisines)`` is true
        of {cafe} and {coffee & tea}. See ``llm_members``. Raises QueryError for an unknown column.
        """
        known = self.table(table).schema().names
        for column in columns:
            if column not in known:
                hint = close_matches(column, known)
                raise QueryError(f"unknown column '{column}' of '{table}'", hint=hint)
        self.enums.setdefault(table, set()).update(columns)
