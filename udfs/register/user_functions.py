"""User-defined ingredients: ``@bf.ingredient`` on a function of a model and Arrow arrays."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any, overload

import pyarrow as pa
from datafusion import Expr

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.arguments import Literal
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.kinds import Body, UserAggregate, UserBody
from blendfusion.udfs.declare.options import MODEL, ON_ERROR
from blendfusion.udfs.declare.parameter import AnyParameter, Parameter
from blendfusion.udfs.functions import FUNCTIONS
from blendfusion.udfs.register.code_digest import code_digest
from blendfusion.udfs.register.signature import signature

_serials = itertools.count(1)
_defined: dict[str, Ingredient] = {}

_ARROW_TYPES: dict[str, pa.DataType] = {
    "StringArray": pa.string(),
    "BooleanArray": pa.bool_(),
    "Int64Array": pa.int64(),
    "Int32Array": pa.int32(),
    "DoubleArray": pa.float64(),
    "FloatArray": pa.float32(),
    "Date32Array": pa.date32(),
    "TimestampArray": pa.timestamp("us"),
    "BinaryArray": pa.binary(),
}
"""By the names of pyarrow's classes: an annotation may be text that cannot be evaluated here."""

_LITERALS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "list": (list,),
    "dict": (dict,),
}
"""The types of literals, by the names of annotations."""


def known_ingredients() -> dict[str, Ingredient]:
    """Every ingredient by its name: the built-in ones and those of users in this process."""
    from blendfusion.udfs.functions.declarations import INGREDIENTS

    return {i.name: i for i in INGREDIENTS} | _defined


def names_a_function(text: str) -> bool:
    """Whether the name of an ingredient is somewhere in a text. No declaration is imported."""
    lowered = text.lower()
    return any(name in lowered for name in (*FUNCTIONS, *_defined))


class DefinedIngredient:
    """A user's function: called with columns and literals, it gives an expression; SQL knows it by
    its name."""

    def __init__(self, ingredient: Ingredient, function: Body) -> None:
        self.ingredient = ingredient
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = ingredient.name
        self.__signature__ = signature(ingredient)

    def __call__(self, *arguments: object, **named: Any) -> Expr:
        from blendfusion.udfs.register.expr import expression

        return expression(self.ingredient, arguments, **named)


@overload
def ingredient(
    function: Body,
    *,
    name: str | None = None,
    returns: pa.DataType | None = None,
    aggregate: bool = False,
    deterministic: bool | str = False,
) -> DefinedIngredient: ...


@overload
def ingredient(
    function: None = None,
    *,
    name: str | None = None,
    returns: pa.DataType | None = None,
    aggregate: bool = False,
    deterministic: bool | str = False,
) -> Callable[[Body], DefinedIngredient]: ...


def ingredient(
    function: Body | None = None,
    *,
    name: str | None = None,
    returns: pa.DataType | None = None,
    aggregate: bool = False,
    deterministic: bool | str = False,
) -> DefinedIngredient | Callable[[Body], DefinedIngredient]:
    """Make a function of a model and Arrow arrays an ingredient, usable in SQL the next line.

    The function gets a ``bf.UserModel`` and one array per value column, of the annotated Arrow
    types (``pa.StringArray``, the default, ``pa.Int64Array``, …), with each distinct row of
    values once and without rows that are NULL throughout. It returns one array of the same
    length, of the type in ``returns`` or in its annotation (default: text).

    Parameters that are annotated as ``str``, ``int``, ``float``, ``bool``, ``list`` or ``dict`` are
    literals. Those before and behind the columns are positional in SQL, keyword-only ones are named
    options; a default makes one optional. ``*values`` takes any number of columns. Every function
    also takes the options ``model`` and ``on_error``.

    ``aggregate``: the function is an aggregate. Each array holds one list per group, of the
    group's rows, sorted unless the query orders them; a group without rows gives NULL.

    ``deterministic``: equal rows have equal results, so that these are stored with the model's
    answers, and later queries run the function for new rows only. A change of its own code, its
    defaults or its literals makes new results; for a change of what it calls, give a version as
    a text, ``deterministic="2"``, and change that.

    ::

        @bf.ingredient
        def noun(model: bf.UserModel, text: pa.StringArray, tone: str = "dry") -> pa.StringArray:
            return pc.utf8_upper(model.ask(f"What is the main noun, in a {tone} tone?", text))

    Raises ArgumentError for a function that cannot be one.
    """

    def define(function: Body) -> DefinedIngredient:
        made = _make(function, name, returns, aggregate=aggregate, deterministic=deterministic)
        _defined[made.name] = made
        return DefinedIngredient(made, function)

    return define if function is None else define(function)


