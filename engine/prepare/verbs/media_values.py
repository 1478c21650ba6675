"""Images and recordings as values of calls in the verbs of frames: their names stand for them, as
in SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datafusion import DataFrame, Expr, ScalarUDF, SessionContext
from datafusion.expr import SortExpr

from blendfusion.datafusion.arrow_types import is_bytes
from blendfusion.datafusion.expression_messages import (
    AGGREGATE,
    CAST,
    FUNCTION,
    PLACES,
    change_fields,
    message_fields,
    within,
)
from blendfusion.udfs.declare.call_registry import calls_in

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame

_ARGUMENTS = {2: ()}
"""The place of the arguments in the message of a function or an aggregate."""


def with_names_of_media(
    frame: BaseFrame, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a verb of ``frame``, in which the names of bytes stand for values of calls
    that are bytes. Calls about rows read bytes as they are."""
    names = _Names(frame, [one for one in (*args, *kwargs.values()) if isinstance(one, DataFrame)])
    return tuple(map(names.name_media, args)), {
        key: names.name_media(one) for key, one in kwargs.items()
    }


class _Names:
    """``frame``, and those that it is joined with."""

    def __init__(self, frame: BaseFrame, others: Sequence[DataFrame]) -> None:
        self._engine, self._frames = frame.engine, (frame, *others)

    def name_media(self, given: Any) -> Any:
        if isinstance(given, Expr):
            return self._expression(given)
        if isinstance(given, SortExpr):
            key = self._expression(given.expr())
            return SortExpr(key, ascending=given.ascending(), nulls_first=given.nulls_first())
        if isinstance(given, list | tuple):
            return [self.name_media(each) for each in given]
        return given

    def _expression(self, expr: Expr) -> Expr:
        functions = {
            call.name.encode()
            for call in calls_in(str(expr))
            if call.names_bytes and call.ingredient.kind.takes_bytes
        }
        if not functions or not any(map(_may_hold_bytes, self._frames)):
            return expr
        engine = self._engine
        engine.calls.know(engine, str(expr))
        by_name = SessionContext.with_python_udf_inlining(engine.tables, enabled=False)
        try:
            data = expr.to_bytes(by_name)
        except Exception:  # a subquery has no bytes
            return expr
        values = _Values(self._frames, by_name, engine.calls.name_of_media(engine), functions)
        return Expr.from_bytes(values.expression(data), by_name)


class _Values:
    """Finds values of calls in the bytes of expressions."""

    def __init__(
        self,
        frames: Sequence[DataFrame],
        by_name: Any,
        name_of_media: ScalarUDF,
        functions: set[bytes],
    ) -> None:
        self._frames, self._by_name = frames, by_name
        self._name_of_media, self._functions = name_of_media, functions

    def expression(self, data: bytes) -> bytes:
        def kind(number: int, content: bytes) -> bytes:
            content = within(content, PLACES.get(number, {}), self.expression)
            if number == FUNCTION and _name(content) in self._functions:
                return within(content, _ARGUMENTS, self._value)
            return content

        return change_fields(data, kind)

    def _value(self, data: bytes) -> bytes:
        """A value of a call: bytes, or a list of such values, in the casts of the call."""
        number, _, content = next(message_fields(data))
        if number == CAST:
            return change_fields(data, lambda _, inner: within(inner, PLACES[CAST], self._value))
        if number == AGGREGATE and content is not None and _name(content) == b"array_agg":
            return change_fields(data, lambda _, inner: within(inner, _ARGUMENTS, self._value))
        value = Expr.from_bytes(data, self._by_name)
        if not any(_is_bytes(value, frame) for frame in self._frames):
            return data
        return self._name_of_media(value).to_bytes(self._by_name)


def _name(function: bytes) -> bytes | None:
    return next((content for number, _, content in message_fields(function) if number == 1), None)


def _may_hold_bytes(frame: DataFrame) -> bool:
    return any("binary" in str(kind) for kind in frame.schema().types)


def _is_bytes(value: Expr, frame: DataFrame) -> bool:
    try:
        kind = DataFrame.select(frame, value).schema().field(0).type
    except Exception:  # a column of another frame, or of none
        return False
    return is_bytes(kind)
