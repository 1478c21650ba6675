"""Calls as DataFusion expressions: ``bf.llm_filter("Is this a complaint?", col("text"))``."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

from datafusion import Expr, col
from datafusion import functions as f
from datafusion.expr import SortExpr

from blendfusion.errors import ArgumentError, QueryError, check_encodable
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.udfs.declare.arguments import Argument, Constant, Literal, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.call_registry import remember
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.parameter import AnyParameter
from blendfusion.udfs.register.checked_expr import CheckedExpr
from blendfusion.udfs.register.signature import docstring, signature
from blendfusion.udfs.register.udf import scalar_function

if TYPE_CHECKING:
    from blendfusion.udfs.ask.dispatcher import Dispatcher

ColumnLike: TypeAlias = "Expr | str"
"""An expression, or the name of a column."""


def python_function(ingredient: Ingredient) -> Callable[..., Expr]:
    """The function ``bf.<name>`` of an ingredient. Its signature is that of the declaration."""

    def call(*arguments: object, **named: Any) -> Expr:
        return expression(ingredient, arguments, **named)

    call.__name__ = call.__qualname__ = ingredient.name
    call.__module__ = "blendfusion"
    call.__doc__ = docstring(ingredient)
    call.__signature__ = signature(ingredient)  # type: ignore[attr-defined]
    return call


def expression(
    ingredient: Ingredient,
    positional: Sequence[object],
    *,
    order_by: ColumnLike | None = None,
    where: Expr | None = None,
    targets: Targets | None = None,
    **named: object,
) -> Expr:
    """The expression of a call: in a Frame it is planned, elsewhere it needs a bound model.

    Literals stand where the ingredient has parameters; every other positional argument is a column.
    An option that is None is absent. Raises ArgumentError as ``bind`` does.
    """
    if not ingredient.kind.aggregate and (order_by is not None or where is not None):
        raise QueryError(
            f"{ingredient.name}: order_by and where are of functions of a group",
            hint="Sort and filter the frame.",
        )
    named = {name: given for name, given in named.items() if given is not None}
    exprs: list[Expr] = []
    arguments: list[Argument] = []
    for parameter, given in _place_arguments(ingredient, positional, named):
        if isinstance(given, Expr):
            exprs.append(given)
            arguments.append(Value(_column_name(given)))
        elif isinstance(given, str) and parameter is None:
            exprs.append(col(given))
            arguments.append(Value(given.strip('"').split(".")[-1]))
        else:
            arguments.append(Constant(_from_python(ingredient, parameter, given)))
    if targets is not None and not isinstance(targets, Targets):
        raise QueryError(
            f"{ingredient.name}: targets={targets!r} are none", hint="Write bf.Targets(recall=0.9)."
        )
    if targets is not None:
        named |= {name: given for name, given in asdict(targets).items() if given is not None}
    literals = {
        name: _from_python(ingredient, ingredient.parameter(name), given)
        for name, given in named.items()
    }
    bound_call = bind(ingredient, arguments, literals, ordered=order_by is not None)
    call = remember(bound_call)
    casts = [ingredient.kind.cast(place) for place in range(len(exprs))]
    exprs = [e if to is None else e.cast(to) for e, to in zip(exprs, casts, strict=True)]
    if ingredient.kind.aggregate:
        key = col(order_by) if isinstance(order_by, str) else order_by
        order: list[Expr | SortExpr | str] | None = None if key is None else [key.sort()]
        exprs = [f.array_agg(e, filter=where, order_by=order) for e in exprs]
    made = scalar_function(call, lambda: dispatcher_of(call))(*exprs)
    return CheckedExpr(made.expr).alias(bound_call.text)


def _place_arguments(
    ingredient: Ingredient, positional: Sequence[object], named: dict[str, object]
) -> list[tuple[AnyParameter | None, object]]:
    """The positional arguments in their order, each with its parameter (None: a column). Columns
    that are given by name are taken out of ``named``."""
    names = ingredient.value_names
    columns: list[AnyParameter | str] = []
    if not isinstance(ingredient.values, str):
        columns = [names[0], *ingredient.between, *names[1:], *ingredient.trailing]
    rest = list(positional)
    placed: list[tuple[AnyParameter | None, object]] = []
    for slot in (*ingredient.leading, *columns):
        name = slot if isinstance(slot, str) else slot.name
        if not isinstance(slot, str):
            placed += [(slot, rest.pop(0))] if rest and name not in named else []
        elif name in named or rest:
            given = named.pop(name) if name in named else rest.pop(0)
            if ingredient.beside and isinstance(given, list | tuple):
                placed += [(None, one) for one in given]
            else:
                placed.append((None, given))
    return placed + [(None, given) for given in rest]


def _from_python(ingredient: Ingredient, parameter: AnyParameter | None, given: object) -> Literal:
    """An argument of Python as a literal of SQL."""
    if parameter is None or parameter.from_python is None:
        return _literal(given)
    try:
        return parameter.from_python(given)
    except ArgumentError as problem:
        raise ArgumentError(f"{ingredient.name}: {problem.message}", hint=problem.hint) from None


def _column_name(expr: Expr) -> str:
    if expr.variant_name() == "Column":
        return str(expr.to_variant().name())
    return ""


def _literal(value: object) -> Literal:
    if isinstance(value, list | tuple):
        return [_literal(v) for v in value]
    if isinstance(value, Mapping):
        return {str(_literal(k)): _literal(v) for k, v in value.items()}
    if isinstance(value, str):
        check_encodable(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    for method in _AS_LISTS:
        if hasattr(value, method) and not isinstance(value, type):
            return _literal(getattr(value, method)())
    named = value.__name__ if isinstance(value, type) else f"a value of {type(value).__name__}"
    raise QueryError(
        f"{named} is neither a column nor a literal",
        hint="A literal is text, a number, True, False, a list or a dict of these; a type is named, "
        "returns='int'; a model, too, after session.register_model('name', model).",
    )


_AS_LISTS = ("tolist", "to_pylist", "to_list")
"""How NumPy and pandas, Arrow and Polars give values, or one value, as Python's."""

_bound: dict[str, Dispatcher] = {}
_LOCKS: dict[str, threading.Lock] = {}
"""A lock for each call, by its name. Calls that shared one would wait for one another for ever
where one thread reads two results in turn."""


def dispatcher_of(call: Call) -> Dispatcher:
    """The dispatcher that answers ``call`` where DataFusion evaluates an expression itself."""
    dispatcher = _bound.get(call.name)
    if dispatcher is None:
        raise QueryError(
            f"{call.text} has no model here",
            hint="Expressions work on frames of a session: bf.connect(). In a plain SessionContext "
            "use SQL after bf.register(ctx, model=…).",
        )
    return dispatcher


@contextmanager
def binding(calls: Iterable[Call], dispatcher: Dispatcher) -> Iterator[None]:
    """Answer the expressions of ``calls`` by ``dispatcher`` meanwhile; one run at a time per call.

    Only plans that cannot be rewritten need this: their expressions were built before any
    session was known, and DataFusion evaluates them on threads of its own.
    """
    names = sorted({call.name for call in calls})
    locks = [_LOCKS.setdefault(name, threading.Lock()) for name in names]
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        for name in names:
            _bound[name] = dispatcher
            stack.callback(_bound.pop, name, None)
        yield
