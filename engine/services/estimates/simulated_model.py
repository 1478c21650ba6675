"""Answers that nobody has given yet: cached ones, else like those given so far, else assumed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from heapq import nsmallest

import pyarrow as pa

from blendfusion.models.constraints.constraint import points
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.protocol.model import Values
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.models.scores.distribution import distribution_of
from blendfusion.models.scripted_model import ScriptedModel
from blendfusion.models.stores.memory import MemoryStore
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.services.estimates.loaded_models import KnownModels
from blendfusion.types import Answer, Constraint, Task
from blendfusion.udfs.ask.dispatcher import Dispatcher, Question
from blendfusion.udfs.ask.observer import NullObserver
from blendfusion.udfs.declare.call import Call

MOST_EARLIER_ANSWERS = 1000
"""Cached answers that are looked at to guess others of the same task."""
CHARACTERS_PER_TOKEN = 4
"""Characters per token of English text, as a rule of thumb."""
_KEPT_EXAMPLES = 64


def _place(values: Values) -> int:
    """The place of a tuple among possible examples, which are the same in any order of rows."""
    parts = (f"{len(v or '')}{(v or '')[:99]}" for v in values)
    return zlib.crc32("\0".join(parts).encode("utf-8", "replace"))


class Share:
    """Deals TRUE to a share of the distinct keys that it meets, and to each key the same always.

    Keys that come together are dealt in an order of their own, so that their order does not matter.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._dealt: dict[Hashable, bool] = {}

    def deal(self, keys: Iterable[Hashable]) -> list[bool]:
        keys = list(keys)
        new = dict.fromkeys(key for key in keys if key not in self._dealt)
        for key in sorted(new, key=digest):
            n = len(self._dealt)
            # As many as the rate says, rounded half up: one of one, one of two, two of three.
            self._dealt[key] = int((n + 1) * self._rate + 0.5) > int(n * self._rate + 0.5)
        return [self._dealt[key] for key in keys]


def digest(key: Hashable) -> int:
    """A number that looks random, the same in every process."""
    return zlib.crc32(repr(key).encode())


@dataclass(slots=True)
class Tally:
    """The expected requests of one call in one stage."""

    rows: int = 0
    values: int = 0
    cached: int = 0
    beside: int = 0
    """How many of those asked are answered with another question about the same value."""
    notes: int = 0
    """How many of those asked are notes on parts of a context that does not fit the window."""
    characters: int = 0
    """Characters of the values asked."""
    examples: list[Values] = field(default_factory=list)
    """Some of the values asked, to measure."""
    arguments: list[pa.Table] = field(default_factory=list)
    """The arguments of each chunk, if the rows are a sample."""


