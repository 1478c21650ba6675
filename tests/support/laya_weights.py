"""Makes a tiny encoder with a head for decisions, as llama.cpp reads one of the kind of Laya, and
computes its answers apart."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[Any]
Weights: TypeAlias = dict[str, Floats]

WIDTH, HEADS, INNER, WINDOW = 32, 2, [48, 48, 64], 1024
"""The last block belongs to the head."""
TEMPERATURES = {"choice": 0.7, "score": 1.3, "noul": 1.1}
SPECIAL = ("<pad>", "<unk>", "<cls>", "<sep>", "<mask>")
TOKENS = {"padding": 0, "unknown": 1, "bos": 2, "cls": 2, "eos": 3, "seperator": 3, "mask": 4}
"""The special tokens by their names in the file, one of them misspelt."""
_CONTROL, _NORMAL = 3, 1
_EPSILON, _BASE = 1e-5, 10000.0
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'"
TEMPLATE = (
    "<cls>{{ instructions }}<sep>{% for option in options %}<mask>{{ option.key }}"
    "{% if option.description %}: {{ option.description }}{% endif %}{% endfor %}"
    "<sep>{{ state if state is string else state | tojson }}<sep>"
)
ARCHITECTURE = "modern-bert"


def tensors(seed: int) -> Weights:
    """Random weights by their names in the file."""
    draw = np.random.default_rng(seed)
    vocabulary = len(SPECIAL) + 2 * len(LETTERS)

    def of(*shape: int, scale: float = 0.3) -> Floats:
        return draw.normal(0, scale, shape).astype(np.float32)

    def norm() -> Floats:
        return (1 + draw.normal(0, 0.1, WIDTH)).astype(np.float32)

    found = {
        "token_embd.weight": of(vocabulary, WIDTH, scale=1),
        "token_embd_norm.weight": norm(),
        "output_norm.weight": norm(),
        "token_types.weight": of(3, WIDTH),
    }
    for block, inner in enumerate(INNER):
        last = block == len(INNER) - 1
        if block or last:
            found[f"blk.{block}.attn_norm.weight"] = norm()
        shapes = {
            "attn_qkv": (3 * WIDTH, WIDTH),
            "attn_output": (WIDTH, WIDTH),
            "ffn_up": (inner if last else 2 * inner, WIDTH),
            "ffn_down": (WIDTH, inner),
        }
        for name, shape in shapes.items():
            found[f"blk.{block}.{name}.weight"] = of(*shape)
            if last:
                found[f"blk.{block}.{name}.bias"] = of(shape[0])
        found[f"blk.{block}.ffn_norm.weight"] = norm()
        if last:
            for name in ("attn_norm", "ffn_norm"):
                found[f"blk.{block}.{name}.bias"] = of(WIDTH)
    found["cls.weight"], found["cls.bias"] = of(WIDTH, WIDTH), of(WIDTH)
    found["cls.norm.weight"], found["cls.norm.bias"] = norm(), of(WIDTH)
    found["cls.output.weight"], found["cls.output.bias"] = of(1, WIDTH, scale=1), of(1)
    return found


def write_laya_weights(path: Path, seed: int = 1, *, head_tokens: int = 256) -> Weights:
    """Write the file, and return its weights."""
    texts = [*SPECIAL, *LETTERS, *(f"▁{letter}" for letter in LETTERS)]
    kinds = [_CONTROL] * len(SPECIAL) + [_NORMAL] * (len(texts) - len(SPECIAL))
    own: dict[str, object] = {
        "context_length": WINDOW,
        "embedding_length": WIDTH,
        "block_count": len(INNER),
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
        "attention.layer_norm_epsilon": _EPSILON,
        "attention.causal": False,
        "rope.freq_base": _BASE,
        "pooling_type": 0,
        "decision.type": "laya",
        "decision.block_count": 1,
        "decision.max_head_tokens": head_tokens,
        **{f"decision.temperature.{kind}": share for kind, share in TEMPERATURES.items()},
    }
    vocabulary: dict[str, object] = {
        "model": "bert",
        "pre": "default",
        "tokens": texts,
        "token_type": kinds,
        "scores": [0.0] * len(texts),
        "token_type_count": 3,
        **{f"{name}_token_id": token for name, token in TOKENS.items()},
    }
    facts = {
        "general.architecture": ARCHITECTURE,
        **{f"{ARCHITECTURE}.{key}": value for key, value in own.items()},
        **{f"tokenizer.ggml.{key}": value for key, value in vocabulary.items()},
        "tokenizer.chat_template.systemone": TEMPLATE,
    }
    weights = tensors(seed)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(facts))
    head += b"".join(_text(key) + _fact(value) for key, value in facts.items())
    data = b""
    for name, values in weights.items():
        sizes = values.shape[::-1]
        head += _text(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, 0, len(data))
        data += _pad(values.tobytes())
    path.write_bytes(_pad(head) + data)
    return weights


def _fact(value: object) -> bytes:
    if isinstance(value, list):
        forms = {str: 8, float: 6, int: 5}
        kind, pack = forms[type(value[0])], {float: "<f", int: "<i"}
        held = (_text(v) if isinstance(v, str) else struct.pack(pack[type(v)], v) for v in value)
        return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(held)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    return struct.pack("<II", 4, value) if isinstance(value, int) else struct.pack("<If", 6, value)


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 32)


def scores(weights: Weights, tokens: Sequence[int]) -> Floats:
    """The head's numbers at each token: for a choice, a score, and yes or no."""

    def layer(x: Floats, block: int, *, is_head: bool) -> Floats:
        name = f"blk.{block}"
        held = _norm(x, weights, f"{name}.attn_norm") if block else x
        x = x + _attention(_linear(held, weights, f"{name}.attn_qkv"), weights, name, is_head)
        inner = _linear(_norm(x, weights, f"{name}.ffn_norm"), weights, f"{name}.ffn_up")
        if is_head:
            return x + _linear(np.maximum(inner, 0), weights, f"{name}.ffn_down")
        gate, value = np.split(inner, 2, axis=1)
        return x + _linear(_gelu(gate) * value, weights, f"{name}.ffn_down")

    x = _norm(weights["token_embd.weight"][[*tokens]].astype(float), weights, "token_embd_norm")
    last = len(INNER) - 1
    for block in range(last):
        x = layer(x, block, is_head=False)
    x = _norm(x, weights, "output_norm")
    found = []
    for kind in weights["token_types.weight"]:
        own = layer(x + kind, last, is_head=True)
        own = _gelu(_linear(_norm(own, weights, "cls.norm"), weights, "cls"))
        found.append(_linear(own, weights, "cls.output")[:, 0])
    return np.stack(found, axis=1)


