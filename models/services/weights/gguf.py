"""Reads the metadata of weights in the head of a GGUF file, without llama.cpp.

Nothing in the file is trusted: every count and length is compared with the rest of the file, so
that reading takes time linear in the head and no more memory than its longest text."""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class TensorType(NamedTuple):
    """A type of tensors: so many weights take so many bytes."""

    name: str
    weights: int
    bytes: int


TYPES: Mapping[int, TensorType] = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    10: TensorType("Q2_K", 256, 84),
    11: TensorType("Q3_K", 256, 110),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    16: TensorType("IQ2_XXS", 256, 66),
    17: TensorType("IQ2_XS", 256, 74),
    18: TensorType("IQ3_XXS", 256, 98),
    19: TensorType("IQ1_S", 256, 50),
    20: TensorType("IQ4_NL", 32, 18),
    21: TensorType("IQ3_S", 256, 110),
    22: TensorType("IQ2_S", 256, 82),
    23: TensorType("IQ4_XS", 256, 136),
    29: TensorType("IQ1_M", 256, 56),
    30: TensorType("BF16", 1, 2),
    34: TensorType("TQ1_0", 256, 54),
    35: TensorType("TQ2_0", 256, 66),
    39: TensorType("MXFP4", 32, 17),
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
    7: "B",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_SPLIT, _ALIGNMENT = b"split.count", b"general.alignment"
_ENDS = (b"token_embd", b"output.")
_MOST_ENTRIES = 1 << 20
"""Keys or tensors of a file; large models have some thousands."""
_MOST_TEXTS = 1 << 23
"""Texts in all lists; a vocabulary of 256,000 words and its merges have 0.8 million."""
_LONGEST_KEY = (1 << 16) - 1
_LONGEST_NAME = 127
_MOST_DIMENSIONS = 4
_LARGEST = (1 << 63) - 1


class BrokenFile(Exception):
    """The file is no GGUF, or not a whole one; says where."""


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
    def count(self) -> int:
        """All weights."""
        return sum(self.layers.values()) + self.ends + self.vectors

    @property
    def is_quantised(self) -> bool:
        return self.type not in NOT_QUANTISED

    def size(self, bits: float) -> int:
        """Bytes of the file at ``bits`` per matrix weight, without the vocabulary's words."""
        return int((sum(self.layers.values()) + self.ends) * bits / 8) + self.vectors * 4


def head(path: Path) -> Head | None:
    """The head of a file; None if it is damaged, or has no matrices. Weights may be missing."""
    try:
        return _read(path).head
    except (OSError, BrokenFile):
        return None


def check(path: Path) -> None:
    """Check the structure of a file: every count, length and type of its head, and that all its
    tensors lie within it. Raises Broken, and OSError if the file cannot be read."""
    size = path.stat().st_size
    found = _read(path)
    if found.fragment:
        raise BrokenFile(found.fragment)
    if (needed := found.end) > size:
        raise BrokenFile(f"it should have {needed:,} bytes and has {size:,}")


@dataclass(slots=True)
class _Contents:
    head: Head | None
    end: int
    """Bytes that the file must have."""
    fragment: str
    """The first tensor that is not made of whole blocks; '' for none."""


def _read(path: Path) -> _Contents:
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise BrokenFile("it is empty") from None
        with data:
            return _Reader(data).contents()


