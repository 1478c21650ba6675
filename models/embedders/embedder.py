"""The protocol of embedders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from blendfusion.models.vectors.vector import Vectors as Vectors
from blendfusion.models.vectors.vector import normalise as normalise
from blendfusion.options import Options
from blendfusion.types import Usage


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


class EmbedderKind(NamedTuple):
    """A kind of embedder that a name may select."""

    build: BuildEmbedder
    forms: str
    """The forms of its names, for hints."""
