"""Messages whose bytes are few: the name of the class, and the fields, long ones as columns."""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from blendfusion.models.protocol.model import Values
from blendfusion.services.cluster.packing import (
    packed_answers,
    packed_places,
    packed_values,
    unpacked_answers,
    unpacked_places,
    unpacked_values,
)
from blendfusion.types import Answer, Usage


@dataclass(frozen=True)
class _Form:
    """How a field is packed, and unpacked again."""

    pack: Callable[[Any], object]
    unpack: Callable[[Any], object]


def _form(
    pack: Callable[[Any], object], unpack: Callable[[Any], object], empty: Callable[[], object]
) -> Mapping[str, _Form]:
    """The metadata of a field; ``empty`` makes the value that None stands for."""
    return {
        "form": _Form(
            lambda thing: None if thing == empty() else pack(thing),
            lambda packed: empty() if packed is None else unpack(packed),
        )
    }


def _answers_by_place(costs: bool) -> Mapping[str, _Form]:
    def pack(answers: dict[int, Answer]) -> object:
        places = sorted(answers)
        packed = packed_answers([answers[place] for place in places], costs=costs)
        return packed_places(places), packed

    def unpack(packed: Any) -> dict[int, Answer]:
        places, answers = packed
        return dict(zip(unpacked_places(places), unpacked_answers(answers), strict=True))

    return _form(pack, unpack, dict)


def _packed_rows(rows: dict[Values, Answer]) -> object:
    return packed_values([*rows]), packed_answers([*rows.values()], costs=True)


def _unpacked_rows(packed: Any) -> dict[Values, Answer]:
    values, answers = packed
    return dict(zip(unpacked_values(values), unpacked_answers(answers), strict=True))


def _nothing() -> None:
    return None


VALUES = _form(packed_values, unpacked_values, list)
"""``list[Values]``"""
ROWS = _form(_packed_rows, _unpacked_rows, dict)
"""``dict[Values, Answer]``, with what the answers cost"""
ANSWERS = _form(lambda answers: packed_answers(answers, costs=False), unpacked_answers, _nothing)
"""``list[Answer] | None``, without what they cost"""
ANSWERS_BY_PLACE = _answers_by_place(costs=False)
"""``dict[int, Answer]``, without what they cost"""
COSTS_BY_PLACE = _answers_by_place(costs=True)
"""``dict[int, Answer]``"""
PLACES = _form(packed_places, unpacked_places, list)
"""``list[int]``, ascending from 0 or more"""
USAGE = _form(lambda usage: usage.numbers, lambda numbers: Usage(*numbers), Usage)


class Compact:
    """The base of dataclasses with a short pickled form. A field whose ``metadata`` is one of the
    forms above is packed."""

    _classes: ClassVar[dict[str, type[Compact]]] = {}

    def __init_subclass__(cls) -> None:
        Compact._classes[cls.__name__] = cls

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _make, (
            type(self).__name__,
            *(
                form.pack(getattr(self, name)) if form else getattr(self, name)
                for name, form in _forms(type(self))
            ),
        )


def _make(name: str, *packed: object) -> Compact:
    cls = Compact._classes[name]
    forms = _forms(cls)
    return cls(*(form.unpack(p) if form else p for (_, form), p in zip(forms, packed, strict=True)))


def _forms(cls: type[Any]) -> list[tuple[str, _Form | None]]:
    return [(field.name, field.metadata.get("form")) for field in fields(cls)]


copyreg.add_extension(__name__, _make.__name__, 250)  # a number for private use, written for a name
