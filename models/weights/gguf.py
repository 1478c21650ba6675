"""Reads the metadata of weights in the head of a GGUF file, without llama.cpp."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TYPES: Mapping[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    29: "IQ1_M",
    30: "BF16",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
}
"""The types of tensors, by their number in the file."""
NOT_QUANTISED = ("F32", "F16", "BF16")

_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_SPLIT = b"split.count"
_ENDS = (b"token_embd", b"output.")


@dataclass(frozen=True, slots=True)
class Head:
    """The number of weights of each type in a file."""

    layers: Mapping[str, int]
    """Weights of the layers' matrices, by type."""
    ends: int
    """Weights in the matrices around the layers: the vocabulary's, at input and output."""
    vectors: int
    """Weights in tensors of one dimension, which always stay F32."""
    whole: bool
    """False for one file of several."""

    @property
    def type(self) -> str:
        """The type of most weights in the layers."""
        return max(self.layers, key=lambda name: self.layers[name])

    @property
    def quantised(self) -> bool:
        return self.type not in NOT_QUANTISED

    def size(self, bits: float) -> int:
        """Bytes of the file at ``bits`` per matrix weight, without the vocabulary's words."""
        return int((sum(self.layers.values()) + self.ends) * bits / 8) + self.vectors * 4


def head(path: Path) -> Head | None:
    """The head of a file; None if it is unreadable here, or has no matrices."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data).head()
    except (OSError, ValueError, struct.error, IndexError, KeyError, OverflowError):
        return None


class _Reader:
    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def head(self) -> Head | None:
        if self._data[:4] != b"GGUF" or self._take("<4xI")[0] not in (2, 3):
            return None
        tensors, pairs = self._take("<QQ")
        whole = True
        for _ in range(pairs):
            key = self._string()
            value = self._value(self._take("<I")[0])
            if key == _SPLIT:
                whole = value <= 1
        layers: dict[str, int] = {}
        ends = vectors = 0
        for _ in range(tensors):
            name = self._string()
            dimensions = self._take("<I")[0]
            weights = 1
            for size in self._take(f"<{dimensions}Q"):
                weights *= size
            kind, _offset = self._take("<IQ")
            type_ = TYPES.get(kind, f"type {kind}")
            if dimensions < 2:
                vectors += weights
            elif name.startswith(_ENDS):
                ends += weights
            else:
                layers[type_] = layers.get(type_, 0) + weights
        return Head(layers, ends, vectors, whole) if layers else None

    def _take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def _string(self) -> bytes:
        (length,) = self._take("<Q")
        self._at += length
        return self._data[self._at - length : self._at]

    def _value(self, kind: int) -> Any:
        """A value; None for an array."""
        if kind == _STRING:
            return self._string()
        if kind != _ARRAY:
            return self._take(f"<{_SCALARS[kind]}")[0]
        inner, count = self._take("<IQ")
        if inner in _SCALARS:
            self._at += count * struct.calcsize(f"<{_SCALARS[inner]}")
            return None
        if inner != _STRING:
            raise ValueError("an array of arrays")
        self._skip_strings(count)
        return None

    def _skip_strings(self, count: int) -> None:
        """Skip all words of the vocabulary, hundreds of thousands."""
        data, at, length = self._data, self._at, struct.Struct("<Q").unpack_from
        for _ in range(count):
            at += 8 + length(data, at)[0]
        self._at = at
