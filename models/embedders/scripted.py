"""A Python function as embedder: for tests, and for vectors from a library of the user's own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence

import numpy as np

from blendfusion.errors import ModelFailed
from blendfusion.models.embedders.embedder import Vectors, normalised


class ScriptedEmbedder:
    """Asks ``fn`` for the vectors of a list of texts; ``texts`` keeps what it was asked, in order.

    ``fn`` gives one vector a text, all of one length; they are brought to length one. An index is
    known by its embedder's ``fingerprint``: without one, no other embedder has these vectors, and
    an index that another process built is built anew.

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
        asked = list(texts)
        self.texts += asked
        vectors = np.asarray(self._fn(asked), dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(asked):
            raise ModelFailed(
                f"the embedder '{self.name}' gave an array of shape {vectors.shape} "
                f"for {len(asked)} texts",
                hint="One vector a text, all of one length.",
            )
        return normalised(vectors)

    def close(self) -> None:
        """Nothing to free."""
