"""The stored results of users' functions that are declared deterministic.

They lie where the answers of the model do, under the function's code, its literals and its row. A
function may ask the model, so the model's fingerprint belongs to the key, too.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Constraint, Task
from blendfusion.udfs.ask.decode import decode
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.kinds import UserBody

if TYPE_CHECKING:
    from blendfusion.udfs.ask.dispatcher import Dispatcher


class StoredResults:
    """The results of one call of a deterministic function."""

    def __init__(self, kind: UserBody, call: Call, dispatcher: Dispatcher) -> None:
        self._call = call
        self._model = dispatcher.lookup.model_of(call)
        """The model with the store; None if it had to be loaded for its name."""
        names = () if self._model is None else self._model.names
        promised = str(dispatcher.targets_of(call))
        settings = json.dumps([kind.code, call.literals, str(call.type), promised, *names])
        columns = tuple("" for _ in kind.columns)
        self._task = Task(call.ingredient.name, settings, Constraint(), columns)

    def find(self, rows: Sequence[Sequence[Any]]) -> dict[int, str | None]:
        """The stored results among those of ``rows``, by place, as text."""
        if self._model is None:
            return {}
        keys = [_key(row) for row in rows]
        found = self._model.store.get_many(self._model.fingerprint, self._task, keys)
        texts = {i: found[key].text for i, key in enumerate(keys) if key in found}
        readable = {text: self._is_readable(text) for text in {*texts.values()}}
        return {i: text for i, text in texts.items() if readable[text]}

    def _is_readable(self, text: str | None) -> bool:
        """Whether a stored text is a value of the call's type: others may write to a store."""
        try:
            decode([text], self._call.type)
        except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError):
            return False
        except (AttributeError, pa.ArrowException):
            return False
        return True

    def decode(self, texts: Sequence[str | None]) -> pa.Array:
        """Stored results as an array of the call's type."""
        return decode(texts, self._call.type)

    def keep(self, rows: Sequence[Sequence[Any]], results: pa.Array) -> None:
        """Store the results of ``rows``."""
        if self._model is not None:
            texts = map(_text, results.to_pylist())
            answers = {_key(row): Answer(text) for row, text in zip(rows, texts, strict=True)}
            self._model.store.store_many(self._model.fingerprint, self._task, answers)


def storable(kind: pa.DataType) -> bool:
    """Whether results of a type come back from text as they were."""
    if pa.types.is_list(kind):
        return storable(kind.value_type)
    if pa.types.is_struct(kind):
        return all(storable(field.type) for field in kind)
    plain = (pa.types.is_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating)
    dates = pa.types.is_date32(kind) or (pa.types.is_timestamp(kind) and kind.unit in ("s", "us"))
    return dates or any(known(kind) for known in plain)


def _key(row: Sequence[Any]) -> Values:
    """A row of any values as texts, which differ where the values do."""
    return tuple(None if v is None else json.dumps(v, default=_plain) for v in row)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    """A value that JSON lacks, with its type."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return {type(value).__name__: str(value)}
