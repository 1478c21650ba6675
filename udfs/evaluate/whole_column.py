"""Evaluates the functions of a whole column: once per run, over all of its distinct values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeAlias

import pyarrow as pa

from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.user_model import UserModel
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import ColumnQuestion

Column: TypeAlias = "pa.Array | pa.ChunkedArray"


class WholeColumn:
    """The results of one call in one run. ``table``: the values of its column."""

    def __init__(self, call: Call, table: pa.Table, dispatcher: Dispatcher) -> None:
        assert isinstance(call.ingredient.kind, ColumnQuestion)
        self._kind = call.ingredient.kind
        self._call = call
        self._values = {text for text in table.column(0).to_pylist() if _is_present(text)}
        self._dispatcher = dispatcher
        self._results: dict[str, object] = {}
        self.summary: Sequence[str] = ()
        """A description of how results were found, one line each."""

    def column(self, columns: Sequence[Column]) -> pa.Array:
        """The result of each row's value; NULL for NULL and blank values."""
        (column,) = columns
        texts = column.to_pylist()
        new = {text for text in texts if _is_present(text) and text not in self._results}
        if new:
            # A source that gives other rows in its second run has values that the first lacked.
            # Their results are found among all values; earlier results remain.
            self._values |= new
            self._results = {**self._found(), **self._results}
        return pa.array([self._results.get(text) for text in texts], self._call.type)

    def _found(self) -> dict[str, object]:
        literals = json.loads(self._call.literals) if self._call.literals else {}
        leading = [literals.pop(p.name) for p in self._call.ingredient.leading]
        values = sorted(self._values)
        found = self._kind.body(
            UserModel(self._dispatcher, self._call), *leading, values, **literals
        )
        self.summary = found.summary
        return dict(zip(values, found.values, strict=True))


def _is_present(text: str | None) -> bool:
    return text is not None and bool(text.strip())