def _make(
    function: Body,
    name: str | None,
    returns: pa.DataType | None,
    *,
    aggregate: bool,
    deterministic: bool | str,
) -> Ingredient:
    from blendfusion.udfs.evaluate.stored_results import storable

    own = str(name or getattr(function, "__name__", "")).lower()
    if not own.isidentifier():
        raise ArgumentError(f"'{own}' cannot be the name of an ingredient", hint="Pass name=….")
    if own in FUNCTIONS:
        raise ArgumentError(f"'{own}' is an ingredient of BlendFusion", hint="Choose another name.")
    parameters = list(inspect.signature(function).parameters.values())[1:]
    columns = [p for p in parameters if _is_column(function, p)]
    if not columns:
        raise ArgumentError(f"'{own}' takes no value columns", hint="def f(model, values): …")
    first, last = parameters.index(columns[0]), parameters.index(columns[-1])
    if parameters[first : last + 1] != columns:
        raise ArgumentError(
            f"'{own}' has a literal between its value columns", hint="Write the columns together."
        )
    behind = [p for p in parameters[last + 1 :] if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = [p for p in parameters[last + 1 :] if p.kind is p.KEYWORD_ONLY]
    _check_parameters(own, parameters, columns, by_name)
    kind = UserAggregate if aggregate else UserBody
    result = returns or _return_type(function, "return")
    if deterministic and not storable(result):
        raise ArgumentError(
            f"'{own}' is deterministic, and results of type {result} cannot be stored",
            hint="Return text, numbers, booleans, dates, or lists or structs of them.",
        )
    body = kind(
        function,
        result,
        tuple(_return_type(function, p.name) for p in columns),
        next(_serials),
        f"{deterministic} {code_digest(function)}" if deterministic else "",
    )
    variadic = columns[-1].kind is inspect.Parameter.VAR_POSITIONAL
    return Ingredient(
        name=own,
        summary=(inspect.getdoc(function) or "").split("\n")[0],
        kind=body,
        leading=tuple(_literal(function, p) for p in parameters[:first]),
        values=columns[0].name if variadic else tuple(p.name for p in columns),
        trailing=tuple(_literal(function, p) for p in behind),
        options=(*(_literal(function, p) for p in by_name), MODEL, ON_ERROR),
        returns=Constraint(),
    )


def _check_parameters(
    own: str,
    parameters: list[inspect.Parameter],
    columns: list[inspect.Parameter],
    by_name: list[inspect.Parameter],
) -> None:
    taken = {MODEL.name, ON_ERROR.name, "order_by", "where"} & {p.name for p in parameters}
    if taken:
        raise ArgumentError(
            f"'{own}' has a parameter '{min(taken)}', which every function has",
            hint="Choose another name for it.",
        )
    required = next((p.name for p in by_name if p.default is p.empty), None)
    if required is not None:
        raise ArgumentError(
            f"'{own}': the option '{required}' has no default", hint=f"Write {required}: str = '…'."
        )
    variadic = [p for p in columns if p.kind is p.VAR_POSITIONAL]
    if (variadic and len(columns) > 1) or any(p.kind is p.VAR_KEYWORD for p in parameters):
        raise ArgumentError(
            f"'{own}': * stands for all value columns, and ** is not possible",
            hint="Write def f(model, *values): …",
        )


def _annotation(function: Body, name: str) -> str:
    """The name of the annotated type, without what stands in its brackets; '' without any."""
    annotation = inspect.get_annotations(function).get(name)
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return written.split("[")[0].split(".")[-1].removesuffix(" | None")


def _is_column(function: Body, parameter: inspect.Parameter) -> bool:
    return _annotation(function, parameter.name) not in _LITERALS


def _return_type(function: Body, name: str) -> pa.DataType:
    return _ARROW_TYPES.get(_annotation(function, name), pa.string())


def _literal(function: Body, parameter: inspect.Parameter) -> AnyParameter:
    """The declaration of a parameter that is annotated as a literal."""
    kind = _annotation(function, parameter.name)
    types = _LITERALS[kind]

    def read(given: Literal, name: str) -> Literal:
        if not isinstance(given, types) or (isinstance(given, bool) and bool not in types):
            raise ArgumentError(f"{name} => {given!r} is not of type {kind}")
        return float(given) if kind == "float" and isinstance(given, int) else given

    default = None if parameter.default is parameter.empty else parameter.default
    return Parameter(parameter.name, f"A literal of type {kind}.", read, kind, default=default)
