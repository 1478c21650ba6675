"""Messages of DataFusion's expressions, as far as expressions lie in them.

DataFusion's Python has no way into most expressions but their protobuf messages. They are read here
field by field, and written back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

Places = Mapping[int, tuple[int, ...]]
"""Fields of a message: () for one that is an expression, else the fields that are expressions in
the message that it is."""

COLUMN, ALIAS, LITERAL, BINARY = 1, 2, 3, 4
NOT, CASE, CAST, IN_LIST, TRY_CAST, WINDOW, AGGREGATE, FUNCTION = 8, 10, 11, 14, 17, 18, 19, 20
GROUPING_SETS, CUBE, ROLLUP = 22, 23, 24
LIKE, ILIKE, SIMILAR = 31, 32, 33
"""Kinds of expressions: the numbers of their fields."""

_FIRST: Places = {1: ()}
_TEXT_AND_PATTERN: Places = {2: (), 3: ()}
PLACES: Mapping[int, Places] = {
    **dict.fromkeys((ALIAS, 6, 7, 8, CAST, 13, TRY_CAST, *range(25, 31), 35), _FIRST),
    **dict.fromkeys((BINARY, CUBE, ROLLUP), _FIRST),
    9: {1: (), 3: (), 4: ()},  # BETWEEN
    CASE: {1: (), 2: (1, 2), 3: ()},  # its value, WHEN … THEN …, ELSE
    IN_LIST: {1: (), 2: ()},
    WINDOW: {4: (), 5: (), 6: (1,), 13: ()},  # arguments, PARTITION BY, ORDER BY, FILTER
    AGGREGATE: {2: (), 3: (), 4: (1,)},  # arguments, FILTER, ORDER BY
    FUNCTION: {2: ()},
    GROUPING_SETS: {1: (1,)},
    **dict.fromkeys((LIKE, ILIKE, SIMILAR), _TEXT_AND_PATTERN),
}
"""Where expressions are in an expression, by its kind."""


def within(data: bytes, places: Places, change: Callable[[bytes], bytes]) -> bytes:
    """``data`` with ``change`` applied to each encoded expression at ``places``."""

    def part(number: int, content: bytes) -> bytes:
        inner = places.get(number)
        if inner is None:
            return content
        if inner:
            return within(content, dict.fromkeys(inner, ()), change)
        return change(content)

    return change_fields(data, part)


def change_fields(data: bytes, change: Callable[[int, bytes], bytes]) -> bytes:
    """A message whose fields have the contents that ``change`` gives for a number and a content."""
    written = b""
    for number, head, content in message_fields(data):
        written += same_field(head, None if content is None else change(number, content))
    return written


def message_field(number: int, content: bytes) -> bytes:
    """The field ``number`` of a message, with ``content``."""
    return _number(number << 3 | 2) + _number(len(content)) + content


def same_field(head: bytes, content: bytes | None) -> bytes:
    """A field of ``message_fields`` as it was."""
    return head if content is None else head + _number(len(content)) + content


def message_fields(data: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
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
