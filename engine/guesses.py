"""Answers that nobody has given yet: cached ones, else like those given so far, else assumed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property

import pyarrow as pa

from blendfusion.models.cached import CachedModel
from blendfusion.models.certified import Targets
from blendfusion.models.constraint import points
from blendfusion.models.model import Values
from blendfusion.models.scripted import ScriptedModel
from blendfusion.models.store import MemoryStore
from blendfusion.types import Answer, Constraint, Task
from blendfusion.udfs.asker import Asker, NullObserver
from blendfusion.udfs.call import Call

MOST_EARLIER_ANSWERS = 1000
"""Cached answers that are looked at to guess others of the same task."""
CHARACTERS_PER_TOKEN = 4
"""Of English text, as a rule of thumb."""
_KEPT_EXAMPLES = 64


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
    """What one call of one stage would be asked."""

    rows: int = 0
    asked: int = 0
    cached: int = 0
    notes: int = 0
    """How many of those asked are notes on parts of a context that does not fit the window."""
    characters: int = 0
    """Of the values asked."""
    examples: list[Values] = field(default_factory=list)
    """Some of the values asked, to be measured."""
    arguments: list[pa.Table] = field(default_factory=list)
    """Where the rows are a sample: the arguments of each chunk."""


class Guesser(Asker):
    """An asker that asks nobody: a cached answer where there is one, else a guess.

    A yes/no answer is true at the rate of the cached answers to the same task, by Laplace's rule of
    succession: half of them without any. Another is one of the cached answers; without any, a
    label of a closed set, all alike, or a text of its own for every value (the task is then in
    ``blind``). The same values get the same guess, whatever their order.

    ``cache``: what holds answers; ``model``: the same, if looking at its window loads nothing.
    ``asks_small``: the small model of a cascade is asked, too.
    """

    guesses_answers = True

    def __init__(
        self,
        cache: CachedModel | None,
        model: CachedModel | None,
        targets: Targets | None = None,
        *,
        asks_small: bool = True,
    ) -> None:
        super().__init__(lambda: self.model, NullObserver(), targets=targets)
        self._cache = cache
        self._real = model
        self.asks_small = asks_small
        self._guessed: dict[Task, dict[Values, Answer]] = {}
        self._earlier: dict[Task, list[str]] = {}
        self._shares: dict[Task, Share] = {}
        self.tally = Tally()
        """Where the next values are counted."""
        self.counted: Task | None = None
        """The task of the call that is counted there; what else it asks are notes. None: no notes."""
        self.guesses: set[Task] = set()
        """Tasks of which some answer was guessed."""
        self.assumed: set[Task] = set()
        """Those of them of which no answer is known."""
        self.blind: set[Task] = set()

    @cached_property
    def model(self) -> CachedModel:
        """Only for its window and its tokens; a boundless one where the real one is not loaded."""
        boundless = ScriptedModel(lambda call: None, window=2**40)
        return self._real or CachedModel(boundless, MemoryStore())

    def ask(
        self,
        task: Task,
        values: Sequence[Values],
        call: Call | None = None,
        *,
        put: Task | None = None,
    ) -> list[Answer]:
        """One answer a tuple, in order; counts the tuples that no call before had."""
        certain = self.certain(task)
        if certain is not None:
            return [certain] * len(values)
        put = put or self._settled.get(task, task)
        answers = self._guessed.setdefault(put, {})
        new = list(dict.fromkeys(v for v in values if v not in answers))
        if new and self._cache is not None:
            answers.update(self._cache.known(put, new))
        missing = [v for v in new if v not in answers]
        tally = self.tally
        tally.cached += len(new) - len(missing)
        if missing:
            characters = sum(len(text) for v in missing for text in v if text)
            # Of a cascade's two models each is asked at most: what it saves only its run can tell.
            targets = self.targets_of(call)
            cascaded = self.asks_small and targets is not None and targets.proxy is None
            tally.asked += len(missing) * (2 if cascaded else 1)
            tally.notes += len(missing) if self.counted not in (None, task) else 0
            tally.characters += characters
            tally.examples += missing[: _KEPT_EXAMPLES - len(tally.examples)]
            self.tokens += -(-characters // CHARACTERS_PER_TOKEN) + len(missing)
            self.guesses.add(task)
            if not self.earlier(put):
                self.assumed.add(task)
            guessed = self._guess(put, missing)
            made = {text: Answer(text, logprob=0.0) for text in set(guessed)}
            answers.update((v, made[text]) for v, text in zip(missing, guessed, strict=True))
        return [answers[v] for v in values]

    def earlier(self, task: Task) -> list[str]:
        """Cached answers to ``task``, some where there are many."""
        if task not in self._earlier:
            cache = self._cache
            some = cache.earlier(task, MOST_EARLIER_ANSWERS) if cache is not None else []
            self._earlier[task] = some
        return self._earlier[task]

    def _guess(self, task: Task, values: list[Values]) -> list[str]:
        earlier, constraint = self.earlier(task), task.constraint
        if constraint.kind == "boolean":
            if task not in self._shares:
                self._shares[task] = Share((earlier.count("true") + 1) / (len(earlier) + 2))
            return ["true" if yes else "false" for yes in self._shares[task].deal(values)]
        choices = earlier or constraint.options or points(constraint)
        if choices:
            return [choices[digest(v) % len(choices)] for v in values]
        self.blind.add(task)
        start = len(self._guessed[task])
        return [_placeholder(constraint, start + i) for i in range(len(values))]


def _placeholder(constraint: Constraint, number: int) -> str:
    """A text that has the type of an answer, another one for each number."""
    kind = constraint.kind
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
    """The same for a field of a struct, as JSON has it."""
    if constraint.kind == "boolean":
        return number % 2 == 0
    text = _placeholder(constraint, number)
    bare = constraint.kind in ("integer", "number", "list", "struct")
    return json.loads(text) if bare else text
