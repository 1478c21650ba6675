"""A Python function as an embedder: for tests, and for vectors of other libraries."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np

from blendfusion.models.embedders.embedder import Vectors, normalise
from blendfusion.models.vectors.vector import vectors_from


class ScriptedEmbedder:
    """Calls ``fn`` with lists of texts; ``texts`` records them, in order.

    ``fn`` returns one vector per text, all of one length; they are scaled to length one.
    ``fingerprint`` identifies the vectors in an index; without it, no other embedder shares them,
    and an index built by another process is rebuilt.

    >>> embedder = ScriptedEmbedder(lambda texts: [[len(t), 1.0] for t in texts])
    >>> embedder.embed(["a"]).round(2).tolist()
    [[0.7099999785423279, 0.7099999785423279]]
    """

    def __init__(
        self,
        fn: Callable[[list[str]], Sequence[Sequence[float]] | np.ndarray],
        *,
        name: str = "scripted",
        fingerprint: str | None = None,
        batch_size: int = 256,
    ) -> None:
        self._fn = fn
        self.name = name
        self.fingerprint = f"scripted:{fingerprint or uuid.uuid4().hex}"
        self.batch_size = batch_size
        self.texts: list[str] = []

    def __repr__(self) -> str:
        return f"ScriptedEmbedder({self.name!r})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        batch = list(texts)
        self.texts += batch
        return normalise(vectors_from(self.name, self._fn(batch), len(batch)))

    def close(self) -> None:
        """Do nothing: a script holds no resources."""