def _linear(x: Floats, weights: Weights, name: str) -> Floats:
    return x @ weights[f"{name}.weight"].T + weights.get(f"{name}.bias", np.zeros(1))


def _norm(x: Floats, weights: Weights, name: str) -> Floats:
    centred = x - x.mean(axis=1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + _EPSILON)
    return scaled * weights[f"{name}.weight"] + weights.get(f"{name}.bias", np.zeros(1))


def _gelu(x: Floats) -> Floats:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _attention(mixed: Floats, weights: Weights, name: str, is_head: bool) -> Floats:
    """Of all tokens to all others; the head's knows no places."""
    parts = [p.reshape(len(mixed), HEADS, -1) for p in np.split(mixed, 3, axis=1)]
    queries, keys, values = parts if is_head else [_turn(parts[0]), _turn(parts[1]), parts[2]]
    alike = np.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(WIDTH // HEADS)
    powers = np.exp(alike - alike.max(axis=2, keepdims=True))
    shares = powers / powers.sum(axis=2, keepdims=True)
    seen = np.einsum("hqk,khd->qhd", shares, values).reshape(len(mixed), WIDTH)
    return _linear(seen, weights, f"{name}.attn_output")


def _turn(x: Floats) -> Floats:
    """Rotary places: each half of a head is turned against the other."""
    half = WIDTH // HEADS // 2
    angles = np.arange(len(x))[:, None] * _BASE ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
    one, other = x[..., :half], x[..., half:]
    return np.concatenate([one * cos - other * sin, one * sin + other * cos], axis=2)
