"""Evaluates the functions of a whole column: once per run, over all of its distinct values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import pyarrow as pa

from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import ColumnQuestion
from blendfusion.udfs.evaluate.distinct import Column
from blendfusion.udfs.evaluate.row_keys import Key, row_keys


class WholeColumn:
    """The results of one call in one run. ``table``: the values of its column; with further
    columns, the values of each key there are a column of their own."""

    def __init__(self, call: Call, table: pa.Table, dispatcher: Dispatcher) -> None:
        assert isinstance(call.ingredient.kind, ColumnQuestion)
        self._kind = call.ingredient.kind
        self._call = call
        self._groups: dict[Key, _Group] = {}
        for key, text in _rows(table.columns):
            if _is_present(text):
                self._groups.setdefault(key, _Group()).values.add(text)
        self._dispatcher = dispatcher

    @property
    def summary(self) -> Sequence[str]:
        """A description of how results were found, one line each; that of the largest group, if
        there are several."""
        found = [group for group in self._groups.values() if group.results]
        if len(found) < 2:
            return found[0].summary if found else ()
        largest = max(found, key=lambda group: len(group.values))
        return [f"{len(found):,} groups, of the largest:", *largest.summary]

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The result of each row's value; NULL for NULL and blank values."""
        rows = _rows(columns)
        new: dict[Key, set[str]] = {}
        for key, text in rows:
            group = self._groups.setdefault(key, _Group())
            if _is_present(text) and text not in group.results:
                new.setdefault(key, set()).add(text)
        for key, texts in new.items():
            # A source that gives other rows in its second run has values that the first lacked.
            # Their results are found among all values; earlier results remain.
            group = self._groups[key]
            group.values |= texts
            self._find(group)
        return pa.array(
            [self._groups[key].results.get(text) for key, text in rows], self._call.type
        )

    def _find(self, group: _Group) -> None:
        literals = json.loads(self._call.literals) if self._call.literals else {}
        leading = [literals.pop(p.name) for p in self._call.ingredient.leading]
        values = sorted(group.values)
        found = self._kind.body(
            UserModel(self._dispatcher, self._call), *leading, values, **literals
        )
        if found.conflicts:
            self._dispatcher.observer.on_conflicts(self._call, found.conflicts)
        if found.missed:
            self._dispatcher.observer.on_unsearched(self._call, found.missed)
        group.summary = found.summary
        group.results = {**dict(zip(values, found.values, strict=True)), **group.results}


@dataclass(slots=True)
class _Group:
    """The values of one key, and their results so far."""

    values: set[str] = field(default_factory=set)
    results: dict[str | None, object] = field(default_factory=dict)
    summary: Sequence[str] = ()


def _rows(columns: Sequence[Column]) -> list[tuple[Key, str | None]]:
    """The key and the value of each row."""
    column, *keys = columns
    return [*zip(row_keys(keys, len(column)), column.to_pylist(), strict=True)]


def _is_present(text: str | None) -> TypeGuard[str]:
    return text is not None and bool(text.strip())
