"""Warnings about conditions that hold for no answer: a label that does not exist, a score beyond
its scale."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from blendfusion.language.query_text.comparisons import unknown_option
from blendfusion.planner.explain.expression_text import expression_text
from blendfusion.planner.ir.boolean_atoms import CONNECTIVES
from blendfusion.planner.ir.builders import literal
from blendfusion.planner.ir.nodes import Ask, Expr, Node, asks, fields, walk

if TYPE_CHECKING:
    from blendfusion.planner.rules.constant_tests import Outcomes

_NAMING = ("equal", "singular_or_list", "get_field", "map_extract")
"""Functions whose operands are an answer, and options of it."""


def noting(outcomes: Outcomes, note: Callable[[str], None]) -> Outcomes:
    """``outcomes``, with a warning to ``note`` about each condition that no answer makes true."""

    def note_outcomes(expr: Expr) -> frozenset[bool | None] | None:
        found = outcomes(expr)
        if found is not None and True not in found:
            for problem in _problems(expr):
                note(problem)
        return found

    return note_outcomes


def _problems(expr: Expr) -> Iterator[str]:
    """The texts that are none of the options that they are compared with; if there are none, a
    comparison itself."""
    unknown = [
        unknown_option(ask.call, text)
        for ask, text in _compared_texts(expr)
        if text not in ask.call.task.constraint.options
    ]
    yield from unknown
    if not unknown and isinstance(expr, Node) and expr.name not in CONNECTIVES:
        kinds = dict.fromkeys(map(_kind, asks(expr)))
        yield f"{_text(expr)} is true for no answer: {'; '.join(kinds)}."


def _kind(ask: Ask) -> str:
    """The values that a call can have, in words."""
    if ask.call.gives_probabilities:
        return "a number from 0 to 1"
    return str(ask.call.task.in_full.constraint)


def _compared_texts(expr: Expr) -> Iterator[tuple[Ask, str]]:
    """The answers from closed sets, with the texts that they are to equal, and the probabilities of
    all options, with those whose probability is taken."""
    for part in walk(expr):
        if isinstance(part, Node) and part.name in _NAMING:
            of = [e for e in part.children if isinstance(e, Ask) and e.call.task.constraint.options]
            texts = [text for e in part.children if isinstance(text := literal(e), str)]
            yield from ((ask, text) for ask in of[:1] for text in texts)


def _text(expr: Expr) -> str:
    names = ["…"] * (max(fields(expr), default=-1) + 1)
    for ask in asks(expr):
        for arg, name in zip(ask.args, ask.call.task.columns, strict=False):
            for place in fields(arg) if name else ():
                names[place] = name
    return expression_text(expr, names)
