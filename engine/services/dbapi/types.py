"""The type objects of DB-API: which types of Arrow each is equal to."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from blendfusion.datafusion.arrow_types import is_bytes, is_text


class TypeObject:
    """Equal to the type codes in ``cursor.description`` of its kind: the names of Arrow's types."""

    def __init__(self, name: str, *tests: Callable[[pa.DataType], bool]) -> None:
        self.name, self._tests = name, tests

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeCode):
            return any(test(other.type) for test in self._tests)
        return self is other

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


class TypeCode(str):
    """The name of a type of Arrow, with the type itself."""

    __slots__ = ("type",)
    type: pa.DataType

    def __new__(cls, kind: pa.DataType) -> TypeCode:
        made = super().__new__(cls, kind)
        made.type = kind
        return made

    def __eq__(self, other: object) -> bool:
        return other == self if isinstance(other, TypeObject) else str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def _is_number(kind: pa.DataType) -> bool:
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    return any(test(kind) for test in numbers)


STRING = TypeObject("STRING", is_text)
BINARY = TypeObject("BINARY", is_bytes)
NUMBER = TypeObject("NUMBER", _is_number)
DATETIME = TypeObject("DATETIME", pa.types.is_temporal)
ROWID = TypeObject("ROWID")