class SimulatedDispatcher(Dispatcher):
    """A dispatcher that asks no model: it uses the cached answer, or else a guess.

    A guessed yes/no answer is yes at the rate of the cached answers to the same task, by Laplace's
    rule of succession: one half without any. Other answers repeat a cached one; without any, labels
    are equally frequent, and each value gets a distinct text (the task is then in ``blind``). Equal
    values get equal guesses in any order.

    ``find``: returns the known properties of named models.
    """

    guesses_answers = True

    def __init__(
        self,
        find: Callable[[ModelNames], KnownModels],
        targets: Targets | None = None,
    ) -> None:
        super().__init__(lambda: self.model, NullObserver(), targets=targets)
        self._find = find
        self._known: dict[ModelNames, KnownModels] = {}
        self._guessed: dict[Question, dict[Values, Answer]] = {}
        self._earlier: dict[tuple[Task, ModelNames], list[str]] = {}
        self._tasks: dict[Question, set[Task]] = {}
        """The tasks that share the answers to a question."""
        self._shares: dict[Task, Share] = {}
        self._read: dict[Task, set[Values]] = {}
        """The values that were read for another question, which is asked beside it, by task."""
        self.tally = Tally()
        """The counts for the next values."""
        self.counted: Task | None = None
        """The task of the counted call; its other questions are notes. None: no notes."""
        self.guesses: set[Task] = set()
        """Tasks with some guessed answer."""
        self.assumed: set[Task] = set()
        """Tasks among them without any known answer."""
        self.blind: set[Task] = set()

    def found_model(self, call: Call) -> CachedModel:
        cache = self.known_of(call).cache
        return self._boundless if cache is None else cache

    def answers_of(self, call: Call, values: Sequence[Values]) -> Mapping[Values, Answer]:
        return self._guessed.get(self.question_of(call), {})

    def known_of(self, call: Call | None) -> KnownModels:
        """The known properties of the models that answer ``call``."""
        return self._known_by(self._names(call))

    def _known_by(self, names: ModelNames) -> KnownModels:
        if names not in self._known:
            self._known[names] = self._find(names)
        return self._known[names]

    def _reads_names(self, names: ModelNames) -> bool:
        return self._known_by(names).abilities.scores_options

    def model_of(self, call: Call | None) -> CachedModel:
        """A model for its window and its tokens only; one without bounds if the real one is not
        loaded."""
        return self.known_of(call).model or self._boundless

    @cached_property
    def _boundless(self) -> CachedModel:
        return CachedModel(ScriptedModel(lambda call: None, window=2**40), MemoryStore())

    def requests_per_value(self, call: Call | None) -> int:
        """The maximum number of models that receive a value: all models of a cascade, as only the
        run reveals its savings."""
        targets = self.targets_of(call)
        cascaded = targets is not None and targets.proxy is None
        return self.known_of(call).levels if cascaded and call is not None else 1

    def ask(
        self,
        task: Task,
        values: Sequence[Values],
        call: Call | None = None,
        *,
        sent: Task | None = None,
        stops: bool = True,
    ) -> list[Answer]:
        """One answer per tuple, in order; counts the tuples that no earlier call asked."""
        certain = self.certain(task)
        if certain is not None:
            return [certain] * len(values)
        sent = sent or self.task_to_send(task)
        question = self.question_of(call, sent)
        answers = self._guessed.setdefault(question, {})
        new = list(dict.fromkeys(v for v in values if v not in answers))
        cache = self.known_of(call).cache
        if new and cache is not None:
            answers.update(cache.known_answers(sent, new))
        missing = [v for v in new if v not in answers]
        tally = self.tally
        tally.cached += len(new) - len(missing)
        if missing:
            characters = sum(len(text) for v in missing for text in v if text)
            tally.values += len(missing) * self.requests_per_value(call)
            tally.beside += self._beside_another(call, sent, missing)
            usual = self.counted in (None, task, replace(task, images=False))
            tally.notes += 0 if usual else len(missing)
            tally.characters += characters
            tally.examples = nsmallest(_KEPT_EXAMPLES, (*tally.examples, *missing), _place)
            self.tokens += -(-characters // CHARACTERS_PER_TOKEN) + len(missing)
            self.guesses.add(task)
            earlier = self._earlier_of(sent, self._names(call), cache)
            if not earlier:
                self.assumed.add(task)
            guessed = self._guess(sent, missing, earlier, len(answers))
            made = {text: Answer(text, logprob=0.0) for text in set(guessed)}
            answers.update((v, made[text]) for v, text in zip(missing, guessed, strict=True))
        sharing = self._tasks.setdefault(question, set())
        sharing.add(task)
        self._share_kinds(task, sharing | {sent})
        return [answers[v] for v in values]

    def _beside_another(self, call: Call | None, sent: Task, missing: Sequence[Values]) -> int:
        """How many of ``missing`` were read for an earlier question already. The others are read
        now, for the open questions about them, too."""
        models = self.known_of(call)
        most = models.abilities.questions_at_once
        if most < 2 or models.cache is None:
            return 0
        read = self._read.get(sent, set())
        new = [values for values in missing if values not in read]
        others = self._beside(call, models.cache, new)
        for values in new:
            open_about = [other for other, left in others.items() if values in left]
            for other in open_about[: most - 1]:
                self._read.setdefault(other, set()).add(values)
        return len(missing) - len(new)

    def _share_kinds(self, task: Task, others: set[Task]) -> None:
        """Count ``task`` among the kinds of tasks with the same answers."""
        for kind in (self.guesses, self.assumed, self.blind):
            if not kind.isdisjoint(others):
                kind.add(task)

    def _earlier_of(self, sent: Task, names: ModelNames, cache: CachedModel | None) -> list[str]:
        """Cached answers to the task, at most a few."""
        if (sent, names) not in self._earlier:
            some = cache.earlier(sent, MOST_EARLIER_ANSWERS) if cache is not None else []
            self._earlier[sent, names] = some
        return self._earlier[sent, names]

    def _guess(self, task: Task, values: list[Values], earlier: list[str], start: int) -> list[str]:
        """Answers to ``values``, similar to the ``earlier`` ones; ``start``: the number of previous
        guesses."""
        constraint = task.constraint
        if constraint.kind == "boolean":
            if task not in self._shares:
                self._shares[task] = Share((earlier.count("true") + 1) / (len(earlier) + 2))
            return ["true" if yes else "false" for yes in self._shares[task].deal(values)]
        choices = earlier or constraint.options or points(constraint)
        if choices:
            dealt = [choices[digest(v) % len(choices)] for v in values]
            if not constraint.distribution or earlier:
                return dealt
            return [distribution_of({choice: 1}, constraint) or "{}" for choice in dealt]
        self.blind.add(task)
        return [_placeholder(constraint, start + i) for i in range(len(values))]


def _placeholder(constraint: Constraint, number: int) -> str:
    """A text with the type of an answer, distinct for each number."""
    kind = constraint.kind
    if constraint.distribution:
        return "{}"
    if kind == "date":
        return (date(2000, 1, 1) + timedelta(days=number)).isoformat()
    if kind == "timestamp":
        return (datetime(2000, 1, 1) + timedelta(hours=number)).isoformat()
    if kind == "choice" and constraint.options:
        return constraint.options[number % len(constraint.options)]
    if kind == "list":
        return json.dumps([_placeholder(constraint.item or Constraint(), number)])
    if kind == "struct":
        return json.dumps({f.name: _part(f.constraint, number) for f in constraint.fields})
    return str(number)


def _part(constraint: Constraint, number: int) -> object:
    """A placeholder for a field of a struct, as a JSON value."""
    if constraint.kind == "boolean":
        return number % 2 == 0
    text = _placeholder(constraint, number)
    bare = constraint.kind in ("integer", "number", "list", "struct")
    return json.loads(text) if bare else text
