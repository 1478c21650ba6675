"""A call: one use of an ingredient in a query, without its columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import ReferenceType, ref

import pyarrow as pa

from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.models.registry.model_names import ModelNames
from blendfusion.options import OnError
from blendfusion.types import Task
from blendfusion.udfs.declare import struct_schema as schema
from blendfusion.udfs.declare.comparison import Comparing
from blendfusion.udfs.declare.pairing import Pairing

if TYPE_CHECKING:
    from blendfusion.udfs.declare.ingredient import Ingredient


VALUE, CONFIDENCE, ERROR = "value", "confidence", "error"
"""The fields of a kept result."""

Confidence: TypeAlias = "float | Literal['keep']"
"""The least probability of an answer, else it is withheld; ``keep``: it stands beside the answer.
"""


def kept_type(
    answers: pa.DataType, *, errors: bool = True, confidence: bool = False
) -> pa.DataType:
    """The type of results that keep their errors, or the probabilities of answers, or both."""
    fields = [(VALUE, answers)]
    fields += [(CONFIDENCE, pa.float64())] if confidence else []
    fields += [(ERROR, pa.string())] if errors else []
    return pa.struct(fields)


@dataclass(frozen=True)
class Call:
    """An ingredient with its literals bound: what is left are the value columns.

    Two calls are equal if they must give equal answers for equal values. ``name`` is the
    name of the function that stands for the call in a DataFusion plan; it is a digest of all
    the rest, so equal calls share it, in any session.
    """

    ingredient: Ingredient
    task: Task
    type: pa.DataType
    """Of its result: that of its answers, or a struct of one and what is kept beside it (see
    ``kept``)."""
    n_values: int
    on_error: OnError | None = None
    """None: as the session says."""
    ordered: bool = False
    """For an aggregate: the rows of a context come in an order that the query asked for."""
    pairing: Pairing | None = None
    """For a call that pairs the values of two columns: how."""
    comparing: Comparing | None = None
    """For a call that compares two values: how."""
    confidence: Confidence | None = None
    """What becomes of the probabilities of its answers; None: nothing."""
    targets: Targets | None = None
    """What a cascade promises of it; None: as the session says."""
    models: tuple[str, ...] = ()
    """The models that it names, in the order in which they are asked; (): those of the session."""

    @cached_property
    def name(self) -> str:
        digest = hashlib.blake2s(
            repr(
                (
                    self.ingredient.serial,
                    self.task,
                    str(self.type),
                    self.n_values,
                    self.on_error,
                    self.ordered,
                    *([] if self.pairing is None else [self.pairing]),
                    *([] if self.comparing is None else [self.comparing]),
                    *([] if self.confidence is None else [("confidence", self.confidence)]),
                    *([] if self.targets is None else [self.targets]),
                    *([("models", self.models)] if self.models else []),
                )
            ).encode(),
            digest_size=6,
        )
        return f"{self.ingredient.name}_{digest.hexdigest()}"

    @property
    def aggregate(self) -> bool:
        """The values are lists: the rows of a group, or the items of a row's list."""
        return self.ingredient.reads_rows

    @property
    def kept(self) -> bool:
        """The result is a struct: of the value and what went wrong, of which one is set, or of the
        value and its probability, or of all three."""
        return "keep" in (self.on_error, self.confidence)

    def promised(self, usual: Targets | None) -> Targets | None:
        """What a cascade promises of it, ``usual`` being what the session says; None where it has
        none: for it must be asked of many values, and one by one."""
        if self.aggregate or self.pairing is not None or self.comparing is not None:
            return None
        if self.task.images or self.ingredient.run is not None:
            return None
        if self.targets is None:
            if usual is None or len(self.models) == 1:
                return None
            return usual.of(self.task.constraint.kind)
        if self.targets.delta is None and usual is not None:
            return replace(self.targets, delta=usual.delta)
        return self.targets

    def asked_of(self, usual: Targets | None) -> ModelNames:
        """Who answers it, ``usual`` being what the session promises."""
        said = self.targets if self.targets is not None else usual
        return ModelNames(self.models, said if len(self.models) > 1 else None)

    @property
    def answer_type(self) -> pa.DataType:
        """The type of the answers."""
        return self.type.field(VALUE).type if self.kept else self.type

    @property
    def text(self) -> str:
        """The call as SQL, its values by their column names (``…`` for an expression)."""
        columns = self.task.columns if self.comparing is None else self.comparing.columns
        return self.written([name or "…" for name in columns])

    @property
    def options_query(self) -> str | None:
        """The subquery that gives the options of the call's answers, if one does."""
        constraint = self.task.constraint
        return (constraint.item or constraint).query

    def written(self, values: Sequence[str]) -> str:
        """The call as SQL, with these texts for its values."""
        ingredient, task = self.ingredient, self.task
        parts = [quoted(task.question) for _ in ingredient.leading]
        parts += values
        if self.pairing is not None:
            parts += [*self.pairing.written, *self._written_models]
            return f"{ingredient.name}({', '.join(parts)})"
        if self.comparing is not None:
            a, b = values
            parts = [a, quoted(self.comparing.operator), b]
        choice = task.constraint.item or task.constraint
        if choice.options and choice is not ingredient.returns:
            shown = f"[{', '.join(map(quoted, choice.options))}]"
            if choice.meanings:
                pairs = zip(choice.options, choice.meanings, strict=True)
                shown = ", ".join(f"{quoted(option)}: {quoted(said)}" for option, said in pairs)
                shown = f"{{{shown}}}"
            parts.append(shown if ingredient.trailing else f"options => {shown}")
        if self.options_query is not None:
            shown = f"({' '.join(self.options_query.split())})"
            parts.append(shown if ingredient.trailing else f"options => {shown}")
        if task.constraint.pattern is not None and not task.constraint.literals:
            parts.append(f"regex => {quoted(task.constraint.pattern)}")
        if task.constraint.fields:
            parts.append(quoted(schema.written(task.constraint.fields)))
        if task.constraint.scale is not None and ingredient.returns is not None:
            bounds = zip(
                ("low", "high"), task.constraint.scale, ingredient.returns.scale or (), strict=False
            )
            parts += [f"{name} => {bound}" for name, bound, usual in bounds if bound != usual]
        usual = ingredient.question if self.comparing is None else self.comparing.question
        if not ingredient.leading and task.question != usual:
            parts.append(f"question => {quoted(task.question)}")
        parts += _written_examples(task)
        if task.consistency > 1:
            parts.append(f"consistency => {task.consistency}")
        if self.confidence is not None:
            shown = quoted("keep") if self.confidence == "keep" else f"{self.confidence:g}"
            parts.append(f"confidence => {shown}")
        parts += self._written_models
        if self.targets is not None:
            said = {n: v for n, v in asdict(self.targets).items() if v is not None}
            parts += [f"{n} => {quoted(v) if n == 'proxy' else f'{v:g}'}" for n, v in said.items()]
        if self.on_error == "keep":
            parts.append("on_error => 'keep'")
        return f"{ingredient.name}({', '.join(parts)})"

    @property
    def _written_models(self) -> list[str]:
        names = [quoted(name) for name in self.models]
        if len(names) > 1:
            return [f"model => [{', '.join(names)}]"]
        return [f"model => {name}" for name in names]


