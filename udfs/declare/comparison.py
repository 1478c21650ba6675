"""The options of a call of llm_compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from blendfusion.errors import ArgumentError
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.parameter import Parameter

SIDES = ("first value", "second value")
"""The names of the values in the prompt, whatever their columns are called: a pair is one question,
whichever way round it stands."""

_SAME = "Do the first value and the second value mean the same?"
_LESS = "Is the first value less than the second value: smaller, earlier or lower?"

OPERATORS: Mapping[str, str] = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
"""The ways to write an operator, with its name."""


def _operator(given: Literal, name: str) -> str:
    if not isinstance(given, str) or given.strip() not in OPERATORS:
        raise ArgumentError(f"{given!r} is no {name}", hint=f"Write one of {'  '.join(OPERATORS)}.")
    return OPERATORS[given.strip()]


OPERATOR = Parameter("operator", "One of ``=  <>  <  <=  >  >=``.", _operator, example="'<'")


@dataclass(frozen=True, slots=True)
class Comparing:
    """The comparison of a call's two values."""

    operator: str
    """One of ``=  <>  <  <=  >  >=``."""
    columns: tuple[str, ...]
    """The names of the values, '' for an expression."""

    @property
    def question(self) -> str:
        """All operators are one of two questions, of a pair or of the pair turned round, or its
        opposite."""
        return _SAME if self.operator in ("=", "<>") else _LESS

    @property
    def is_negated(self) -> bool:
        """It holds where the answer to the question is no."""
        return self.operator in ("<>", "<=", ">=")

    def canonical(self, a: str, b: str) -> tuple[str, str]:
        """The pair as it is asked about: ``a > b`` is ``b < a``, and ``a = b`` is ``b = a``.

        >>> Comparing(">", ("", "")).canonical("a", "b"), Comparing("=", ("", "")).canonical("b", "a")
        (('b', 'a'), ('a', 'b'))
        """
        turned = a > b if self.operator in ("=", "<>") else self.operator in (">", "<=")
        return (b, a) if turned else (a, b)

    def holds(self, order: int) -> bool:
        """Whether it holds of values of which the first is less (-1), equal (0) or greater (1)."""
        return {
            "=": order == 0,
            "<>": order != 0,
            "<": order < 0,
            "<=": order <= 0,
            ">": order > 0,
            ">=": order >= 0,
        }[self.operator]
