"""User-defined ingredients: ``@bf.ingredient`` on a function of a model and Arrow arrays."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable

import pyarrow as pa
from datafusion import Expr

from blendfusion.errors import ArgumentError
from blendfusion.types import Constraint
from blendfusion.udfs.declare.ingredient import Ingredient, Run
from blendfusion.udfs.functions import INGREDIENTS
from blendfusion.udfs.register.expr import expression

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


def known_ingredients() -> dict[str, Ingredient]:
    """Every ingredient by its name: ours, and those that users defined in this process."""
    return {i.name: i for i in INGREDIENTS} | _defined


class DefinedIngredient:
    """A user's ingredient: called with columns, it gives an expression; in SQL, use its name."""

    def __init__(self, ingredient: Ingredient, function: Run) -> None:
        self.ingredient = ingredient
        self.function = function
        self.__doc__ = function.__doc__
        self.__name__ = ingredient.name

    def __call__(self, *columns: Expr | str) -> Expr:
        return expression(self.ingredient, columns)


def ingredient(
    function: Run | None = None, *, name: str | None = None, returns: pa.DataType | None = None
) -> DefinedIngredient | Callable[[Run], DefinedIngredient]:
    """Make a function of a model and Arrow arrays an ingredient, usable in SQL the next line.

    The function gets a ``bf.UserModel`` and one array a value column, of the annotated Arrow
    types (``pa.StringArray``, the default, ``pa.Int64Array``, …), with each distinct row of
    values once and without rows that are NULL throughout. It returns one array of the same
    length, of the type in ``returns`` or in its annotation (default: text).

    ::

        @bf.ingredient
        def shout(model: bf.UserModel, text: pa.StringArray) -> pa.StringArray:
            return pc.utf8_upper(model.ask("What is the main noun?", text))
    """

    def define(function: Run) -> DefinedIngredient:
        made = _made(function, name, returns)
        _defined[made.name] = made
        return DefinedIngredient(made, function)

    return define if function is None else define(function)


def _made(function: Run, name: str | None, returns: pa.DataType | None) -> Ingredient:
    own = str(name or getattr(function, "__name__", "")).lower()
    if not own.isidentifier():
        raise ArgumentError(f"'{own}' cannot be the name of an ingredient", hint="Pass name=….")
    if own in {i.name for i in INGREDIENTS}:
        raise ArgumentError(f"'{own}' is an ingredient of BlendFusion", hint="Choose another name.")
    parameters = list(inspect.signature(function).parameters)[1:]
    if not parameters:
        raise ArgumentError(f"'{own}' takes no value columns", hint="def f(model, values): …")
    types = tuple(_annotated(function, p) for p in parameters)
    result = returns or _annotated(function, "return")
    return Ingredient(
        name=own,
        summary=(inspect.getdoc(function) or "").split("\n")[0],
        leading=(),
        returns=Constraint(),
        run=function,
        serial=next(_serials),
        type=result,
        value_types=types,
    )


def _annotated(function: Run, name: str) -> pa.DataType:
    annotation = inspect.get_annotations(function).get(name)
    written = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _ARROW_TYPES.get(written.split(".")[-1], pa.string())
