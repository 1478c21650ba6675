"""The protocol of embedders, and the registry of embedders by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from blendfusion.errors import ModelNotFound, close_matches, connect_with
from blendfusion.models.vectors.vector import Vectors as Vectors
from blendfusion.models.vectors.vector import normalise as normalise
from blendfusion.options import Options
from blendfusion.types import Usage

VARIABLE = "BLENDFUSION_EMBEDDER"
FORMS = "'wordllama', 'openai:MODEL@http://HOST:PORT/v1', 'openai:MODEL'"


@runtime_checkable
class Embedder(Protocol):
    """Computes vectors whose inner products measure the similarity of texts."""

    @property
    def name(self) -> str:
        """The display name."""
        ...

    @property
    def fingerprint(self) -> str:
        """A text that identifies the vectors: equal fingerprints give equal vectors in every
        process, so an index records it. Cheap after the first use; the first may load the weights.
        """
        ...

    @property
    def batch_size(self) -> int:
        """The recommended number of texts per ``embed``; the caller may interrupt between
        batches."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A unit vector for each text, in order, as float32 of shape (texts, dimensions).

        Texts are not blank. A text without known words has a zero vector. A text's vector does not
        depend on the other texts. Raises ModelNotFound or ModelFailed.
        """
        ...

    def close(self) -> None:
        """Free its resources. It may be closed twice, and used again afterwards."""
        ...


Spend: TypeAlias = Callable[[Usage], None]
"""Receives the usage of requests."""


@runtime_checkable
class MeteredEmbedder(Embedder, Protocol):
    """An embedder whose requests, tokens and time count in budgets, such as a server."""

    @property
    def texts_a_request(self) -> int:
        """The number of texts per request."""
        ...

    def metered(self, texts: Sequence[str], spend: Spend) -> Vectors:
        """Like ``embed``; ``spend`` receives the usage of requests, except values and seconds, as
        soon as it is known."""
        ...


class SpendingLimits(Protocol):
    """The spending limits and the spending of metered embedders."""

    def admit_texts(self, embedder: MeteredEmbedder, pending: int) -> int:
        """The number of ``pending`` texts that may be embedded at once, at least one. Raises
        BudgetExceeded."""
        ...

    def take_request(self, more: int) -> bool:
        """Reserves ``more`` further requests of an admitted batch in the budget; False if it has no
        room."""
        ...

    def out_of_texts(self, pending: int) -> Exception:
        """The error of a batch that a request was refused to."""
        ...

    def settle_texts(
        self, embedder: MeteredEmbedder, texts: int, spent: Usage, requests: int
    ) -> None:
        """Record the usage of ``texts`` texts, for which ``requests`` were taken."""
        ...


BuildEmbedder: TypeAlias = Callable[[str, Options], Embedder]
"""Builds an embedder from the text after the first colon, or ''; loads nothing."""


def load_embedder(spec: str | Embedder | None, options: Options) -> Embedder:
    """The embedder that ``spec`` names; an embedder is returned unchanged.

    "auto" means the embedder that the environment variable BLENDFUSION_EMBEDDER names, else
    wordllama. Raises ModelNotFound. Loads no weights and sends no request.
    """
    if spec is None:
        raise ModelNotFound(
            "this session has no embedder: it was made with embedder=None",
            hint=f"Name one, {connect_with(embedder='wordllama')}: {FORMS}.",
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


def _wordllama(argument: str, options: Options) -> Embedder:
    from blendfusion.models.vectors.wordllama import WordLlamaEmbedder

    return WordLlamaEmbedder()


def _openai(argument: str, options: Options) -> Embedder:
    from blendfusion.models.embedders.openai import OpenAIEmbedder
    from blendfusion.models.http.address import several
    from blendfusion.models.registry.load import server_named

    server = server_named(argument)
    if several(server.url) != [server.url]:
        raise ModelNotFound(
            f"'openai:{server.name}' names several servers, and an embedder has one",
            hint="Name one URL.",
        )
    return OpenAIEmbedder(*server, options)


EMBEDDERS: dict[str, BuildEmbedder] = {"wordllama": _wordllama, "openai": _openai}
