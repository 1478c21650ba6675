"""The model named "embedding": a classifier of vectors, fitted to a large model's answers in each
run."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.errors import ModelFailed, connect_with
from blendfusion.models.protocol.abilities import Abilities
from blendfusion.models.protocol.model import Values
from blendfusion.options import Options
from blendfusion.types import Answer, ModelInfo, Task

EMBEDDING = "embedding"


class EmbeddingModel:
    """Takes the place of the small model of a cascade. It answers no question itself: the cascade
    (``udfs/ask/cascade.py``) fits it to the large model's answers, by the session's embedder."""

    abilities = Abilities(name=EMBEDDING, fingerprint=EMBEDDING, fingerprint_lasts=True)

    def __init__(self, argument: str = "", options: Options | None = None) -> None:
        pass

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(EMBEDDING, EMBEDDING, window=2**31)

    @property
    def batch_size(self) -> int:
        return 1

    def count_tokens(self, text: str) -> int:
        return 0

    def answer(self, task: Task, values: Sequence[Values]) -> list[Answer]:
        raise ModelFailed(
            f"'{EMBEDDING}' answers only before a large model, and with a target",
            hint=f"Open the session with {connect_with('embedding', 'openai:…', accuracy=0.9)}.",
        )

    def close(self) -> None:
        """Nothing to free: the embedder is the session's."""
