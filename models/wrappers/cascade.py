"""A small model before a large one; the small one decides within certified thresholds."""

from __future__ import annotations

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol.model import Model
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.options import Options


class CascadeModel(CachedModel):
    """The large model with its stored answers, and ``small``, which may decide for it.

    What is put to this model is put to the large one. Which values the small one decides is a
    matter of many values at once: see ``udfs/ask/cascade.py``, which asks the two of a ``pair``
    apart."""

    def __init__(self, inner: Model, store: AnswerStore, small: CachedModel) -> None:
        super().__init__(inner, store)
        self.small = small

    @property
    def names(self) -> tuple[str, ...]:
        """The large model first: it is the one that nobody is named for."""
        return (self.name, self.small.name)

    @property
    def parts(self) -> tuple[CachedModel, ...]:
        return (self, *self.small.parts)

    @property
    def weights(self) -> dict[str, str]:
        return super().weights | self.small.weights

    @property
    def pair(self) -> tuple[CachedModel, CachedModel] | None:
        return (self.small, self)

    def check(self) -> None:
        super().check()
        self.small.check()

    def forget(self) -> None:
        super().forget()
        self.small.forget()

    def close(self) -> None:
        super().close()
        self.small.close()


def targets_in(options: Options) -> Targets | None:
    """The targets of a session's cascades; None: several models form a failover chain."""
    if not (options.accuracy or options.recall or options.precision):
        return None
    return Targets(
        options.accuracy or None, options.recall or None, options.precision or None, options.delta
    )
