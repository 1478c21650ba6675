"""JSON values of several kinds under one name, such as numbers and text: they become text, since a
column has one type. So do whole numbers of more digits than a column of numbers keeps, or one of
numbers with fractions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from blendfusion.files.row_writers import json_text

_TOO_LONG = "long number"
_LONG_BESIDE_FRACTIONS = "number of many digits"
_WHOLE, _FRACTION = "number", "number with a fraction"
_NUMBERS = {_WHOLE, _FRACTION, _LONG_BESIDE_FRACTIONS}
_MOST_WITH_FRACTION = 1 << 53
_KIND_OF = {bool: "boolean", int: _WHOLE, float: _FRACTION, str: "text", list: "list"}


@dataclass(slots=True)
class Kinds:
    """The kinds of the values at one place of rows, and at the places inside them."""

    found: set[str] = field(default_factory=set)
    fields: dict[str, Kinds] = field(default_factory=dict)
    items: Kinds | None = None
    """The kinds of the items of lists."""
    has_null: bool = False

    def note(self, value: object) -> None:
        """Add the kinds of ``value``; null has none."""
        if value is None:
            self.has_null = True
            return
        self.found.add(_kind_of(value))
        if isinstance(value, dict):
            for name, inner in value.items():
                self.fields.setdefault(name, Kinds()).note(inner)
        elif isinstance(value, list):
            self.items = self.items or Kinds()
            for item in value:
                self.items.note(item)

    def are_mixed(self) -> bool:
        """Whether a place has values that one type does not keep."""
        return self._is_text or any(kinds.are_mixed() for kinds in self._inner)

    def have_two_widths(self) -> bool:
        """Whether a place has whole numbers and others: the types of two files, not of one."""
        both = _FRACTION in self.found and len(self.found) > 1
        return both or any(kinds.have_two_widths() for kinds in self._inner)

    def have_gaps(self) -> bool:
        """Whether a list has null beside objects or lists, of which DataFusion finds no type."""
        items = self.items
        if items is not None and items.has_null and items.found & {"object", "list"}:
            return True
        return any(kinds.have_gaps() for kinds in self._inner)

    @property
    def _inner(self) -> list[Kinds]:
        """The kinds of the fields of objects, and of the items of lists."""
        return [*self.fields.values(), *([] if self.items is None else [self.items])]

    @property
    def type(self) -> pa.DataType:
        """The type of the values as ``as_one`` writes them."""
        if self._is_text or "text" in self.found:
            return pa.string()
        if "object" in self.found:
            return pa.struct([(name, kinds.type) for name, kinds in self.fields.items()])
        if "list" in self.found:
            return pa.list_(pa.null() if self.items is None else self.items.type)
        if "boolean" in self.found:
            return pa.bool_()
        if not self.found:
            return pa.null()
        return pa.float64() if _FRACTION in self.found else pa.int64()

    @property
    def _is_text(self) -> bool:
        if not self.found <= _NUMBERS:
            return len(self.found) > 1 or _TOO_LONG in self.found
        return {_FRACTION, _LONG_BESIDE_FRACTIONS} <= self.found

    def as_one(self, value: object) -> object:
        """``value``, which was noted, with text at the places of several kinds."""
        if value is None:
            return None
        if self._is_text:
            return value if isinstance(value, str) else json_text(value)
        if type(value) is int and _FRACTION in self.found:
            return float(value)
        if isinstance(value, dict):
            return {name: self.fields[name].as_one(inner) for name, inner in value.items()}
        if isinstance(value, list) and self.items is not None:
            return [self.items.as_one(item) for item in value]
        return value


def _kind_of(value: object) -> str:
    if type(value) is not int or abs(value) <= _MOST_WITH_FRACTION:
        return _KIND_OF.get(type(value), "object")
    return _LONG_BESIDE_FRACTIONS if -(1 << 63) <= value < 1 << 63 else _TOO_LONG


def need_conversion(lines: Iterable[bytes], files: int = 1) -> bool:
    """Whether JSON of one object a line in some files holds values that DataFusion does not read:
    of several kinds under one name, and the numbers that Python writes but JSON does not know, NaN
    and Infinity."""
    kinds = Kinds()
    unknown: list[str] = []
    for line in lines:
        if line.strip():
            try:
                kinds.note(json.loads(line, parse_constant=unknown.append))
            except ValueError:  # DataFusion says where
                return False
    are_others = kinds.are_mixed() or kinds.have_gaps()
    return bool(unknown) or are_others or (files > 1 and kinds.have_two_widths())


def wrong_line(lines: Iterable[bytes]) -> int | None:
    """The number of the first line, from 1, that is no JSON object; None if there is none."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip() and not isinstance(json.loads(line), dict):
                return number
        except ValueError:
            return number
    return None
