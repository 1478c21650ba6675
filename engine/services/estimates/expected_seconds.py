"""The seconds that requests are expected to take: shown until the first answers say more."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.models.protocol.model import Values
from blendfusion.run.observe.throughput import MeasuredUsage
from blendfusion.services.estimates.earlier_rates import EarlierRates
from blendfusion.types import Usage
from blendfusion.udfs.ask.job import Job

_EXAMPLES = 16
"""Values whose tokens are counted."""


class ExpectedSeconds:
    """Sums up the requests of a run, counted as ``Frame.estimate`` counts them: by the rates of
    this session, else by those of earlier sessions."""

    def __init__(self, measured: MeasuredUsage) -> None:
        self._measured = measured
        self._earlier = EarlierRates()
        self._total = 0.0

    def add(self, job: Job, values: Sequence[Values]) -> float | None:
        """The seconds of all requests so far with those about ``values``; None if no rate of the
        model is known."""
        from blendfusion.services.estimates.loaded_models import known_models
        from blendfusion.services.estimates.simulated_model import Tally
        from blendfusion.services.estimates.token_costs import Meter

        tally = Tally(
            values=len(values),
            characters=sum(len(v) for row in values for v in row if v is not None),
            examples=list(values[:: -(-len(values) // _EXAMPLES)]),
        )
        meter = Meter(self._measured, known_models(lambda: job.model), job.names)
        cost = meter.cost(job.task, tally, len(values))
        seconds = cost.seconds
        if seconds is None:
            rate = self._earlier.of(job.model.fingerprint)
            if rate is None:
                return None
            seconds = rate * (cost.evaluated_tokens + cost.completion_tokens)
        self._total += seconds
        return self._total

    def note_usage(self, job: Job, usage: Usage) -> None:
        """Record the usage of one batch, for later sessions."""
        self._earlier.add(job.model.fingerprint, usage)

    def keep(self) -> None:
        """Store the rates of the run."""
        self._earlier.keep()
