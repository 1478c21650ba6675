"""The model object that the body of a user-defined ingredient receives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from blendfusion.errors import ArgumentError, ModelNotFound, close_matches
from blendfusion.models.constraints.regex import check as check_pattern
from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.protocol.model import Values
from blendfusion.options import OnError
from blendfusion.types import Answer, Constraint, ModelInfo, Task
from blendfusion.udfs.ask.outcomes import arrow, outcomes
from blendfusion.udfs.declare.call import Call, kept_type
from blendfusion.udfs.declare.returns import RETURNS, arrow_type, constraint_named

if TYPE_CHECKING:
    from blendfusion.udfs.ask.dispatcher import Dispatcher

T = TypeVar("T")


class UserModel:
    """The model of a call, the session's or one that it names: asks one question of arrays,
    batched, cached, and traced."""

    def __init__(self, dispatcher: Dispatcher, call: Call) -> None:
        self._dispatcher = dispatcher
        self._call = call
        self.repeats = True
        """Whether a run on the same rows would give the same: no question failed, and nothing but
        the model was used."""

    @property
    def info(self) -> ModelInfo:
        return self._dispatcher.info_of(self._call)

    @property
    def embedder(self) -> Embedder | None:
        """The session's embedder; None if it has none."""
        self.repeats = False
        try:
            return self._dispatcher.embedder_for(self._call)
        except ModelNotFound:
            return None

    def store(self, kind: type[T]) -> T:
        """The store of this kind that the session keeps."""
        self.repeats = False
        return self._dispatcher.kept.of(kind)

    @property
    def guesses(self) -> bool:
        """Whether answers are the guesses of an estimate."""
        return self._dispatcher.guesses_answers

    def ask(
        self,
        question: str,
        *values: pa.Array,
        returns: str = "text",
        options: Sequence[str] | None = None,
        meanings: Sequence[str] = (),
        regex: str | None = None,
        on_error: OnError | None = None,
    ) -> pa.Array:
        """One answer a row, as an Arrow array of the type that ``returns`` names.

        ``values`` are text arrays of one length (others are cast to text). A row whose values
        are all NULL or blank gives NULL without a call. ``options`` is a closed set of answers, or
        of the items of a list, ``meanings`` the meaning of each, ``regex`` a pattern for the whole
        answer. A value without a valid answer is NULL or raises AnswerError, as the call of the
        function says; ``on_error`` comes before it, and may be "keep": then the array holds structs
        of ``value`` and ``error``.
        """
        declared = constraint_named(returns)
        if options is not None:
            constraint = Constraint("choice", tuple(options), tuple(meanings))
            if declared is not None and declared.kind == "list":
                constraint = replace(declared, item=constraint)
        elif regex is not None:
            check_pattern(regex)
            constraint = Constraint("regex", pattern=regex)
        elif declared is not None:
            constraint = declared
        else:
            raise ArgumentError(
                f"returns={returns!r} is not a type", hint=close_matches(returns, RETURNS)
            )
        columns = [v.cast(pa.string()).to_pylist() for v in values]
        rows: list[tuple[str | None, ...]] = list(zip(*columns, strict=True))
        present = [r for r in rows if any(v is not None and v.strip() for v in r)]
        to = arrow_type(constraint)
        task = self._task(question, constraint, tuple("" for _ in values))
        answers = self._dispatcher.ask(task, present, self._call, stops=False)
        self.repeats = self.repeats and all(answer.error is None for answer in answers)
        found = outcomes(
            self._call, answers, present, self._dispatcher, task=task, to=to, on_error=on_error
        )
        results = dict(zip(present, found, strict=True))
        return arrow([results.get(r) for r in rows], kept_type(to) if on_error == "keep" else to)

    def likelihoods(
        self, question: str, rows: Sequence[Values], options: Sequence[str], names: Sequence[str]
    ) -> list[float | None]:
        """The probability of the first of two ``options`` as the answer about each row: 0 or 1 from
        a model that gives no probabilities; None without a valid answer. ``names``: the names of
        the values."""
        first, _ = options
        task = self._task(question, Constraint("choice", options=tuple(options)), tuple(names))
        answers = self._dispatcher.ask(task, rows, self._call, stops=False)
        outcomes(self._call, answers, rows, self._dispatcher, task=task, to=pa.string())
        return [None if a.text is None else _likelihood(a, first=a.text == first) for a in answers]

    def choices(
        self,
        question: str,
        texts: Sequence[str],
        options: Sequence[str],
        meanings: Sequence[str] = (),
    ) -> list[tuple[str, float] | None]:
        """The chosen option for each text, with its probability, which is 1 if the model gives
        none; None for a text without a valid answer."""
        constraint = Constraint("choice", tuple(options), tuple(meanings))
        task = self._task(question, constraint, ("",))
        rows = [(text,) for text in texts]
        answers = self._dispatcher.ask(task, rows, self._call, stops=False)
        self.repeats = self.repeats and all(answer.error is None for answer in answers)
        outcomes(self._call, answers, rows, self._dispatcher, task=task, to=pa.string())
        return [None if a.text is None else (a.text, _likelihood(a, first=True)) for a in answers]

    def scores(self, question: str, texts: Sequence[str]) -> list[float | None]:
        """The degree to which ``question`` holds for each text, from 0 to 10."""
        task = self._task(question, Constraint("score", scale=(0, 10)), ("",))
        rows = [(text,) for text in texts]
        answers = self._dispatcher.ask(task, rows, self._call, stops=False)
        found = outcomes(self._call, answers, rows, self._dispatcher, task=task, to=pa.float64())
        degrees: list[float | None] = pa.array(found, pa.float64()).to_pylist()
        return degrees

    def _task(self, question: str, constraint: Constraint, names: tuple[str, ...]) -> Task:
        return Task(self._call.ingredient.name, question, constraint, names)


def _likelihood(answer: Answer, *, first: bool) -> float:
    known = answer.probability
    probable = 1.0 if known is None else known
    return probable if first else 1 - probable
