"""``ALTER TABLE t ADD COLUMN topic AS (llm_…(…))`` and ``REFRESH COLUMN t.topic``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot.tokenizer_core import TokenType

from blendfusion.errors import QueryError
from blendfusion.language.query_text.token_tree import TokenTree
from blendfusion.services.views.columns import Backfill

if TYPE_CHECKING:
    from blendfusion.frame import Frame
    from blendfusion.services.views.session import ViewKeeping

_ADD = "ALTER TABLE t ADD COLUMN topic AS (llm_classify(text, ['a', 'b']))."
_REFRESH = "REFRESH COLUMN t.topic."


def alter_table(session: ViewKeeping, sql: str) -> Frame:
    """Carry out an ALTER that adds a column of answers: a frame of what was asked. Raises
    QueryError for any other."""
    tree = TokenTree(sql.rstrip().rstrip(";"))
    words, at = tree.words, 4 + (tree.word(4) == "COLUMN")
    is_known = words[3:4] == ["ADD"] and tree.is_name(2) and tree.is_name(at)
    opened = at + 2
    if not is_known or tree.word(at + 1) != "AS" or not tree.opens(opened):
        raise QueryError("this ALTER TABLE is not possible", hint=f"A column of answers: {_ADD}")
    if tree.close[opened] != len(tree.tokens) - 1:
        raise tree.refusal(tree.close[opened] + 1, "this ALTER TABLE goes on", _ADD)
    expression = str(tree.source_text(opened + 1, tree.close[opened]))
    if not expression.strip():
        raise tree.refusal(opened, "the column has no expression", _ADD)
    return _report(session, session.model_columns.add(tree.name(2), tree.name(at), expression))


def refresh_column(session: ViewKeeping, sql: str) -> Frame:
    """Carry out a REFRESH COLUMN: a frame of what was asked. Raises QueryError."""
    tree = TokenTree(sql.rstrip().rstrip(";"))
    is_known = tree.is_name(2) and tree.kind(3) == TokenType.DOT and tree.is_name(4)
    if not is_known or len(tree.tokens) != 5:
        raise QueryError("REFRESH COLUMN takes a table and a column", hint=_REFRESH)
    return _report(session, session.model_columns.refresh(tree.name(2), tree.name(4)))


def _report(session: ViewKeeping, done: Backfill) -> Frame:
    row = {
        "table": done.column.table,
        "column": done.column.column,
        "version": done.version,
        "rows": done.rows,
        "asked": done.values,
        "provenance": str(done.provenance),
    }
    return session.new_table(pa.Table.from_pylist([row]))
