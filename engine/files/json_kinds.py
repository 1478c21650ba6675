"""JSON values of several kinds under one name, such as numbers and text: they become text, since a
column has one type. So do whole numbers of more digits than a column of numbers keeps."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from blendfusion.files.row_writers import json_text

_TOO_LONG = "long number"
_KIND_OF = {bool: "boolean", int: "number", float: "number", str: "text", list: "list"}


@dataclass(slots=True)
class Kinds:
    """The kinds of the values at one place of rows, and at the places inside them."""

    found: set[str] = field(default_factory=set)
    fields: dict[str, Kinds] = field(default_factory=dict)
    items: Kinds | None = None
    """The kinds of the items of lists."""

    def note(self, value: object) -> None:
        """Add the kinds of ``value``; null has none."""
        if value is None:
            return
        is_long = type(value) is int and not -(1 << 63) <= value < 1 << 63
        self.found.add(_TOO_LONG if is_long else _KIND_OF.get(type(value), "object"))
        if isinstance(value, dict):
            for name, inner in value.items():
                self.fields.setdefault(name, Kinds()).note(inner)
        elif isinstance(value, list):
            self.items = self.items or Kinds()
            for item in value:
                self.items.note(item)

    def are_mixed(self) -> bool:
        """Whether a place has values that one type does not keep."""
        inner = [*self.fields.values(), *([] if self.items is None else [self.items])]
        return self._is_text or any(kinds.are_mixed() for kinds in inner)

    @property
    def _is_text(self) -> bool:
        return len(self.found) > 1 or _TOO_LONG in self.found

    def as_one(self, value: object) -> object:
        """``value``, which was noted, with text at the places of several kinds."""
        if value is None:
            return None
        if self._is_text:
            return value if isinstance(value, str) else json_text(value)
        if isinstance(value, dict):
            return {name: self.fields[name].as_one(inner) for name, inner in value.items()}
        if isinstance(value, list) and self.items is not None:
            return [self.items.as_one(item) for item in value]
        return value


def need_conversion(lines: list[bytes]) -> bool:
    """Whether JSON of one object a line holds values that DataFusion does not read: of several
    kinds under one name, and the numbers that Python writes but JSON does not know, NaN and
    Infinity."""
    kinds = Kinds()
    unknown: list[str] = []
    for line in lines:
        if line.strip():
            try:
                kinds.note(json.loads(line, parse_constant=unknown.append))
            except ValueError:  # DataFusion says where
                return False
    return bool(unknown) or kinds.are_mixed()


def wrong_line(lines: Iterable[bytes]) -> int | None:
    """The number of the first line, from 1, that is no JSON object; None if there is none."""
    for number, line in enumerate(lines, 1):
        try:
            if line.strip() and not isinstance(json.loads(line), dict):
                return number
        except ValueError:
            return number
    return None
