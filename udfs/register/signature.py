"""The Python signature and docstring of a function, made from its declaration."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import UserBody
from blendfusion.udfs.declare.options import ACCURACY
from blendfusion.udfs.declare.parameter import AnyParameter

_WIDTH = 100
_GROUP_ARGUMENTS = (
    ("order_by", "ColumnLike", "The column by which the rows of a group are sorted."),
    ("where", "Expr", "The condition of the rows that count, as in a FILTER clause."),
)
_TARGETS = ("targets", "Targets", "The targets of a cascade in one object, ``bf.Targets(…)``.")


def python_arguments(ingredient: Ingredient) -> tuple[tuple[str, str, str], ...]:
    """Name, type and documentation of the arguments that only Python has."""
    own = (_TARGETS,) if ACCURACY in ingredient.options else ()
    grouped = _GROUP_ARGUMENTS if ingredient.kind.aggregate else ()
    return (*own, *grouped)


def signature(ingredient: Ingredient) -> inspect.Signature:
    """The signature of ``bf.<name>``: values are columns, options are keyword-only."""
    kinds = inspect.Parameter
    column = "ColumnLike"
    found = [_required_parameter(p) for p in ingredient.leading]
    names = ingredient.value_names
    if isinstance(ingredient.values, str):
        found.append(kinds(names[0], kinds.VAR_POSITIONAL, annotation=column))
    else:
        one = f"{column} | Sequence[{column}]" if ingredient.beside else column
        columns = [kinds(n, kinds.POSITIONAL_OR_KEYWORD, annotation=one) for n in names]
        columns[1:1] = [_required_parameter(p) for p in ingredient.between]
        found += columns
    behind = kinds.KEYWORD_ONLY if isinstance(ingredient.values, str) else None
    found += [_required_parameter(p, behind) for p in ingredient.trailing]
    optional = [(p.name, p.annotation, p.default) for p in ingredient.options]
    optional += [(name, kind, None) for name, kind, _ in python_arguments(ingredient)]
    for name, annotation, default in optional:
        full = f"{annotation} | None" if default is None else annotation
        found.append(kinds(name, kinds.KEYWORD_ONLY, default=default, annotation=full))
    return inspect.Signature(found, return_annotation="Expr")


def _required_parameter(
    parameter: AnyParameter, kind: inspect._ParameterKind | None = None
) -> inspect.Parameter:
    return inspect.Parameter(
        parameter.name,
        kind or inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if parameter.default is None else parameter.default,
        annotation=parameter.annotation,
    )


def docstring(ingredient: Ingredient) -> str:
    """The docstring of ``bf.<name>``: the function, its values, then its parameters."""
    return "\n\n".join(_paragraphs(ingredient))


def _paragraphs(ingredient: Ingredient) -> Iterator[str]:
    yield ingredient.doc or ingredient.summary
    if ingredient.kind.doc:
        yield ingredient.kind.doc
    documented = [(p.name, p.doc) for p in ingredient.parameters]
    documented += [(name, doc) for name, _, doc in python_arguments(ingredient)]
    if documented and not (isinstance(ingredient.kind, UserBody) and not ingredient.doc):
        yield "\n".join(
            textwrap.fill(
                f"- ``{name}``: {' '.join(doc.split())}",
                _WIDTH - 4,
                subsequent_indent="  ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            for name, doc in documented
        )
