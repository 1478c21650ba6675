"""GGUF files without weights: a head that says what the weights would be."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

Tensor = tuple[str, Sequence[int], int]
"""Name, sizes and number of the type."""


def write_gguf(
    path: Path, tensors: Sequence[Tensor], pairs: Mapping[str, int] | None = None
) -> Path:
    """A file with these tensors and numbers, and a vocabulary of three words."""
    said = dict(pairs or {})
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(said) + 2)
    data += _text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3)
    data += b"".join(_text(word) for word in ("a", "", "über"))
    data += _text("tokenizer.ggml.scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.0, 1.0, 2.0)
    for key, value in said.items():
        data += _text(key) + struct.pack("<II", 4, value)
    for name, sizes, kind in tensors:
        data += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, kind, 0)
    path.write_bytes(data)
    return path


def _text(text: str) -> bytes:
    said = text.encode()
    return struct.pack("<Q", len(said)) + said
