"""The columns that an expression of DataFusion names, given other names.

DataFusion's Python has no way into an expression but its protobuf message; that is read here as far
as columns lie in it, and written back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from datafusion import Expr, SessionContext

from blendfusion.datafusion.columns import Column
from blendfusion.udfs.declare.arguments import quoted_name

Renaming = Callable[[Column], Column]


def with_columns(expr: Expr, renaming: Renaming, context: SessionContext) -> Expr:
    """``expr`` with every column as ``renaming`` gives it; Python's functions in it must be
    registered in ``context``. Raises what DataFusion raises for an expression that it cannot
    encode: one with a subquery."""
    by_name = SessionContext.with_python_udf_inlining(context, enabled=False)
    return Expr.from_bytes(_expression(expr.to_bytes(by_name), renaming), by_name)


Places = Mapping[int, tuple[int, ...]]
"""Fields of a message: () for one that is an expression, else the fields that are expressions in
the message that it is."""

_COLUMN = 1
_FIRST: Places = {1: ()}
_TEXT_AND_PATTERN: Places = {2: (), 3: ()}
_PLACES: Mapping[int, Places] = {
    **dict.fromkeys((2, 4, 6, 7, 8, 11, 13, 17, 23, 24, *range(25, 31), 35), _FIRST),
    9: {1: (), 3: (), 4: ()},  # BETWEEN
    10: {1: (), 2: (1, 2), 3: ()},  # CASE: its value, WHEN … THEN …, ELSE
    14: {1: (), 2: ()},  # IN
    18: {4: (), 5: (), 6: (1,), 13: ()},  # a window: arguments, PARTITION BY, ORDER BY, FILTER
    19: {2: (), 3: (), 4: (1,)},  # an aggregate: arguments, FILTER, ORDER BY
    20: {2: ()},  # a function
    22: {1: (1,)},  # GROUPING SETS
    **dict.fromkeys((31, 32, 33), _TEXT_AND_PATTERN),  # LIKE, ILIKE, SIMILAR TO
}
"""Where expressions are in an expression, by its kind."""


def _expression(data: bytes, renaming: Renaming) -> bytes:
    def kind(number: int, content: bytes) -> bytes:
        if number == _COLUMN:
            return _column(content, renaming)
        return _within(content, _PLACES.get(number, {}), renaming)

    return _changed(data, kind)


def _within(data: bytes, places: Places, renaming: Renaming) -> bytes:
    def part(number: int, content: bytes) -> bytes:
        inner = places.get(number)
        if inner is None:
            return content
        if inner:
            return _within(content, dict.fromkeys(inner, ()), renaming)
        return _expression(content, renaming)

    return _changed(data, part)


def _changed(data: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """A message whose fields have the contents that ``change`` gives for a number and a content."""
    written = b""
    for number, head, content in _fields(data):
        written += head
        if content is not None:
            content = change(number, content)
            written += _number(len(content)) + content
    return written


def _column(data: bytes, renaming: Renaming) -> bytes:
    parts = {number: content for number, _, content in _fields(data) if content is not None}
    named = b"".join(content or b"" for _, _, content in _fields(parts.get(2, b""))).decode()
    relation = ".".join(map(quoted_name, named.split("."))) if named else ""  # it comes without
    column = renaming(Column(parts.get(1, b"").decode(), relation))
    written = _text(1, column.name)
    return written + (_text(2, _text(1, column.relation)) if column.relation else b"")


def _text(number: int, content: str | bytes) -> bytes:
    encoded = content.encode() if isinstance(content, str) else content
    return _number(number << 3 | 2) + _number(len(encoded)) + encoded


def _fields(data: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The fields of a message: its number, and its bytes up to its content; all of them, and None,
    for a number."""
    at = 0
    while at < len(data):
        start = at
        key, at = _read(data, at)
        kind = key & 7
        if kind == 2:
            head = data[start:at]
            length, at = _read(data, at)
            yield key >> 3, head, data[at : at + length]
            at += length
            continue
        at = _read(data, at)[1] if kind == 0 else at + (8 if kind == 1 else 4)
        yield key >> 3, data[start:at], None


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _number(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])
