"""Ingredients as DataFusion expressions: ``bf.llm_filter("Is this a complaint?", col("text"))``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import TypeAlias

import pyarrow as pa
from datafusion import Expr, col
from datafusion import functions as f
from datafusion.expr import SortExpr

from blendfusion.errors import QueryError, check_encodable
from blendfusion.models.guarantees.accuracy import Targets
from blendfusion.udfs.ask.dispatcher import Asker
from blendfusion.udfs.declare.call import Call, quoted, remember
from blendfusion.udfs.declare.ingredient import Argument, Constant, Ingredient, Literal, Value, bind
from blendfusion.udfs.register.udf import scalar_function

ColumnLike: TypeAlias = "Expr | str"
"""An expression, or the name of a column."""
ModelNamed: TypeAlias = "str | Sequence[str] | None"
"""A model that the session knows by this name, or several; None: the session's own."""


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

    Literal parameters come where the ingredient has them; every other positional argument is a
    column. Raises ArgumentError as ``bind`` does.
    """
    exprs: list[Expr] = []
    arguments: list[Argument] = []
    n_leading = len([p for p in ingredient.leading if named.get(p) is None])
    for i, given in enumerate(positional):
        if isinstance(given, Expr):
            exprs.append(given)
            arguments.append(Value(_column_name(given)))
        elif isinstance(given, str) and i >= n_leading:
            exprs.append(col(given))
            arguments.append(Value(given.strip('"').split(".")[-1]))
        else:
            arguments.append(Constant(_literal(given)))
    if targets is not None and not isinstance(targets, Targets):
        raise QueryError(
            f"{ingredient.name}: targets={targets!r} are none", hint="Write bf.Targets(recall=0.9)."
        )
    named |= {} if targets is None else asdict(targets)
    literals = {k: _literal(v) for k, v in named.items() if v is not None}
    call = remember(bind(ingredient, arguments, literals, ordered=order_by is not None))
    if ingredient.aggregate:
        key = col(order_by) if isinstance(order_by, str) else order_by
        order: list[Expr | SortExpr | str] | None = None if key is None else [key.sort()]
        exprs = [f.array_agg(e.cast(pa.string()), filter=where, order_by=order) for e in exprs]
    elif ingredient.lists:
        exprs = [e.cast(pa.list_(pa.string())) for e in exprs]
    elif ingredient.images:
        exprs = [e.cast(pa.binary()) for e in exprs]
    return scalar_function(call, lambda: bound(call))(*exprs).alias(_alias(call))


def _alias(call: Call) -> str:
    """The name of the column: the call as SQL, with its type where only ``returns`` tells it."""
    kind = call.task.constraint.kind
    told = call.ingredient.returns is not None or kind in ("text", "regex", "choice", "struct")
    if told:
        return call.text
    item = _ITEMS.get(call.task.constraint.item.kind) if call.task.constraint.item else None
    returns = f"{kind}[{item}]" if item else kind
    return f"{call.text[:-1]}, returns => {quoted(returns)})"


_ITEMS = {"integer": "int", "number": "float", "date": "date"}
"""The items of a list, as ``returns`` names them."""


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
    raise QueryError(f"{value!r} is neither a column nor a literal")


_bound: dict[str, Asker] = {}
_LOCKS = tuple(threading.Lock() for _ in range(64))
"""Each serves the calls whose names hash to it; runs of these wait for one another."""


def bound(call: Call) -> Asker:
    """The asker that answers ``call`` where DataFusion evaluates an expression itself."""
    asker = _bound.get(call.name)
    if asker is None:
        raise QueryError(
            f"{call.text} has no model here",
            hint="Expressions work on frames of a session: bf.connect(). In a plain SessionContext "
            "use SQL after bf.register(ctx, model=…).",
        )
    return asker


@contextmanager
def binding(calls: Iterable[Call], asker: Asker) -> Iterator[None]:
    """Answer the expressions of ``calls`` by ``asker`` meanwhile; one run at a time per call.

    Only plans that cannot be rewritten need this: their expressions were built before any
    session was known, and DataFusion evaluates them on threads of its own.
    """
    names = sorted({call.name for call in calls})
    locks = [_LOCKS[at] for at in sorted({hash(name) % len(_LOCKS) for name in names})]
    with ExitStack() as stack:
        for lock in locks:
            stack.enter_context(lock)
        for name in names:
            _bound[name] = asker
            stack.callback(_bound.pop, name, None)
        yield