def _written_examples(task: Task) -> list[str]:
    """The worked examples of a task, or the subquery that gives them."""
    if task.examples_query is not None:
        return [f"examples => ({' '.join(task.examples_query.split())})"]
    rows = [
        f"[{', '.join('NULL' if v is None else quoted(v) for v in (*example.values, example.answer))}]"
        for example in task.examples
    ]
    return [f"examples => [{', '.join(rows)}]"] if rows else []


class CallRegistry:
    """The calls in use, by name. A name is a digest, so an entry never changes.

    A call is held by its users: the functions of a session, its frames, an expression. Entries of
    calls that are gone are dropped as others come. No callback drops them: it could swallow a
    Ctrl-C.
    """

    def __init__(self) -> None:
        self._calls: dict[str, ReferenceType[Call]] = {}
        self._most = _FEW

    def __len__(self) -> int:
        return sum(call() is not None for call in list(self._calls.values()))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def get(self, name: str) -> Call | None:
        known = self._calls.get(name)
        return None if known is None else known()

    def add(self, call: Call) -> Call:
        """Make ``call`` known; returns the equal one that is known already, if there is one."""
        known = self.get(call.name)
        if known is not None:
            return known
        self._calls[call.name] = ref(call)
        if len(self._calls) > self._most:
            alive = {name: kept for name, kept in list(self._calls.items()) if kept() is not None}
            self._calls, self._most = alive, max(_FEW, 2 * len(alive))
        return call


_FEW = 256
CALLS = CallRegistry()

_NAME = re.compile(r"\b[A-Za-z_]\w*_[0-9a-f]{12}\b")


def remember(call: Call) -> Call:
    """Make ``call`` known by its name; returns the one known already, if equal."""
    return CALLS.add(call)


def calls_in(text: str) -> list[Call]:
    """The known calls whose names occur in ``text`` (of a plan, or an error), each once."""
    names = dict.fromkeys(_NAME.findall(text))
    return [call for call in map(CALLS.get, names) if call is not None]


def readable(text: str, written: Mapping[str, str] | None = None) -> str:
    """``text`` with the names of calls, and the arguments after them, as SQL.

    ``written`` says, by name, how the user wrote a call.
    """
    for call in calls_in(text):
        shown = (written or {}).get(call.name, call.text)
        start = 0
        while (at := text.find(call.name, start)) >= 0:
            end = after_call(text, at + len(call.name))
            text = text[:at] + shown + text[end:]
            start = at + len(shown)
    return text


def quoted(text: str) -> str:
    """``text`` as a SQL literal.

    >>> print(quoted("it's"))
    'it''s'
    """
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def after_call(text: str, start: int) -> int:
    """One past the bracket that closes the one at ``start``; ``start`` if there is none."""
    if start >= len(text) or text[start] != "(":
        return start
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    return start
