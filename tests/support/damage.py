"""Random damage of a GGUF file: where its counts, lengths, types and values are, and what else may
stand there."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_EXTREMES = (0, 1, 7, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1)
_FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -1.0, 1e30)


@dataclass
class Layout:
    """The places of a file's head by kind: offset and width of each."""

    counts: list[tuple[int, int]] = field(default_factory=list)
    lengths: list[tuple[int, int]] = field(default_factory=list)
    types: list[tuple[int, int]] = field(default_factory=list)
    numbers: list[tuple[int, int]] = field(default_factory=list)
    floats: list[tuple[int, int]] = field(default_factory=list)
    texts: list[tuple[int, int]] = field(default_factory=list)
    tensors: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0


def layout(path: Path) -> Layout:
    """The places of a whole file."""
    found, at = Layout(), 8
    with path.open("rb") as file:
        data = file.read(8 << 20)

    def number(kind: list[tuple[int, int]], width: int) -> int:
        nonlocal at
        kind.append((at, width))
        at += width
        return int.from_bytes(data[at - width : at], "little")

    def text(kind: list[tuple[int, int]]) -> None:
        nonlocal at
        length = number(kind, 8)
        found.texts.append((at, length))
        at += length

    tensors, pairs = number(found.counts, 8), number(found.counts, 8)
    for _ in range(pairs):
        text(found.lengths)
        kind = number(found.types, 4)
        if kind == _STRING:
            text(found.lengths)
        elif kind == _ARRAY:
            inner, count = number(found.types, 4), number(found.counts, 8)
            for place in range(count):
                if inner == _STRING:
                    text(found.lengths if place % 1000 == 0 else [])
                else:
                    at += _SCALARS[inner]
        else:
            number(found.floats if kind == 6 else found.numbers, _SCALARS[kind])
    for _ in range(tensors):
        text(found.lengths)
        for _ in range(number(found.tensors, 4)):
            number(found.tensors, 8)
        number(found.types, 4)
        number(found.tensors, 8)
    found.end = at
    return found


@dataclass(frozen=True)
class Damage:
    """What is written over a file: bytes at offsets, or its end cut off."""

    what: str
    patches: tuple[tuple[int, bytes], ...] = ()
    size: int | None = None


def damage(places: Layout, size: int, seed: int) -> Damage:
    """A random damage of a file of ``size`` bytes."""
    rng = random.Random(seed)
    kind = ("cut", "flip", "counts", "lengths", "types", "numbers", "floats", "tensors")[seed % 8]
    if kind == "cut":
        return Damage("cut", size=rng.choice([rng.randrange(places.end), rng.randrange(size)]))
    if kind == "flip":
        around = [p for group in vars(places).values() if isinstance(group, list) for p in group]
        flips = []
        for _ in range(rng.randint(1, 4)):
            at, width = rng.choice(around)
            flips.append((at + rng.randrange(max(1, width)), bytes([rng.randrange(256)])))
        return Damage(f"flip {flips}", tuple(flips))
    at, width = rng.choice(getattr(places, kind))
    if kind == "floats":
        new = struct.pack("<f", rng.choice(_FLOATS))
    elif kind == "types":
        new = rng.randrange(45).to_bytes(width, "little")
    else:
        new = (rng.choice(_EXTREMES) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    return Damage(f"{kind} at {at}: {new.hex()}", ((at, new),))
