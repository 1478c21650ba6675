"""The calls that a grammar offers, from the declarations of the functions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from blendfusion.services.ask.grammar.terminals import LABEL, MAYBE, QUESTION, in_cases
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import GroupQuestion, RowQuestion
from blendfusion.udfs.declare.options import QUESTION as QUESTION_PARAMETER
from blendfusion.udfs.declare.parameter import AnyParameter

Result = Literal["boolean", "number", "text", "date", "other"]

_COMMA = f"{MAYBE},{MAYBE}"
_LABELS = rf"\[{LABEL}({_COMMA}{LABEL}){{1,5}}\]"
_ARGUMENTS = {
    "question": QUESTION,
    "labels": _LABELS,
    "consistency": "[35]",
    "on_error": "'(null|raise)'",
    "schema": r"'[a-z]{2,20} (TEXT|INT|DATE)'",
}
"""The literals of parameters that a question in words may need, as regular expressions. Models,
targets and examples are the user's to choose."""
_RESULTS: dict[str, Result] = {
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "score": "number",
    "date": "date",
    "text": "text",
}


@dataclass(frozen=True, slots=True)
class Call:
    """A function of a text column: the text before the column and behind it, as regular
    expressions."""

    before: str
    after: str
    result: Result
    aggregate: bool = False


def calls(functions: Iterable[Ingredient]) -> list[Call]:
    """The functions that take one text column and literals that ``_ARGUMENTS`` has; those with
    equal options and results are one call with several names."""
    found: dict[tuple[str, Result, bool], list[str]] = {}
    for function in functions:
        written = _write(function)
        if written is not None:
            before, after = written
            key = after, _result(function), isinstance(function.kind, GroupQuestion)
            found.setdefault(key, []).append(before)
    return [Call(f"({'|'.join(names)})", *key) for key, names in found.items()]


def _write(function: Ingredient) -> tuple[str, str] | None:
    """The text before the column and that behind it; None if the grammar cannot write the call."""
    kind = function.kind
    if type(kind) not in (RowQuestion, GroupQuestion) or kind.images:
        return None
    required = (*function.leading, *function.trailing)
    if len(function.value_names) > 1 or function.between:
        return None
    if any(parameter.name not in _ARGUMENTS for parameter in required):
        return None
    before = "".join(f"{_literal(p)}{_COMMA}" for p in function.leading)
    after = "".join(f"{_COMMA}{_literal(p)}" for p in function.trailing)
    options = [p for p in function.options if p.name in _ARGUMENTS and p.name not in _TYPED]
    for option in options:
        after += f"({_COMMA}{option.name}{MAYBE}=>{MAYBE}{_literal(option)})?"
    return rf"{in_cases(function.name)}\({MAYBE}{before}", rf"{after}{MAYBE}\)"


_TYPED = (QUESTION_PARAMETER.name,)
"""Options that change nothing but the wording."""


def _literal(parameter: AnyParameter) -> str:
    return _ARGUMENTS[parameter.name]


def _result(function: Ingredient) -> Result:
    if any(parameter.name == "labels" for parameter in function.trailing):
        return "text"
    if function.probability:
        return "number"
    if function.returns is None:
        return "other" if function.has_fields else "text"
    return _RESULTS.get(function.returns.kind, "other")