@dataclass(slots=True)
class _Reader:
    data: mmap.mmap
    at: int = 0
    texts: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    ends: int = 0
    vectors: int = 0
    fragment: str = ""

    def contents(self) -> _Contents:
        if self.data[:4] != b"GGUF":
            raise BrokenFile("it does not begin as a GGUF file does")
        self.at = 4
        version, tensors, pairs = self.take("<IQQ", "its counts")
        if version not in (2, 3):
            raise BrokenFile(f"its version is {version}, not 2 or 3")
        for count, name in ((tensors, "tensors"), (pairs, "keys")):
            if count > _MOST_ENTRIES:
                raise BrokenFile(f"it claims {count:,} {name}")
        whole, alignment = True, 32
        for number in range(pairs):
            where = f"key {number + 1} of {pairs}"
            key = self.text(where, _LONGEST_KEY)
            (kind,) = self.take("<I", where)
            value = self.value(kind, where)
            if key == _SPLIT and kind != _STRING:
                whole = value is not None and value <= 1
            elif key == _ALIGNMENT:
                alignment = value
                if kind != 4 or value == 0 or value & (value - 1):
                    raise BrokenFile(f"{where}: the alignment is no power of two")
        last = max((self.tensor(f"tensor {n + 1} of {tensors}") for n in range(tensors)), default=0)
        start = self.at + -self.at % alignment
        head = Head(self.layers, self.ends, self.vectors, whole) if self.layers else None
        return _Contents(head, start + last if tensors else self.at, self.fragment)

    def tensor(self, where: str) -> int:
        """Count a tensor; the byte after its last, counted from the first of the first."""
        name = self.text(where, _LONGEST_NAME)
        (dimensions,) = self.take("<I", where)
        if dimensions > _MOST_DIMENSIONS:
            raise BrokenFile(f"{where} claims {dimensions:,} dimensions")
        sizes = self.take(f"<{dimensions}Q", where)
        weights = math.prod(sizes)
        number, offset = self.take("<IQ", where)
        type_ = TYPES.get(number, TensorType(f"type {number}", 1, 0))
        end: int = offset + weights // type_.weights * type_.bytes
        if max(*sizes, 0, 0) > _LARGEST or weights > _LARGEST or end > _LARGEST:
            raise BrokenFile(f"{where} is too large for any file")
        if sizes and sizes[0] % type_.weights:
            self.fragment = self.fragment or f"{where} is not made of whole blocks of {type_.name}"
        if dimensions < 2:
            self.vectors += weights
        elif name.startswith(_ENDS):
            self.ends += weights
        else:
            self.layers[type_.name] = self.layers.get(type_.name, 0) + weights
        return end

    def take(self, form: str, where: str) -> tuple[Any, ...]:
        self.need(struct.calcsize(form), where)
        found = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return found

    def need(self, size: int, where: str) -> None:
        if self.at + size > len(self.data):
            raise BrokenFile(f"it ends within {where}")

    def text(self, where: str, longest: int | None = None) -> bytes:
        (length,) = self.take("<Q", where)
        self.need(length, where)
        if longest is not None and length > longest:
            raise BrokenFile(f"the name of {where} has {length:,} bytes")
        self.at += length
        return self.data[self.at - length : self.at]

    def value(self, kind: int, where: str) -> Any:
        """A value; None for a list."""
        if kind == _STRING:
            return self.text(where)
        if kind in _SCALARS:
            (value,) = self.take(f"<{_SCALARS[kind]}", where)
            if value != value:
                raise BrokenFile(f"{where} is not a number")
            return value
        if kind != _ARRAY:
            raise BrokenFile(f"{where} has a value of the unknown type {kind}")
        inner, count = self.take("<IQ", where)
        if inner == _STRING:
            self.skip_texts(count, where)
        elif inner in _SCALARS:
            size = count * struct.calcsize(_SCALARS[inner])
            self.need(size, where)
            self.at += size
        else:
            raise BrokenFile(f"{where} is a list of the unknown type {inner}")
        return None

    def skip_texts(self, count: int, where: str) -> None:
        """Skip all words of the vocabulary, hundreds of thousands."""
        self.texts += count
        if self.texts > _MOST_TEXTS:
            raise BrokenFile(f"{where} claims {count:,} texts")
        self.need(8 * count, where)
        data, at, length = self.data, self.at, struct.Struct("<Q").unpack_from
        last = len(data) - 8
        for _ in range(count):
            if at > last:
                raise BrokenFile(f"it ends within {where}")
            at += 8 + length(data, at)[0]
        self.at = at
        self.need(0, where)
