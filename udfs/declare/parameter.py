"""The declaration of a literal parameter: from it come checks, signatures and documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from blendfusion.udfs.declare.arguments import Literal

T_co = TypeVar("T_co", covariant=True)


def _itself(read: object) -> object:
    return read


@dataclass(frozen=True, eq=False)
class Parameter(Generic[T_co]):
    """A parameter of a function whose argument is a literal.

    ``read`` checks an argument and gives its normal form; it gets the argument and the name under
    which it was given, and raises ArgumentError (without the name of the function).
    """

    name: str
    doc: str
    """One sentence or several, in Markdown, for docstrings and docs/functions.md."""
    read: Callable[[Literal, str], T_co]
    annotation: str = "str"
    """The type of the argument in Python, without None."""
    example: str = ""
    """Calls in SQL, for docs/functions.md."""
    default: Literal = None
    alias: str = ""
    """A second name."""
    subquery: bool = False
    """Whether a subquery may give the argument."""
    from_python: Callable[[Any], Literal] | None = None
    """Makes the literal of SQL of what Python also accepts."""
    show: Callable[[Any], object] = _itself
    """The checked argument as a literal that gives it again."""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, self.alias) if self.alias else (self.name,)


AnyParameter: TypeAlias = "Parameter[Any]"
