"""Looks up stored answers and prices before anything is asked. A look loads no model, and counts
nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from blendfusion.budget import Price
from blendfusion.errors import BlendFusionError
from blendfusion.models.protocol.model import Values
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.udfs.ask.reviews import answers_of_people
from blendfusion.udfs.declare.call import Call

if TYPE_CHECKING:
    from blendfusion.udfs.ask.requests import Requests


class AnswerLookup:
    """The stored answers and the prices for the calls of one run."""

    def __init__(self, dispatcher: Requests) -> None:
        self._dispatcher = dispatcher
        self._any: dict[Call, bool] = {}

    def model_of(self, call: Call) -> CachedModel | None:
        """The model of ``call`` with its stored answers; None if it had to be loaded or reached for
        a look."""
        try:
            model = self._dispatcher.found_model(call)
            ready = model.abilities.loaded or model.abilities.fingerprint
        except BlendFusionError:  # it shows when the model is asked
            return None
        return model if ready else None

    def price_of(self, call: Call) -> Price | None:
        """The price of the model of ``call``, of several the first; None if unknown."""
        prices = self._dispatcher.ledger.prices
        model = self.model_of(call) if prices else None
        return None if model is None else prices.of(model.name)

    def any_answer(self, call: Call) -> bool:
        """Whether there may be answers to the question of ``call``."""
        if self._dispatcher.values_of(call):
            return True
        if call not in self._any:
            self._any[call] = bool(self.earlier(call, 1))
        return self._any[call]

    def earlier(self, call: Call, most: int) -> list[str]:
        """Stored answers to the question of ``call``, at most ``most``."""
        model = self.model_of(call)
        return (
            [] if model is None else model.earlier(self._dispatcher.task_to_send(call.task), most)
        )

    def stored_values(self, call: Call, values: Sequence[Values]) -> set[Values]:
        """The values among these to which the answer is known without a question."""
        met, answered = self._dispatcher.values_of(call), self._dispatcher.answers_of(call, values)
        found = {v for v in values if v in met or v in answered or not _present(v)}
        found.update(answers_of_people(call, values, self._dispatcher))
        model = None if self._dispatcher.targets_of(call) is not None else self.model_of(call)
        if model is not None:
            rest = [v for v in values if v not in found]
            found.update(model.known_answers(self._dispatcher.task_to_send(call.task), rest))
        return found


def _present(values: Values) -> bool:
    return any(text is not None and text.strip() for text in values)
