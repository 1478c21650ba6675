"""A recorded model: it has the description of the one that answered, and asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blendfusion.errors import ModelFailed
from blendfusion.models.protocol.abilities import Abilities, abilities_of
from blendfusion.models.protocol.gate import MOST_TOKENS, Unfit, check_shape
from blendfusion.models.protocol.model import Values
from blendfusion.models.stores.recording import FAILED, KeyedStore, text_digest
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, ModelInfo, Task

_ABILITIES = (
    "at_once",
    "call_per_value",
    "sees_images",
    "hears_audio",
    "hears_speech",
    "stops_early",
    "scores_options",
    "shares_prefix",
)
"""The abilities that decide about the requests of a query."""


def description(model: CachedModel) -> dict[str, Any]:
    """The part of a manifest that describes a model. It may load the model."""
    info, abilities = model.inner.info, abilities_of(model.inner)
    return {
        "name": info.name,
        "fingerprint": info.fingerprint,
        "window": info.window,
        "batch_size": model.inner.batch_size,
        **{name: getattr(abilities, name) for name in _ABILITIES},
    }


def check_described(described: dict[str, Any]) -> None:
    """Raises Unfit for a description that no model has. Abilities may be missing: those of an
    earlier version."""
    for name in _ABILITIES:
        kind = int if name == "at_once" else bool
        check_shape(described.get(name, kind(1)), kind, f"the {name} of a model")
    for name in ("window", "batch_size", "at_once"):
        if not 0 < described.get(name, 1) < MOST_TOKENS:
            raise Unfit(f"the {name} of a model is not possible")


class RecordedModel:
    """Stands for the model that ``described`` describes; all answers come from ``store``."""

    def __init__(
        self, described: dict[str, Any], store: KeyedStore, tokens: dict[str, int]
    ) -> None:
        self.info = ModelInfo(described["name"], described["fingerprint"], described["window"])
        self.batch_size = int(described["batch_size"])
        chosen = {name: described[name] for name in _ABILITIES if name in described}
        self.abilities = Abilities(name=self.info.name, fingerprint_lasts=True, **chosen)
        self._store, self._tokens = store, tokens

    def count_tokens(self, text: str) -> int:
        """The recorded number; for a text that was not counted, an estimate."""
        return self._tokens.get(text_digest(text), -(-len(text) // 4))

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        """Failed answers for values that failed in the recorded run. Raises ModelFailed for
        others: the run did not ask them."""
        failed = self._store.failed_values(self.info.fingerprint, task, values)
        missing = len({v for v in values if v not in failed})
        if missing:
            raise ModelFailed(
                f"the recorded run has no answer for {missing:,} values",
                hint="Ask them: blendfusion replay … --update.",
            )
        return [FAILED for _ in values]

    def close(self) -> None:
        """Nothing to close."""
