"""Checks that a library of llama.cpp computes what it should, before its first answer.

A model of 130,000 made-up weights reads 24 prompts. What it then thinks of the next token is known:
tests/models/services/llama/test_self_test.py computes it with NumPy. A library that was built for
another processor or another version of the bindings, or that is damaged, gives other numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS = 96, 64, 128, 2, 4, 2
PROMPTS = tuple(
    tuple((7 * prompt + 11 * place * place + 3) % VOCABULARY for place in range(1 + prompt % 8))
    for prompt in range(24)
)
"""Tokens of 24 prompts, one to eight of them each."""
WATCHED = tuple((5 * prompt + 2) % VOCABULARY for prompt in range(len(PROMPTS)))
"""The token whose log-probability after each prompt is known."""
TOLERANCE = 0.01
"""The most by which a log-probability may differ: keys and values have 11 bits."""
KNOWN = (
    *(-5.338, -6.666, -4.539, -5.882, -5.527, -5.736, -4.714, -5.958),
    *(-4.350, -5.369, -4.168, -5.260, -5.296, -4.847, -5.665, -4.576),
    *(-4.814, -5.510, -4.756, -3.742, -5.288, -4.341, -5.610, -5.342),
)
"""The log-probabilities of ``WATCHED``, rounded to three decimals."""

Array = NDArray[np.float32]
_TEXT, _COUNT, _NUMBER = 8, 4, 6
"""Types of values in a GGUF file: string, uint32, float32."""
_F32, _F16 = 0, 1
_ALIGNMENT = 32


@dataclass(frozen=True)
class Tensor:
    """Weights by the name that llama.cpp gives them, shape (outputs, inputs) or (inputs,)."""

    name: str
    values: Array

    @property
    def type(self) -> int:
        return _F32 if self.values.ndim == 1 else _F16

    @property
    def data(self) -> bytes:
        return self.values.astype(np.float32 if self.type == _F32 else np.float16).tobytes()


def differences(seen: list[float]) -> int:
    """The number of prompts after which the odds are not as known."""
    return sum(not abs(a - b) <= TOLERANCE for a, b in zip(seen, KNOWN, strict=True))


def tensors() -> Iterator[Tensor]:
    """The weights of the model, in the order of its file."""
    shapes = {"token_embd": (VOCABULARY, WIDTH)}
    kept = WIDTH // HEADS * KV_HEADS
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_q": (WIDTH, WIDTH),
            f"blk.{layer}.attn_k": (kept, WIDTH),
            f"blk.{layer}.attn_v": (kept, WIDTH),
            f"blk.{layer}.attn_output": (WIDTH, WIDTH),
            f"blk.{layer}.ffn_gate": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_up": (HIDDEN, WIDTH),
            f"blk.{layer}.ffn_down": (WIDTH, HIDDEN),
        }
    shapes["output"] = (VOCABULARY, WIDTH)
    for number, (name, shape) in enumerate(shapes.items(), 1):
        yield Tensor(f"{name}.weight", _made_up(number, shape))
    norms = [f"blk.{layer}.{part}_norm" for layer in range(LAYERS) for part in ("attn", "ffn")]
    for name in [*norms, "output_norm"]:
        yield Tensor(f"{name}.weight", np.ones(WIDTH, np.float32))


def _made_up(number: int, shape: tuple[int, int]) -> Array:
    """Weights between -0.25 and 0.25, by Knuth's multiplicative hash of their places."""
    places = np.arange(1, shape[0] * shape[1] + 1, dtype=np.uint64) + np.uint64(number << 20)
    hashes = (places * np.uint64(2654435761)) >> np.uint64(8) & np.uint64(0xFFFF)
    values = hashes.astype(np.float32) / np.float32(0x1FFFE) - np.float32(0.25)
    return values.reshape(shape).astype(np.float16).astype(np.float32)


def model() -> bytes:
    """The model as a GGUF file of version 3, as ggml's specification of GGUF defines it."""
    facts: dict[str, str | int | float] = {
        "general.architecture": "llama",
        "llama.vocab_size": VOCABULARY,
        "llama.context_length": 256,
        "llama.embedding_length": WIDTH,
        "llama.block_count": LAYERS,
        "llama.feed_forward_length": HIDDEN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH // HEADS,
        "tokenizer.ggml.model": "no_vocab",
    }
    made = list(tensors())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(made), len(facts))
    head += b"".join(_text(name) + _value(value) for name, value in facts.items())
    data = b""
    for tensor in made:
        sizes = tensor.values.shape[::-1]
        head += _text(tensor.name) + struct.pack(
            f"<I{len(sizes)}QIQ", len(sizes), *sizes, tensor.type, len(data)
        )
        data += _pad(tensor.data)
    return _pad(head) + data


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: str | int | float) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", _TEXT) + _text(value)
    if isinstance(value, int):
        return struct.pack("<II", _COUNT, value)
    return struct.pack("<If", _NUMBER, value)


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)
