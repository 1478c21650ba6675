"""Compares the kernels with their specification where a sanitizer watches each access to memory.

Run by test_sanitized.py, with the address sanitizer loaded first: ``python sanitized.py KERNELS
ATTENTION NATIVE``, the compiled modules and the folder ``native``. It imports no more than it
needs: what else there is was not built to be watched."""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa

WORDS = [
    "",
    "a",
    "é",
    "eight ch",
    "same",
    "same1",
    "sixteen letters.",
    "x" * 33,
    "日本語" * 30,
    None,
]


def module(name: str, path: str | Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def chunks(rng: random.Random, rows: int) -> list[pa.Array]:
    """A column in chunks, each a slice of a larger array whose buffers are as short as can be."""
    made = []
    while rows > 0:
        size = rng.randint(0, rows) or 1
        few = rng.sample(WORDS, rng.randint(1, len(WORDS)))
        array = pa.array(rng.choices(few, k=size + 7), pa.string())
        start = rng.randint(0, 7)
        made.append(array.slice(start, size))
        rows -= size
    return made


def attention(kernel: types.ModuleType, fallback: types.ModuleType) -> None:
    """Steps of all shapes, with cells in any order; arrays are as short as can be."""
    from attention_step import SCALE, Steps

    rng = np.random.default_rng(1)
    for lanes in {4, kernel.lanes or 4}:
        with Steps(kernel, lanes=lanes) as steps:
            steps.trust()
            for _ in range(40):
                tokens, cells, kv_heads, group = rng.integers(1, (40, 200, 4, 10))
                dims = rng.choice([16, 48, 64, 256])
                queries = rng.normal(0, 1, (tokens, kv_heads * group, dims))
                keys, values = rng.normal(0, 1, (2, cells, kv_heads, dims))
                visible = rng.random((tokens, cells)) < rng.random()
                visible[:, : rng.integers(1, cells + 1)] = True
                steps.write(rng.permutation(cells))
                seen = steps.attend(queries, keys, values, visible)
                wanted = fallback.attention(queries, keys, values, visible, SCALE)
                np.testing.assert_allclose(seen, wanted, rtol=0.01, atol=0.01)


def main() -> None:
    kernels, attended, native = sys.argv[1:]
    package = sys.modules["blendfusion.native"] = types.ModuleType("blendfusion.native")
    sys.modules["blendfusion"] = types.ModuleType("blendfusion")
    package._kernels = module("blendfusion.native._kernels", kernels)  # type: ignore[attr-defined]
    compiled = module("compiled", Path(native) / "compiled.py")
    fallback = module("fallback", Path(native) / "fallback.py")
    attention(module("_attention", attended), fallback)
    rng = random.Random(1)
    for rows in [0, 1, 2, 7, 8, 9, *(rng.randint(1, 600) for _ in range(60)), 300_000]:
        column = chunks(rng, rows)
        texts, codes = compiled.encode_text(column)
        wanted, places = fallback.encode_text(column)
        assert texts.equals(wanted), rows
        assert (codes == places).all(), rows
    print("compared")


if __name__ == "__main__":
    main()
