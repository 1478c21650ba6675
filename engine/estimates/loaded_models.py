"""What can be known of models without loading one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blendfusion.errors import ModelNotFound
from blendfusion.models.guarantees.vector_classifier import EmbeddingModel
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Task


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the models that answer a call.

    ``cache``: their answers so far. ``model``: their window and their tokenizer. None: not to be had.
    """

    cache: CachedModel | None = None
    model: CachedModel | None = None

    @property
    def asks_small(self) -> bool:
        """A cascade's small model is asked about values; a classifier of vectors is not."""
        pair = None if self.cache is None else self.cache.pair
        return pair is not None and not isinstance(pair[0].inner, EmbeddingModel)

    @property
    def weights(self) -> dict[str, str]:
        """Which weights answer, by the names of those models that say so."""
        return {} if self.cache is None else self.cache.weights

    def scored_by(self, task: Task) -> str | None:
        """By which words the model tells the replies of a task apart, if it says so."""
        return None if self.cache is None else self.cache.scored_by(task)

    def put_as(self, task: Task) -> Task:
        """What the model asks for a task: the task, unless it says so."""
        return task if self.cache is None else self.cache.put_as(task)

    def says(self, trait: str) -> bool:
        """Whether the model has a trait that models may have; False if it does not know it."""
        return self.cache is not None and bool(getattr(self.cache.inner, trait, False))


def known(find: Callable[[], CachedModel]) -> Known:
    """What is known of the model that ``find`` finds; nothing, if it raises ModelNotFound."""
    try:
        model = find()
    except ModelNotFound:  # a query that asks nothing needs none
        return Known()
    loaded = bool(getattr(model.inner, "loaded", True))
    return Known(model, model if loaded else None)
