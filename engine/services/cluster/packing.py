"""Values and answers as bytes: column by column, so that they compress well."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Usage

_ZSTD = pa.Codec("zstd", compression_level=3)
_SMALL = 128
"""Bytes that compression does not make fewer."""

Numbers: TypeAlias = "tuple[str | int, bytes | int]"
"""The type of whole numbers from 0, and their bytes; of equal ones their count, and the number."""
Texts: TypeAlias = "tuple[Numbers, bytes]"
"""The lengths of texts in bytes plus one, 0 for NULL; and the texts one behind the other."""
Packed: TypeAlias = "tuple[Any, ...]"
_MOST_BYTES = 1 << 36


def packed_values(values: Sequence[Values]) -> Packed:
    """Tuples as columns of texts; those of several widths, as the contexts of groups are, as one
    column and the widths."""
    if len({len(row) for row in values}) > 1:
        return len(values), _numbers([len(row) for row in values]), _texts([*chain(*values)])
    return len(values), None, *(_texts(column) for column in zip(*values, strict=True))


def unpacked_values(packed: Packed) -> list[Values]:
    """The tuples again."""
    length, widths, *columns = packed
    if widths is not None:
        texts = iter(_split(columns[0]))
        return [tuple(islice(texts, width)) for width in _array(*widths)]
    if not columns:
        return [()] * length
    return list(zip(*map(_split, columns), strict=True))


def packed_answers(answers: Sequence[Answer], *, costs: bool) -> Packed:
    """Answers as columns; without ``costs``, what they cost is left out."""
    texts: dict[str | None, int] = {}
    kinds: dict[Any, int] = {}
    text_codes, kind_codes = [], []
    for answer in answers:
        kind = answer.finish, answer.error, answer.too_long, answer.spent
        text_codes.append(texts.setdefault(answer.text, len(texts)))
        kind_codes.append(kinds.setdefault(kind, len(kinds)))
    codes = None if len(texts) == len(answers) else _numbers(text_codes)
    chances = None
    if any(answer.logprob is not None for answer in answers):
        nan = float("nan")
        known = (nan if answer.logprob is None else answer.logprob for answer in answers)
        chances = array("d", known).tobytes()
    usages = _packed_usages([answer.usage for answer in answers]) if costs and answers else None
    return _texts([*texts]), codes, [*kinds], _numbers(kind_codes), chances, usages


def unpacked_answers(packed: Packed) -> list[Answer]:
    """The answers again."""
    texts, codes, kinds, kind_codes, chances, usages = packed
    of_texts, of_kinds = _split(texts), [kinds[kind] for kind in _array(*kind_codes)]
    count = len(of_kinds)
    places = range(count) if codes is None else _array(*codes)
    logprobs = [None] * count if chances is None else _floats(chances)
    costs = [Usage()] * count if usages is None else _unpacked_usages(usages)
    return [
        Answer(of_texts[place], finish, None if p != p else p, usage, error, too_long, spent)
        for place, (finish, error, too_long, spent), p, usage in zip(
            places, of_kinds, logprobs, costs, strict=True
        )
    ]


def _packed_usages(usages: Sequence[Usage]) -> Packed:
    *counts, seconds = zip(*(usage.numbers for usage in usages), strict=True)
    return *map(_numbers, counts), array("d", seconds).tobytes() if any(seconds) else None


def _unpacked_usages(packed: Packed) -> list[Usage]:
    *counts, seconds = packed
    columns = [_array(*column) for column in counts]
    times = [0.0] * len(columns[0]) if seconds is None else _floats(seconds)
    return [Usage(*numbers) for numbers in zip(*columns, times, strict=True)]


def packed_places(places: Sequence[int] | np.ndarray) -> Packed:
    """Ascending whole numbers, packed: a number takes two bits more than the mean distance has."""
    if not len(places):
        return (0,)
    numbers = np.asarray(places, np.int64)
    first, count = int(numbers[0]), len(numbers)
    rest = numbers - first
    # Elias and Fano's code: the low bits as they are, the high ones as gaps in a row of bits.
    low = max(0, (int(rest[-1]) // count).bit_length() - 1)
    high = np.zeros(int(rest[-1] >> low) + count, np.uint8)
    high[(rest >> low) + np.arange(count)] = 1
    bits = np.unpackbits(rest.astype(">u8").view(np.uint8).reshape(count, 8), axis=1)
    lows = np.packbits(bits[:, 64 - low :])
    return count, first, low, np.packbits(high).tobytes(), lows.tobytes()


def unpacked_places(packed: Packed) -> list[int]:
    """The numbers that ``packed_places`` packed."""
    count, *rest = packed
    if not count:
        return []
    first, low, high, lows = rest
    gaps = np.flatnonzero(np.unpackbits(np.frombuffer(high, np.uint8))) - np.arange(count)
    bits = np.zeros((count, 64), np.uint8)
    known = np.unpackbits(np.frombuffer(lows, np.uint8), count=count * low)
    bits[:, 64 - low :] = known.reshape(count, low)
    numbers = np.packbits(bits, axis=1).view(">u8").ravel().astype(np.int64)
    found: list[int] = (first + (gaps << low) + numbers).tolist()
    return found


def compress(data: bytes) -> bytes:
    """Fewer bytes, if there are many."""
    if len(data) < _SMALL:
        return b"\0" + data
    return b"\1" + len(data).to_bytes(8, "little") + bytes(_ZSTD.compress(data))


def decompress(data: bytes) -> bytes:
    """The bytes again."""
    if data[:1] == b"\0":
        return data[1:]
    size = int.from_bytes(data[1:9], "little")
    if size > _MOST_BYTES:
        raise ValueError("it says that it is larger than any message")
    return bytes(_ZSTD.decompress(data[9:], decompressed_size=size, asbytes=True))


def _texts(column: Sequence[str | None]) -> Texts:
    encoded = [None if t is None else t.encode("utf-8", "surrogatepass") for t in column]
    lengths = _numbers([0 if t is None else len(t) + 1 for t in encoded])
    return lengths, b"".join(t for t in encoded if t)


def _split(texts: Texts) -> list[str | None]:
    lengths, data = texts
    found: list[str | None] = []
    at = 0
    for length in _array(*lengths):
        text = data[at : at + length - 1] if length else b""
        found.append(text.decode("utf-8", "surrogatepass") if length else None)
        at += len(text)
    return found


def _numbers(numbers: Sequence[int]) -> Numbers:
    most = max(numbers, default=0)
    if most == min(numbers, default=0):
        return len(numbers), most
    kind = next(kind for kind, bits in (("B", 8), ("H", 16), ("I", 32)) if most < 2**bits)
    return kind, array(kind, numbers).tobytes()


def _array(kind: str | int, data: bytes | int) -> Sequence[int]:
    if isinstance(data, int):
        return [data] * int(kind)
    assert isinstance(kind, str)
    found = array(kind)
    found.frombytes(data)
    return found


def _floats(data: bytes) -> Sequence[float]:
    found = array("d")
    found.frombytes(data)
    return found
