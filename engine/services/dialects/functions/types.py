"""The types of expressions of a text, as DataFusion knows them."""

from __future__ import annotations

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.language.query_text.query_tree import Select
from blendfusion.language.query_text.rewriter import Weaver
from blendfusion.services.dialects.common.catalog import SessionFacts


class Types:
    """The types of one text's expressions. They are asked when the text is written, so that all
    forms inside of an expression are known."""

    def __init__(self, weaver: Weaver, known: SessionFacts) -> None:
        self.weaver = weaver
        self.reader = weaver.reader
        self.known = known
        self._found: dict[tuple[int, int], pa.DataType | None] = {}

    def of(self, start: int, stop: int) -> pa.DataType | None:
        """The type of an expression; None if it is not known."""
        literal = self._literal(start, stop)
        if literal is not None:
            return literal
        if (start, stop) not in self._found:
            self._found[start, stop] = None  # while it is looked for
            self._found[start, stop] = self._plan(start, stop)
        return self._found[start, stop]

    def reads(self, at: int) -> bool:
        """The relations of the SELECT around ``at`` are known."""
        for select, _ in self.reader.around(at)[:1]:
            relation = self._relations(select)
            query = f"{self._common(at)}SELECT 1 AS value FROM {relation}"
            return bool(relation) and self.known.ours(query) is not None
        return False

    def _literal(self, start: int, stop: int) -> pa.DataType | None:
        if stop != start + 1:
            return None
        token = self.reader.tokens[start]
        if token.token_type == TokenType.NUMBER:
            return pa.int64() if token.text.isdigit() else pa.float64()
        if token.token_type == TokenType.STRING:
            return pa.string()
        truth = token.token_type in (TokenType.TRUE, TokenType.FALSE)
        return pa.bool_() if truth else None

    def _plan(self, start: int, stop: int) -> pa.DataType | None:
        text = self.weaver.text(start, stop)
        around: list[Select | None] = [select for select, _ in self.reader.around(start)]
        common = self._common(start)
        relations = ""
        for select in around or [None]:
            relation = self._relations(select) if select is not None else ""
            relations = ", ".join(filter(None, (relation, relations)))
            behind = f" FROM {relations}" if relations else ""
            schema = self.known.ours(f"{common}SELECT {text} AS value{behind}")
            if schema is not None and len(schema.types) == 1:
                return schema.types[0]
        return None

    def _relations(self, select: Select) -> str:
        sources = select.sources
        if not sources:
            return ""
        stop = max(source.on[1] if source.on else source.stop for source in sources)
        return self.weaver.text(sources[0].start, stop)

    def _common(self, at: int) -> str:
        """WITH of the common table expressions that are visible at ``at``, in our words."""
        around = [(q.end - q.start, s) for q, s in self.reader.scopes() if q.start <= at < q.end]
        scope = min(around, key=lambda found: found[0])[1] if around else None
        if scope is None or not scope.common:
            return ""
        parts = [self.weaver.text(c.name, c.end) for c in scope.common]
        return f"WITH {'RECURSIVE ' * scope.recursive}{', '.join(parts)} "
