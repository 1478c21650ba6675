"""The declaration of a function that asks a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from blendfusion.types import Constraint, TaskForm
from blendfusion.udfs.declare.kinds import Kind, RowQuestion
from blendfusion.udfs.declare.options import QUESTION
from blendfusion.udfs.declare.parameter import AnyParameter

Answers: TypeAlias = "Callable[[Mapping[str, Any]], Constraint]"
"""The constraint that the checked literals of a call set, by name. Raises ArgumentError."""


@dataclass(frozen=True, eq=False)
class Ingredient:
    """A function that asks a model: its parameters, its kind, and the type of its answers.

    Two are equal if they have the same name and version. Binding, EXPLAIN, the signature and
    docstring in Python, and the tables of docs/functions.md are made
    from this declaration.
    """

    name: str
    summary: str
    """The purpose of a call, in a few words."""
    example: str = ""
    """A query with a call, over the tables of examples/, or ``photos`` and ``calls``."""
    kind: Kind = field(default_factory=RowQuestion)
    leading: tuple[AnyParameter, ...] = (QUESTION,)
    """The parameters before the value columns."""
    values: str | tuple[str, ...] = "values"
    """The names of the value columns, or one name for any number of them, at least one."""
    beside: bool = False
    """Whether further value columns may follow the last one, for values that are read together."""
    between: tuple[AnyParameter, ...] = ()
    """The parameters between the first value column and the second."""
    trailing: tuple[AnyParameter, ...] = ()
    """The parameters behind the value columns."""
    options: tuple[AnyParameter, ...] = ()
    """The parameters that a call gives by name only. EXPLAIN shows them in this order."""
    question: str = ""
    """The default question of a function without a leading one."""
    questions: Callable[[Mapping[str, Any]], str] | None = None
    """Makes the question from the literals of a call; None: ``question``, and the parameters."""
    returns: Constraint | None = None
    """The type of answers; None: the type that the call's place requires, else text."""
    answers: Answers | None = None
    """Sets the constraint from the literals of a call; None: ``returns``, and the shared options.
    """
    reads: bool = False
    """Whether numbers and dates of its answers are copied out of the text, rather than counted or
    judged: those that it does not state are NULL."""
    probability: bool = False
    """Whether the results are the probabilities of a yes, rather than the answers."""
    form: TaskForm = "question"
    doc: str = ""
    """The first paragraphs of the docstring."""
    result: str = ""
    """The SQL type of results, in words, for docs/functions.md."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ingredient) and other._identity == self._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[str, int]:
        return self.name, self.kind.version

    @property
    def parameters(self) -> tuple[AnyParameter, ...]:
        return (*self.leading, *self.between, *self.trailing, *self.options)

    def parameter(self, name: str) -> AnyParameter | None:
        """The parameter that ``name`` names."""
        return next((p for p in self.parameters if name in p.names), None)

    @property
    def has_fields(self) -> bool:
        """Whether results are structs of fields that a call names."""
        return self.answers is not None and self.returns is None

    @property
    def value_names(self) -> tuple[str, ...]:
        return (self.values,) if isinstance(self.values, str) else self.values

    @property
    def signature(self) -> str:
        """A call in SQL, with the names of its arguments."""
        names = list(self.value_names)
        if self.beside or isinstance(self.values, str):
            names[-1] += "…"
        leading, trailing = ([p.name for p in side] for side in (self.leading, self.trailing))
        names[1:1] = [p.example or p.name for p in self.between]
        return f"{self.name}({', '.join((*leading, *names, *trailing))})"
