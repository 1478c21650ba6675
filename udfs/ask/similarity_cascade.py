"""Runs a yes/no question only on the most similar values, above a certified threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.guarantees.recall import RankedCertificate
from blendfusion.models.protocol.model import Values
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.cascade import AnyCertificate, Cascade
from blendfusion.udfs.ask.embed_columns import Texts, cosines

if TYPE_CHECKING:
    from blendfusion.udfs.ask.requests import Requests
    from blendfusion.udfs.declare.call import Call

_NO = Answer("false")


class SimilarityCascade(Cascade):
    """The cascade whose small model is the similarity of values to the question: it proposes no to
    all, and may decide those that are least similar.

    Several values of a row are one text, joined by line breaks, as those of an index are.
    """

    def __init__(self, call: Call, task: Task, targets: Targets, model: CachedModel) -> None:
        super().__init__(call, task, targets, (model, model))
        self._similarities: dict[Values, float] = {}
        self._vectors = ""

    @property
    def _decider(self) -> str:
        return f"the vectors of {self._vectors}"

    def _propose(
        self, values: Sequence[Values], dispatcher: Requests, known: dict[Values, Answer]
    ) -> dict[Values, Answer]:
        embedder = dispatcher.embedder_for(self._call)
        self._vectors = embedder.name
        texts = ["\n".join(text for text in value if text) for value in values]
        each, question = np.arange(len(texts)), np.zeros(len(texts), dtype=np.int64)
        found = cosines(Texts(texts, each), Texts([self._task.question], question), embedder)
        self._similarities = dict(zip(values, found.tolist(), strict=True))
        return dict.fromkeys(values, _NO)

    def _certificate(
        self, proposed: dict[Values, Answer], settled: Sequence[str]
    ) -> RankedCertificate:
        assert self._targets.recall is not None
        scores = np.array([self._similarities[v] for v in proposed], dtype=np.float64)
        return RankedCertificate(scores, self._targets.recall, self._delta(), self._order(proposed))

    def _rule(self, certificate: AnyCertificate) -> str:
        below = certificate.decided.below
        return "" if below is None else f"with a similarity of at most {below:.3g}"
