"""Properties of models that are known without loading them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blendfusion.errors import ModelNotFound
from blendfusion.models.guarantees.vector_classifier import EmbeddingModel
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.wrappers.cache import CachedModel


@dataclass(frozen=True, slots=True)
class KnownModels:
    """The known properties of the models that answer a call.

    ``cache``: their answers so far. ``model``: their window and their tokenizer. None: unavailable.
    """

    cache: CachedModel | None = None
    model: CachedModel | None = None

    @property
    def levels(self) -> int:
        """The number of a cascade's models that receive values; a classifier of vectors does
        not."""
        levels = () if self.cache is None else self.cache.levels
        return max(1, sum(not isinstance(model.inner, EmbeddingModel) for model in levels))

    @property
    def weights(self) -> dict[str, str]:
        """The weights in use, by the names of the models that report them."""
        return {} if self.cache is None else self.cache.weights

    @property
    def abilities(self) -> Abilities:
        """The abilities of the models; the defaults if none is available."""
        return Abilities() if self.cache is None else self.cache.abilities


def known_models(find: Callable[[], CachedModel]) -> KnownModels:
    """The known properties of the model that ``find`` returns; none if it raises ModelNotFound."""
    try:
        model = find()
    except ModelNotFound:  # a query that asks nothing needs no model
        return KnownModels()
    return KnownModels(model, model if model.abilities.loaded else None)
