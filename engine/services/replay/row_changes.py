"""The rows that two results do not share: added, removed and changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The rows that two results do not share, as dicts in the order of their results. ``key`` is
    the column that identifies a changed row; None: rows are only added or removed."""

    key: str | None
    added: list[Row]
    removed: list[Row]
    changed: list[tuple[Row, Row]]
    """(before, now)."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def row_changes(before: pa.Table, now: pa.Table) -> RowChanges:
    """The differences of two results as multisets of rows. The key is the first column that both
    have, and whose values are distinct and not NULL in both."""
    old, new = before.to_pylist(), now.to_pylist()
    kept = Counter(map(_text, old)) & Counter(map(_text, new))
    removed, added = _rest(old, kept.copy()), _rest(new, kept.copy())
    key = next((c for c in before.column_names if _is_key(before, c) and _is_key(now, c)), None)
    if key is None:
        return RowChanges(None, added, removed, [])
    by_key = {_text(row[key]): row for row in removed}
    changed = [(by_key[_text(row[key])], row) for row in added if _text(row[key]) in by_key]
    both = {_text(row[key]) for _, row in changed}
    return RowChanges(
        key,
        [row for row in added if _text(row[key]) not in both],
        [row for row in removed if _text(row[key]) not in both],
        changed,
    )


def _text(value: object) -> str:
    return repr(value)


def _rest(rows: list[Row], kept: Counter[str]) -> list[Row]:
    """The rows beyond those that both results have, each as often as it is missing."""
    rest = []
    for row in rows:
        text = _text(row)
        if kept[text]:
            kept[text] -= 1
        else:
            rest.append(row)
    return rest


def _is_key(table: pa.Table, column: str) -> bool:
    if table.column_names.count(column) != 1:
        return False
    values = table[column]
    if values.null_count:
        return False
    try:
        return bool(pc.count_distinct(values).as_py() == len(values))
    except pa.ArrowException:
        return False
