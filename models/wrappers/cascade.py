"""Small models before a large one; the small ones decide within certified thresholds."""

from __future__ import annotations

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol.model import Model
from blendfusion.models.stores.memory import AnswerStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.options import Options


class CascadeModel(CachedModel):
    """The large model with its stored answers, and ``smaller`` ones, the smallest first, which may
    decide for it.

    A request to this model goes to the large one. Which values the others decide is a matter of
    many values at once: see ``udfs/ask/cascade.py``, which asks the ``levels`` apart."""

    def __init__(self, inner: Model, store: AnswerStore, *smaller: CachedModel) -> None:
        super().__init__(inner, store)
        self.smaller = smaller

    @property
    def names(self) -> tuple[str, ...]:
        """The large model first: it is the one that nobody is named for."""
        return (self.name, *(model.name for model in self.smaller))

    @property
    def parts(self) -> tuple[CachedModel, ...]:
        return (self, *(part for model in self.smaller for part in model.parts))

    @property
    def weights(self) -> dict[str, str]:
        own = super().weights
        for model in self.smaller:
            own |= model.weights
        return own

    @property
    def levels(self) -> tuple[CachedModel, ...]:
        return (*self.smaller, self)

    def check(self) -> None:
        super().check()
        for model in self.smaller:
            model.check()

    def forget(self) -> None:
        super().forget()
        for model in self.smaller:
            model.forget()

    def close(self) -> None:
        super().close()
        for model in self.smaller:
            model.close()


def targets_in(options: Options) -> Targets | None:
    """The targets of a session's cascades; None: several models form a failover chain."""
    if not (options.accuracy or options.recall or options.precision):
        return None
    return Targets(
        options.accuracy or None, options.recall or None, options.precision or None, options.delta
    )
