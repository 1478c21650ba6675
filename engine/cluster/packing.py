"""Values and answers as bytes: column by column, so that they compress well."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from blendfusion.models.protocol.model import Values
from blendfusion.types import Answer, Usage

_ZSTD = pa.Codec("zstd", compression_level=3)
_SMALL = 128
"""Bytes that compression does not make fewer."""

Numbers: TypeAlias = "tuple[str, bytes]"
"""The type of whole numbers from 0, and their bytes."""
Texts: TypeAlias = "tuple[Numbers, bytes]"
"""The lengths of texts in bytes plus one, 0 for NULL; and the texts one behind the other."""
Packed: TypeAlias = "tuple[Any, ...]"


def packed_values(values: Sequence[Values]) -> Packed:
    """Tuples of one width as columns of texts."""
    return (len(values), *(_texts(column) for column in zip(*values, strict=True)))


def unpacked_values(packed: Packed) -> list[Values]:
    """The tuples again."""
    length, *columns = packed
    if not columns:
        return [()] * length
    return list(zip(*map(_split, columns), strict=True))


def packed_answers(answers: Sequence[Answer], *, costs: bool) -> Packed:
    """Answers as columns; without ``costs``, what they cost is left out."""
    texts: dict[str | None, int] = {}
    kinds: dict[Any, int] = {}
    text_codes, kind_codes = [], []
    for answer in answers:
        numbers = answer.usage.numbers if costs else ()
        kind = answer.finish, numbers, answer.error, answer.too_long, answer.spent
        text_codes.append(texts.setdefault(answer.text, len(texts)))
        kind_codes.append(kinds.setdefault(kind, len(kinds)))
    chances = None
    if any(answer.logprob is not None for answer in answers):
        nan = float("nan")
        known = (nan if answer.logprob is None else answer.logprob for answer in answers)
        chances = array("d", known).tobytes()
    return _texts([*texts]), _numbers(text_codes), [*kinds], _numbers(kind_codes), chances


def unpacked_answers(packed: Packed) -> list[Answer]:
    """The answers again."""
    texts, text_codes, kinds, kind_codes, chances = packed
    of_texts, of_kinds = _split(texts), [(f, Usage(*numbers), *rest) for f, numbers, *rest in kinds]
    codes = zip(_array(*text_codes), _array(*kind_codes), strict=True)
    answers = [
        Answer(of_texts[text], of_kinds[kind][0], None, *of_kinds[kind][1:]) for text, kind in codes
    ]
    if chances is None:
        return answers
    logprobs = zip(answers, _array("d", chances), strict=True)
    return [a if p != p else replace(a, logprob=p) for a, p in logprobs]


def compressed(data: bytes) -> bytes:
    """Fewer bytes, if there are many."""
    if len(data) < _SMALL:
        return b"\0" + data
    return b"\1" + len(data).to_bytes(8, "little") + bytes(_ZSTD.compress(data))


def decompressed(data: bytes) -> bytes:
    """The bytes again."""
    if data[:1] == b"\0":
        return data[1:]
    size = int.from_bytes(data[1:9], "little")
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
    kind = next(kind for kind, bits in (("B", 8), ("H", 16), ("I", 32)) if most < 2**bits)
    return kind, array(kind, numbers).tobytes()


def _array(kind: str, data: bytes) -> array[Any]:
    found = array(kind)
    found.frombytes(data)
    return found
