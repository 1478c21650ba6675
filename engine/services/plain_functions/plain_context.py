"""Registers ingredients as ordinary DataFusion functions of fixed arity, in any SessionContext."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from datafusion import Accumulator, AggregateUDF, ScalarUDF, SessionContext, udaf, udf

from blendfusion.models.embedders.embedder import Embedder
from blendfusion.models.wrappers.cache import CachedModel
from blendfusion.models.wrappers.cascade import targets_in
from blendfusion.options import Options
from blendfusion.types import Constraint
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.ask.observer import Observer
from blendfusion.udfs.declare.arguments import Argument, Constant, Literal, Value
from blendfusion.udfs.declare.bind import bind
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.ingredient import Ingredient
from blendfusion.udfs.declare.parameter import AnyParameter
from blendfusion.udfs.declare.returns import arrow_type
from blendfusion.udfs.evaluate.evaluate import evaluate
from blendfusion.udfs.register.user_functions import known_ingredients

Literals: TypeAlias = tuple[Literal, ...]


def register_plain(
    context: SessionContext,
    model: CachedModel,
    options: Options,
    ledger: Ledger,
    embedder: Callable[[], Embedder],
    observer: Observer,
) -> None:
    """Register every known ingredient in ``context``: literals and one value column as arguments.

    Literals may come from a column too (``llm_map(questions.text, x)``): each of them is then a
    call of its own. A NULL literal gives NULL. Their usage counts in ``ledger``; ``observer`` sees
    what they ask."""
    dispatcher = Dispatcher(
        lambda: model,
        observer,
        options.on_error,
        options.redaction,
        ledger,
        embedder,
        image_urls=options.image_urls,
        targets=targets_in(options),
    )
    for ingredient in known_ingredients().values():
        if ingredient.has_fields:
            continue  # its type depends on its literals: a plain function has one
        if ingredient.kind.aggregate:
            context.register_udaf(_aggregate(ingredient, dispatcher))
        else:
            context.register_udf(_scalar(ingredient, dispatcher))


def _result_type(ingredient: Ingredient) -> pa.DataType:
    return ingredient.kind.result or arrow_type(ingredient.returns or Constraint())


def _n_values(ingredient: Ingredient) -> int:
    return len(ingredient.value_names)


def _literal_types(parameters: Sequence[AnyParameter]) -> list[pa.DataType]:
    """The types of the literals that a plain function takes, which are those without a default."""
    return [
        _LITERAL_TYPES.get(p.annotation, pa.list_(pa.string()))
        for p in parameters
        if p.default is None
    ]


_LITERAL_TYPES = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "SchemaLike": pa.string(),
}
"""By the annotations of parameters; the others take lists of texts."""


def _call(ingredient: Ingredient, literals: Literals) -> Call:
    n, between = len(ingredient.leading), len(ingredient.between)
    arguments: list[Argument] = [Constant(v) for v in literals]
    values: list[Argument] = [Value() for _ in range(_n_values(ingredient))]
    values[1:1] = arguments[n : n + between]
    return bind(ingredient, [*arguments[:n], *values, *arguments[n + between :]], {})


def _scalar(ingredient: Ingredient, dispatcher: Dispatcher) -> ScalarUDF:
    values = list(ingredient.kind.value_types(_n_values(ingredient)))
    result = _result_type(ingredient)
    sides = (ingredient.leading, ingredient.between, ingredient.trailing)
    before, between, after = map(_literal_types, sides)
    types = [*before, values[0], *between, *values[1:], *after]
    first = len(before)
    columns = [first, *range(first + 1 + len(between), first + len(between) + len(values))]
    places = [i for i in range(len(types)) if i not in columns]

    def run(*arrays: pa.Array) -> pa.Array:
        pieces, found = [pa.array([], result)], [np.zeros(0, dtype=np.int64)]
        for literals, rows in _groups([arrays[i] for i in places], len(arrays[first])):
            found.append(rows)
            if None in literals:
                pieces.append(pa.nulls(len(rows), result))
                continue
            own = [arrays[i].take(pa.array(rows)) for i in columns]
            pieces.append(evaluate(_call(ingredient, literals), own, dispatcher))
        return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(found))))

    return udf(run, types, result, "stable", ingredient.name)


def _groups(columns: Sequence[pa.Array], length: int) -> Iterator[tuple[Literals, np.ndarray]]:
    """(literals, the rows that have them), for every combination in the columns."""
    if not columns:
        yield (), np.arange(length)
        return
    groups: dict[str, tuple[Literals, list[int]]] = {}
    for i, literals in enumerate(zip(*(c.to_pylist() for c in columns), strict=True)):
        groups.setdefault(repr(literals), (literals, []))[1].append(i)
    for literals, rows in groups.values():
        yield literals, np.array(rows, dtype=np.int64)


def _aggregate(ingredient: Ingredient, dispatcher: Dispatcher) -> AggregateUDF:
    before = _literal_types(ingredient.leading)
    n, lists = len(before), list(ingredient.kind.value_types(_n_values(ingredient)))
    states = [*before, *lists]
    result = _result_type(ingredient)

    class Rows(Accumulator):
        def __init__(self) -> None:
            self.literals: list[Literal] = [None] * n
            self.columns: list[list[object]] = [[] for _ in lists]

        def update(self, *values: pa.Array) -> None:
            self._keep_literals(values)
            for column, array in zip(self.columns, values[n:], strict=True):
                column.extend(array.to_pylist())

        def merge(self, states: list[pa.Array]) -> None:
            self._keep_literals(states)
            for column, parts in zip(self.columns, states[n:], strict=True):
                for part in parts.to_pylist():
                    column.extend(part or [])

        def _keep_literals(self, arrays: Sequence[pa.Array]) -> None:
            for i, array in enumerate(arrays[:n]):
                present = array.drop_null()
                if len(present):
                    self.literals[i] = present[0].as_py()

        def state(self) -> list[pa.Scalar]:
            kept = [*self.literals, *self.columns]
            return [pa.scalar(v, t) for v, t in zip(kept, states, strict=True)]

        def evaluate(self) -> pa.Scalar:
            if None in self.literals:
                return pa.scalar(None, result)
            call = _call(ingredient, tuple(self.literals))
            rows = [pa.array([c], t) for c, t in zip(self.columns, lists, strict=True)]
            return evaluate(call, rows, dispatcher)[0]

    arguments = [*before, *(one.value_type for one in lists)]
    return udaf(Rows, arguments, result, states, "stable", ingredient.name)
