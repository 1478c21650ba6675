"""The self-test of llama.cpp's library: its numbers are those of NumPy, and a wrong library fails it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from blendfusion.errors import ModelNotFound
from blendfusion.models.services.llama import library, self_test
from blendfusion.models.services.llama.self_test import (
    HEADS,
    KNOWN,
    KV_HEADS,
    LAYERS,
    PROMPTS,
    TOLERANCE,
    WATCHED,
    WIDTH,
)

WIDTH_OF_HEAD = WIDTH // HEADS
Array = NDArray[np.float64]


def normed(x: Array) -> Array:
    """RMSNorm without weights."""
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def rotated(x: Array) -> Array:
    """RoPE of neighbouring pairs; shape (tokens, heads, width)."""
    turns = 10000.0 ** (-np.arange(0, WIDTH_OF_HEAD, 2) / WIDTH_OF_HEAD)
    angles = (np.arange(len(x))[:, None] * turns)[:, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    result = np.empty_like(x)
    result[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    result[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return result


def attention(q: Array, k: Array, v: Array) -> Array:
    """Causal attention with grouped heads; shapes (tokens, heads, width)."""
    k, v = (np.repeat(x, HEADS // KV_HEADS, axis=1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(WIDTH_OF_HEAD)
    scores = np.where(np.tril(np.ones((len(q), len(q)), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,jhd->ihd", weights / weights.sum(-1, keepdims=True), v)


def log_odds(weights: dict[str, Array], prompt: tuple[int, ...]) -> Array:
    """The log-probabilities of the next token: a llama forward pass as its paper gives it."""
    x = weights["token_embd"][list(prompt)]
    for layer in range(LAYERS):
        block = {name: weights[f"blk.{layer}.{name}"].T for name in PARTS}
        h = normed(x)
        q, k, v = (
            (h @ block[f"attn_{name}"]).reshape(len(prompt), -1, WIDTH_OF_HEAD) for name in "qkv"
        )
        mixed = attention(rotated(q), rotated(k), v).reshape(len(prompt), WIDTH)
        x = x + mixed @ block["attn_output"]
        h = normed(x)
        gate = h @ block["ffn_gate"]
        x = x + (gate / (1 + np.exp(-gate)) * (h @ block["ffn_up"])) @ block["ffn_down"]
    logits = normed(x)[-1] @ weights["output"].T
    return logits - np.logaddexp.reduce(logits)


PARTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


def test_the_known_numbers_are_those_of_numpy() -> None:
    weights = {
        tensor.name.removesuffix(".weight"): tensor.values.astype(np.float64)
        for tensor in self_test.tensors()
    }
    computed = [
        round(float(log_odds(weights, prompt)[token]), 3)
        for prompt, token in zip(PROMPTS, WATCHED, strict=True)
    ]
    assert computed == list(KNOWN)


@pytest.mark.local
def test_the_library_that_is_loaded_passes() -> None:
    assert self_test.differences(library.log_probabilities(library.library())) == 0


class Double:
    """The bindings, but for some of their functions."""

    def __init__(self, lib: Any, **others: Any) -> None:
        self._lib, self._others = lib, others

    def __getattr__(self, name: str) -> Any:
        found = self._others.get(name, getattr(self._lib, name))
        if found is None:
            raise AttributeError(f"undefined symbol: {name}")
        return found


@pytest.mark.local
def test_a_library_that_computes_wrongly_is_refused() -> None:
    lib = library.library()

    def wrong(context: Any) -> Any:
        logits = lib.llama_get_logits(context)
        logits[WATCHED[0]] += 20 * TOLERANCE
        return logits

    with pytest.raises(ModelNotFound, match="it computes wrongly") as caught:
        library._check_library(Double(lib, llama_get_logits=wrong))
    assert len(str(caught.value.hint).splitlines()) == 3
    assert library.library() is lib  # the next query asks the library that passed


@pytest.mark.local
def test_a_library_without_a_function_is_refused() -> None:
    lib = library.library()
    with pytest.raises(ModelNotFound, match="undefined symbol: llama_decode"):
        library._check_library(Double(lib, llama_decode=None))
