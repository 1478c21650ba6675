"""Compares the kernels with their specification where a sanitizer watches each access to memory.

Run by test_sanitized.py, with the address sanitizer loaded first: ``python sanitized.py KERNELS NATIVE``,
the compiled module and the folder ``native``. It imports no more than it needs: what else there is was
not built to be watched.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import types
from pathlib import Path

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


def main() -> None:
    kernels, native = sys.argv[1:]
    package = sys.modules["blendfusion.native"] = types.ModuleType("blendfusion.native")
    sys.modules["blendfusion"] = types.ModuleType("blendfusion")
    package._kernels = module("blendfusion.native._kernels", kernels)  # type: ignore[attr-defined]
    compiled = module("compiled", Path(native) / "compiled.py")
    fallback = module("fallback", Path(native) / "fallback.py")
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
