"""Texts as vectors: the protocol of an embedder, and an embedder by its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from blendfusion.errors import ModelNotFound, close_matches
from blendfusion.options import Options
from blendfusion.types import Usage

Vectors: TypeAlias = npt.NDArray[np.float32]
"""One row a text."""

VARIABLE = "BLENDFUSION_EMBEDDER"
FORMS = "'wordllama', 'openai:MODEL@http://HOST:PORT/v1', 'openai:MODEL'"


@runtime_checkable
class Embedder(Protocol):
    """Gives texts vectors whose inner products say how alike their meanings are."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    @property
    def fingerprint(self) -> str:
        """Two embedders with one fingerprint give equal vectors, in every process; what an index
        was built with is known by it. Cheap after the first use; the first may load the weights."""
        ...

    @property
    def batch_size(self) -> int:
        """How many texts one ``embed`` should get; the caller may interrupt between batches."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector of length one for each text, in order, as float32 of shape (texts, dimensions).

        No text is blank. One without anything to go by has a vector of zeros. A text's vector does
        not depend on those beside it. Raises ModelNotFound or ModelFailed.
        """
        ...

    def close(self) -> None:
        """Free what it holds. May be called twice; it may be used again after."""
        ...


Spend: TypeAlias = Callable[[Usage], None]
"""Is told what was spent."""


@runtime_checkable
class MeteredEmbedder(Embedder, Protocol):
    """An embedder that takes what budgets count, as a server does: requests, tokens, time."""

    @property
    def texts_a_request(self) -> int:
        """How many texts go in one request."""
        ...

    def metered(self, texts: Sequence[str], spend: Spend) -> Vectors:
        """As ``embed``; ``spend`` is told what requests took, but for values and seconds, as soon as it is known."""
        ...


class Purse(Protocol):
    """What metered embedders may spend, and have spent."""

    def admit_texts(self, embedder: MeteredEmbedder, pending: int) -> int:
        """How many of ``pending`` texts may be embedded at once: at least one. Raises BudgetExceeded."""
        ...

    def settle_texts(self, embedder: MeteredEmbedder, texts: int, spent: Usage) -> None:
        """So many texts took so much."""
        ...


BuildEmbedder: TypeAlias = Callable[[str, Options], Embedder]
"""Builds an embedder from what follows the first colon ('' if there is none); loads nothing."""


def load_embedder(spec: str | Embedder | None, options: Options) -> Embedder:
    """The embedder that ``spec`` names; an embedder is returned as it is.

    "auto" means the one that the environment variable BLENDFUSION_EMBEDDER names, else wordllama.
    Raises ModelNotFound; no weights are loaded and no server is asked.
    """
    if spec is None:
        raise ModelNotFound(
            "this session has no embedder: it was made with embedder=None",
            hint=f"Name one in bf.connect(embedder=…): {FORMS}.",
        )
    if spec == "auto":
        spec = os.environ.get(VARIABLE, "").strip() or "wordllama"
    if not isinstance(spec, str):
        if not callable(getattr(spec, "embed", None)):
            raise ModelNotFound(
                f"{spec!r} is neither an embedder nor the name of one", hint=f"Name one: {FORMS}."
            )
        return spec
    scheme, _, argument = spec.partition(":")
    build = EMBEDDERS.get(scheme)
    if build is None:
        near = close_matches(scheme, [*EMBEDDERS, "auto"])
        raise ModelNotFound(f"no embedder '{spec}'. {near}", hint=f"Name one: {FORMS}.")
    return build(argument, options)


def no_embedder() -> Embedder:
    """Raises ModelNotFound."""
    return load_embedder(None, Options())


def normalised(vectors: npt.NDArray[np.floating]) -> Vectors:
    """The rows at length one; rows of zeros stay as they are.

    >>> normalised(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _wordllama(argument: str, options: Options) -> Embedder:
    from blendfusion.models.embedders.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder()


def _openai(argument: str, options: Options) -> Embedder:
    from blendfusion.models.embedders.openai import OpenAIEmbedder
    from blendfusion.models.registry.load import server_named

    return OpenAIEmbedder(*server_named(argument), options)


EMBEDDERS: dict[str, BuildEmbedder] = {"wordllama": _wordllama, "openai": _openai}
