"""Monotone maps from a model's probabilities of a yes to the shares of yes that labels show."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2s
from math import log
from typing import TYPE_CHECKING

from blendfusion.errors import QueryError, close_matches
from blendfusion.types import Answer, Task
from blendfusion.udfs.ask.reviews import PEOPLE

if TYPE_CHECKING:
    from blendfusion.models.wrappers.cache import CachedModel
    from blendfusion.udfs.ask.requests import Requests
    from blendfusion.udfs.declare.call import Call


@dataclass(frozen=True)
class Calibration:
    """The shares of yes behind the probabilities of one model, for one wording of a yes/no
    question.

    ``points`` are pairs of a stated probability of yes and the share of yes among labelled values,
    both ascending; between two points the map is a straight line. ``wording`` and ``fingerprint``
    are digests of the question and of the model. ``values`` is the number of different labelled
    values, ``measured`` has figures for the reader.
    """

    name: str
    question: str
    model: str
    points: tuple[tuple[float, float], ...]
    version: int = 1
    wording: str = ""
    fingerprint: str = ""
    values: int = 0
    measured: Mapping[str, float] = field(default_factory=dict, compare=False)

    def share(self, stated: float) -> float:
        """The share of yes behind a stated probability of yes.

        >>> Calibration("late", "Is it late?", "jev", ((0.5, 0.25), (0.75, 0.75))).share(0.625)
        0.5
        """
        after = bisect_right(self.points, stated, key=lambda point: point[0])
        if after in (0, len(self.points)):
            return self.points[min(after, len(self.points) - 1)][1]
        (x0, y0), (x1, y1) = self.points[after - 1 : after + 1]
        return y0 + (y1 - y0) * (stated - x0) / (x1 - x0)

    def answer(self, answer: Answer) -> Answer:
        """An answer of yes or no with the probability that labels give it: the likelier of the
        two."""
        if answer.text is None or answer.probability is None:
            return answer
        yes = self.share(answer.probability if answer.text == "true" else 1 - answer.probability)
        text = "true" if yes >= 0.5 else "false"
        return replace(answer, text=text, logprob=log(max(yes, 1 - yes)))


class Calibrations:
    """The maps of a session by their names: of each the versions, of a version one a model."""

    def __init__(self) -> None:
        self._held: dict[str, list[Calibration]] = {}

    def __iter__(self) -> Iterator[Calibration]:
        return (one for versions in self._held.values() for one in versions)

    def keep(self, made: Calibration) -> None:
        """Keep a map, in the place of one for the same version and model."""
        same = (made.version, made.model)
        others = [one for one in self._held.get(made.name, ()) if (one.version, one.model) != same]
        self._held[made.name] = [*others, made]

    def latest(self, name: str) -> int:
        """The number of the latest version; 0 where there is none."""
        return max((one.version for one in self._held.get(name, ())), default=0)

    def of_name(self, name: str) -> list[Calibration]:
        """The maps of ``name``, the latest version, or of ``name@2``. Raises QueryError."""
        title, _, number = name.partition("@")
        version = int(number) if number.isdecimal() else self.latest(title)
        found = [one for one in self._held.get(title, ()) if one.version == version]
        if not found or (number and not number.isdecimal()):
            known = [f"{one.name}@{one.version}" for one in self] + [*self._held]
            hint = close_matches(name, known) or (
                "session.calibrate(call, labels, name=…) makes one, "
                "session.register_calibration(file) reads one."
            )
            raise QueryError(f"no calibration is called '{name}'", hint=hint)
        return found


def wording_of(task: Task) -> str:
    """A digest of all that a question says beside its values."""
    parts = (task.question, task.form, task.examples, task.examples_query, task.sample)
    more = (task.sample_query, task.consistency, task.reasoning, len(task.columns))
    return blake2s(repr((parts, more)).encode(), digest_size=8).hexdigest()


def fingerprint_of(model: CachedModel) -> str:
    """A digest of a model and its settings."""
    return blake2s(model.fingerprint.encode(), digest_size=8).hexdigest()


def calibrate_answers(
    call: Call, answers: Sequence[Answer], dispatcher: Requests
) -> Sequence[Answer]:
    """The answers with the probabilities of the map that ``call`` names. Raises QueryError for a
    map of another wording, and where it has none of the model that answered."""
    held = dispatcher.kept.of(Calibrations).of_name(call.calibrated)
    if all(one.wording != wording_of(call.task) for one in held):
        raise QueryError(
            f"{call.text}: the calibration '{call.calibrated}' is of another question, "
            f"'{held[0].question}'",
            hint="Thresholds and probabilities belong to a wording: calibrate this one under "
            "another name.",
        )
    if dispatcher.guesses_answers:
        return answers
    of_model = {one.model: one for one in held}
    levels = {level.name: level for level in dispatcher.found_model(call).levels}
    first = next(iter(levels))
    maps = {
        name: _map_of(call, name or first, of_model, levels)
        for name in {answer.model for answer in answers if _is_of_model(answer)}
    }
    return [maps[a.model].answer(a) if _is_of_model(a) else a for a in answers]


def _is_of_model(answer: Answer) -> bool:
    return answer.text is not None and answer.model != PEOPLE


def _map_of(
    call: Call,
    name: str,
    held: Mapping[str, Calibration],
    levels: Mapping[str, CachedModel],
) -> Calibration:
    found = held.get(name)
    if found is None:
        raise QueryError(
            f"{call.text}: the calibration '{call.calibrated}' is of {', '.join(held)}, and {name} "
            "answers",
            hint=f"session.calibrate(…, name={call.calibrated!r}) with model => '{name}' adds it.",
        )
    if name in levels and found.fingerprint != fingerprint_of(levels[name]):
        raise QueryError(
            f"{call.text}: {name} is not what it was when '{call.calibrated}' was measured: "
            "its version, its weights or its settings are others",
            hint="session.calibrate(…) measures it again, as the next version.",
        )
    return found
