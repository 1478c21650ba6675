"""wordllama: small static word vectors (256 dimensions, 19 MB) that ship inside a Python package.

A text's vector is the mean of its tokens' vectors. The package's files are read without an import,
because importing it configures the process's root logger, and its own loader may use the network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from blendfusion.errors import ModelNotFound, connect_with
from blendfusion.models.vectors.vector import Vectors, normalise

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PACKAGE = "wordllama"
_WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
_TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_MOST_TOKENS = 65_536
"""Maximum tokens whose vectors are in memory at once: 64 MB."""


@dataclass(frozen=True, slots=True)
class _Weights:
    tokenizer: Tokenizer
    vectors: Vectors
    """One row per token."""
    fingerprint: str


class WordLlamaEmbedder:
    """The vectors of the installed package ``wordllama``, loaded at the first use (0.1 s)."""

    name = "wordllama"
    batch_size = 1024

    def __init__(self) -> None:
        """Raises ModelNotFound if the package is not installed."""
        self._folder = _folder()
        self._loaded: _Weights | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return "WordLlamaEmbedder()"

    @property
    def fingerprint(self) -> str:
        return self._load().fingerprint

    def embed(self, texts: Sequence[str]) -> Vectors:
        loaded = self._load()
        encoded = loaded.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        tokens = [np.array(e.ids, dtype=np.int64) for e in encoded]
        means = np.zeros((len(tokens), loaded.vectors.shape[1]), dtype=np.float32)
        for group in _groups([len(t) for t in tokens]):
            means[group] = _sums([tokens[i] for i in group], loaded.vectors)
        # The mean and the sum have the same direction.
        return normalise(means)

    def close(self) -> None:
        self._loaded = None

    def _load(self) -> _Weights:
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._folder)
            return self._loaded


def _folder() -> Path:
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        spec = None
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / _WEIGHTS).is_file() and (Path(place) / _TOKENIZER).is_file():
            return Path(place)
    raise ModelNotFound(
        "embeddings need the package wordllama, which is not installed",
        hint="pip install 'blendfusion[search]', or name a server: "
        f"{connect_with(embedder='openai:MODEL@http://HOST:PORT/v1')}.",
    )


def _read(folder: Path) -> _Weights:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    weights, words = (folder / _WEIGHTS).read_bytes(), (folder / _TOKENIZER).read_bytes()
    tokenizer = Tokenizer.from_buffer(words)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    digest = hashlib.blake2b(weights, digest_size=16)
    digest.update(words)
    vectors = np.ascontiguousarray(load(weights)[_TENSOR].astype(np.float32))
    return _Weights(tokenizer, vectors, f"wordllama:{digest.hexdigest()}")


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Texts, by number, that are looked up together; texts without tokens are in no group."""
    group: list[int] = []
    room = _MOST_TOKENS
    for i, length in enumerate(lengths):
        if not length:
            continue
        if group and length > room:
            yield group
            group, room = [], _MOST_TOKENS
        group.append(i)
        room -= length
    if group:
        yield group


def _sums(tokens: Sequence[npt.NDArray[np.int64]], vectors: Vectors) -> Vectors:
    """The sum of the vectors of each text's tokens, independent of the other texts."""
    if len(tokens) == 1:  # it may exceed the maximum
        text = tokens[0]
        parts = [text[at : at + _MOST_TOKENS] for at in range(0, len(text), _MOST_TOKENS)]
        pieces = [np.add.reduceat(vectors[part], [0], axis=0) for part in parts]
        total: Vectors = np.sum(pieces, axis=0, dtype=np.float32)
        return total
    starts = np.cumsum([0, *map(len, tokens[:-1])])
    sums: Vectors = np.add.reduceat(vectors[np.concatenate(tokens)], starts, axis=0)
    return sums
