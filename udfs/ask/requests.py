"""The requests of a run, for the modules of which the dispatcher is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from blendfusion.models.embedders.embedder import Embedder
    from blendfusion.models.guarantees.accuracy import Targets
    from blendfusion.models.protocol.model import Values
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.options import OnError
    from blendfusion.redaction import Redaction
    from blendfusion.types import Answer, ModelInfo, Task
    from blendfusion.udfs.ask.job import Job
    from blendfusion.udfs.ask.ledger import Ledger
    from blendfusion.udfs.ask.named_results import NamedResults
    from blendfusion.udfs.ask.observer import Observer
    from blendfusion.udfs.declare.call import Call


class Requests(Protocol):
    """A ``Dispatcher``, as far as these modules use it."""

    observer: Observer
    ledger: Ledger
    redaction: Redaction
    kept: NamedResults

    @property
    def guesses_answers(self) -> bool: ...

    def found_model(self, call: Call) -> CachedModel: ...
    def info_of(self, call: Call | None) -> ModelInfo: ...
    def policy(self, call: Call) -> OnError: ...
    def targets_of(self, call: Call | None) -> Targets | None: ...
    def task_to_send(self, task: Task) -> Task: ...
    def values_of(self, call: Call) -> Mapping[Values, object]: ...
    def answers_of(self, call: Call, values: Sequence[Values]) -> Mapping[Values, Answer]: ...
    def embedder_for(self, call: Call | None) -> Embedder: ...
    def dispatch(
        self,
        job: Job,
        sent: Task,
        values: Sequence[Values],
        into: dict[Values, Answer],
        call: Call | None,
        *,
        final: bool = True,
    ) -> None: ...
