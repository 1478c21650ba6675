"""Files in the form of llama.cpp's projectors of images, with random weights, and images."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

SMOLLM2 = 576
"""The width of a token's vector in the packaged model."""
PATCHES = 16
"""Tokens of an image of any size: 4 x 4 patches."""

_SIDE, _PATCH, _WIDTH, _INNER, _BLOCKS = 64, 16, 32, 64, 2
_ALIGNED = 32


def write_projector(path: Path, *, width: int = SMOLLM2, kind: str = "mlp") -> Path:
    """A small vision transformer with weights that say nothing. ``kind``: a projector type of
    llama.cpp's."""
    random = np.random.default_rng(0)

    def some(*shape: int) -> Array:
        return random.normal(0, 0.3, shape).astype(np.float32)

    def norm(name: str) -> dict[str, Array]:
        one = np.ones(_WIDTH, np.float32)
        return {f"{name}.weight": one, f"{name}.bias": 0 * one}

    def linear(name: str, n_in: int, n_out: int) -> dict[str, Array]:
        return {f"{name}.weight": some(n_out, n_in), f"{name}.bias": some(n_out)}

    tensors = {
        "v.patch_embd.weight": some(_WIDTH, 3, _PATCH, _PATCH),
        "v.patch_embd.bias": some(_WIDTH),
        "v.position_embd.weight": some(PATCHES, _WIDTH),
        **norm("v.post_ln"),
    }
    for block in (f"v.blk.{i}" for i in range(_BLOCKS)):
        for part in ("q", "k", "v", "out"):
            tensors |= linear(f"{block}.attn_{part}", _WIDTH, _WIDTH)
        tensors |= norm(f"{block}.ln1") | norm(f"{block}.ln2")
        tensors |= linear(f"{block}.ffn_up", _WIDTH, _INNER)
        tensors |= linear(f"{block}.ffn_down", _INNER, _WIDTH)
    if kind == "idefics3":
        tensors["mm.model.fc.weight"] = some(width, 4 * _WIDTH)
    else:
        tensors |= linear("mm.0", _WIDTH, _WIDTH) | linear("mm.2", _WIDTH, width)
    vision = {
        "image_size": _SIDE,
        "patch_size": _PATCH,
        "embedding_length": _WIDTH,
        "feed_forward_length": _INNER,
        "block_count": _BLOCKS,
        "projection_dim": width,
        "attention.head_count": 2,
        "attention.layer_norm_epsilon": 1e-6,
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
        "projector.scale_factor": 2,
        "preproc_image_size": 2 * _SIDE,
    }
    said = {
        "general.architecture": "clip",
        "clip.projector_type": kind,
        "clip.has_vision_encoder": True,
        "clip.use_gelu": True,
        **{f"clip.vision.{name}": value for name, value in vision.items()},
    }
    path.write_bytes(_gguf(said, tensors))
    return path


def _gguf(said: Mapping[str, object], tensors: Mapping[str, Array]) -> bytes:
    """The file format of ggml, version 3: what is said, where each tensor is, the tensors."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(said))
    head += b"".join(_text(key) + _value(value) for key, value in said.items())
    data = b""
    for name, array in tensors.items():
        shape = struct.pack(f"<I{array.ndim}Q", array.ndim, *reversed(array.shape))
        head += _text(name) + shape + struct.pack("<IQ", 0, len(data))
        data += _padded(array.tobytes())
    return _padded(head) + data


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % _ALIGNED)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value: object) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    assert isinstance(value, list)
    return struct.pack(f"<IIQ{len(value)}f", 9, 6, len(value), *value)


def png(width: int, height: int, colour: tuple[int, int, int]) -> bytes:
    """A picture of one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    return png_saying(width, height, rows)


def png_saying(width: int, height: int, rows: bytes) -> bytes:
    """A PNG that says to be of this size, whatever its rows are."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
