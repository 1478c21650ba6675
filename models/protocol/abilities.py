"""Declares the optional abilities of a model: one record with defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blendfusion.errors import ModelFailed
from blendfusion.types import Task


def task_alone(task: Task) -> tuple[Task, ...]:
    """The task alone."""
    return (task,)


def _no_words(task: Task) -> str | None:
    return None


def _never(task: Task) -> bool:
    return False


def _no_search(task: Task) -> int:
    return 0


def _answers_all(task: Task) -> str | None:
    return None


def _no_check() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The optional abilities of a model. The defaults describe a model that declares none."""

    at_once: int = 1
    """The number of requests that take no longer than one. Work that may end at any answer goes on
    in steps of that many."""
    call_per_value: bool = False
    """Whether each value takes a call of its own, as for a server, instead of each batch."""
    sees_images: bool = False
    """Whether tasks with ``Task.images`` are possible."""
    hears_audio: bool = False
    """Whether recordings may stand among the values of tasks with ``Task.images``."""
    hears_speech: bool = False
    """Whether tasks with ``Task.audio`` are possible."""
    stops_early: bool = False
    """Whether answers may end where ``Constraint.decides`` is decided; they then have the finish
    ``decided``. Other models get tasks without ``decides``."""
    scores_options: bool = False
    """Whether answers from a closed set are chosen by scores, so that options are not listed."""
    follows_grammars: bool = False
    """Whether texts are written under ``Constraint.grammar``."""
    shots: bool = True
    """Whether its prompts have the built-in worked examples."""
    shares_prefix: bool = False
    """Whether the common beginning of a batch's prompts is computed once."""
    fingerprint_lasts: bool = False
    """Whether the fingerprint means the same in every process; only then files keep the answers."""
    loaded: bool = True
    """Whether ``info`` and ``count_tokens`` are cheap; False: they load the model."""
    asks_together: Callable[[Task], bool] = _never
    """Whether one request may hold a question beside others about the same value: see
    ``protocol.together``."""
    odds_together: bool = False
    """Whether such answers have probabilities."""
    questions_at_once: int = 1
    """How many questions about a value go in one request: more than one only if they are known not
    to influence one another."""
    name: str = ""
    """The name in ``info`` without loading the model; '': unknown."""
    fingerprint: str = ""
    """The fingerprint in ``info`` without loading the model; '': unknown."""
    weights: str = ""
    """The weights in use, for EXPLAIN; '': unknown."""
    parameters: int = 0
    """The number of weights; 0: unknown."""
    check: Callable[[], None] = _no_check
    """Runs once before a query sends values. Raises ModelFailed if the model cannot be reached."""
    model_tasks: Callable[[Task], tuple[Task, ...]] = task_alone
    """The tasks that the model runs for a task, whose scores it adds up. The function does not keep
    the model alive."""
    scored_by: Callable[[Task], str | None] = _no_words
    """The words by which the model scores the replies of a task, for EXPLAIN; None: their own."""
    takes_sample: Callable[[Task], bool] = _never
    """Whether the sample of a task places the threshold of its answers."""
    form_search: Callable[[Task], int] = _no_search
    """How many requests, beside those of values, may be needed to find the form in which a server
    takes the constraint of a task; 0 once it is known."""
    unanswerable: Callable[[Task], str | None] = _answers_all
    """Why the model cannot answer a task, in words behind its name; None: it can. In a chain, the
    next model gets such tasks."""

    def __post_init__(self) -> None:
        if self.at_once < 1:
            raise ModelFailed(f"a model answers at least 1 request at once, not {self.at_once}")


def abilities_of(model: object) -> Abilities:
    """The abilities that a model declares, or the defaults. Raises ModelFailed for another type."""
    found = getattr(model, "abilities", None)
    if found is None:
        return Abilities()
    if not isinstance(found, Abilities):
        raise ModelFailed(
            f"the model's `abilities` are a {type(found).__name__}, not an Abilities",
            hint="Return Abilities(…) of blendfusion.models.protocol.abilities.",
        )
    return found
