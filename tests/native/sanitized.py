"""Compares attention with its specification where a sanitizer watches each access to memory.

Run by test_sanitized.py, with the address sanitizer loaded first: ``python sanitized.py
ATTENTION NATIVE``, the compiled module and the folder ``native``. It imports no more than it
needs: what else there is was not built to be watched."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import numpy as np


def module(name: str, path: str | Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def attention(kernel: types.ModuleType, reference: types.ModuleType) -> None:
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
                wanted = reference.attention(queries, keys, values, visible, SCALE)
                np.testing.assert_allclose(seen, wanted, rtol=0.01, atol=0.01)


def main() -> None:
    attended, native = sys.argv[1:]
    reference = module("reference", Path(native) / "reference.py")
    attention(module("_attention", attended), reference)
    print("compared")


if __name__ == "__main__":
    main()
