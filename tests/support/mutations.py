"""Random changes of what comes from outside: JSON values of wrong types and depths, and bytes."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 5.0, 1e308, float("nan"), float("inf"), -float("inf"), 10**30),
    *("", "five", "maybe", "{no", "nan", "1e400", "true", "2020-99-99", "\ud83d", "\x00", "a\nb"),
    *("9" * 5_000, "x" * 10_000, [], {}, [None], {"a": {}}, [[1]], {"id": 1}),
)


def deep(dice: random.Random, inner: str = "1") -> str:
    """A JSON text that is nested deeply."""
    depth = dice.choice((60, 200, 2_000, 100_000))
    if dice.random() < 0.5:
        return "[" * depth + inner + "]" * depth * dice.choice((0, 1))
    return '{"a":' * depth + inner + "}" * depth * dice.choice((0, 1))


def changed(dice: random.Random, value: Any) -> Any:
    """A copy of a JSON value in which some parts are others, are missing, or are new."""
    value = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        value = _changed(dice, value)
    return value


def _changed(dice: random.Random, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or dice.random() < 0.15:
        return copy.deepcopy(dice.choice(ODD))
    keys = [*value] if isinstance(value, dict) else [*range(len(value))]
    key, kind = dice.choice(keys), dice.random()
    if kind < 0.15:
        del value[key]
    elif kind < 0.25 and isinstance(value, dict):
        value[dice.choice(("x", "answer", "id", "name", ""))] = copy.deepcopy(dice.choice(ODD))
    elif kind < 0.3 and isinstance(value, list):
        value.append(copy.deepcopy(dice.choice(ODD)))
    else:
        value[key] = _changed(dice, value[key])
    return value


def text_of(dice: random.Random, value: Any) -> str:
    """A changed value as JSON, or something that is none."""
    kind = dice.random()
    if kind < 0.04:
        return deep(dice)
    if kind < 0.08:
        return dice.choice(("", " ", "null", "<html>no</html>", "{", '"', "\x00", "NaN", "é" * 50))
    return json.dumps(changed(dice, value), ensure_ascii=dice.random() < 0.5)


def damaged(dice: random.Random, data: bytes) -> bytes:
    """Bytes of which some are others, are missing, or come twice."""
    found = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(found) + 1) if found else 0
        kind = dice.random()
        if kind < 0.6 and at < len(found):
            found[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        elif kind < 0.75:
            del found[at : at + dice.choice((1, 4, 64))]
        elif kind < 0.9:
            found[at:at] = dice.randbytes(dice.choice((1, 4, 64)))
        else:
            del found[at:]
    return bytes(found)


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
