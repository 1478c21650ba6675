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
from blendfusion.udfs.ask.dispatcher import Asker, Observer
from blendfusion.udfs.ask.ledger import Ledger
from blendfusion.udfs.declare.call import Call
from blendfusion.udfs.declare.ingredient import (
    Argument,
    Constant,
    Ingredient,
    Literal,
    Value,
    arrow_type,
    bind,
)
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
    call of its own. A NULL literal gives NULL. What they spend counts in ``ledger``; ``observer``
    sees what they ask."""
    asker = Asker(
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
        if ingredient.answers is not None and ingredient.returns is None:
            continue  # its type depends on its literals: a plain function has one
        if ingredient.aggregate:
            context.register_udaf(_aggregate(ingredient, asker))
        else:
            context.register_udf(_scalar(ingredient, asker))


def _result_type(ingredient: Ingredient) -> pa.DataType:
    return ingredient.type or arrow_type(ingredient.returns or Constraint())


def _value_types(ingredient: Ingredient) -> list[pa.DataType]:
    one = pa.list_(pa.string()) if ingredient.lists else pa.string()
    if ingredient.images:
        one = pa.binary()
    return list(ingredient.value_types or (one,) * ingredient.min_values)


def _call(ingredient: Ingredient, literals: Literals) -> Call:
    n = len(ingredient.leading)
    values: list[Argument] = [Value() for _ in _value_types(ingredient)]
    before: list[Argument] = [Constant(v) for v in literals[:n]]
    after: list[Argument] = [Constant(v) for v in literals[n:]]
    if ingredient.compares:
        values[1:1], after = after, []
    return bind(ingredient, [*before, *values, *after], {})


def _scalar(ingredient: Ingredient, asker: Asker) -> ScalarUDF:
    values = _value_types(ingredient)
    first, last = len(ingredient.leading), len(ingredient.leading) + len(values)
    result = _result_type(ingredient)

    def run(*arrays: pa.Array) -> pa.Array:
        if ingredient.compares:  # the operator stands between the values
            arrays = (arrays[0], arrays[2], arrays[1])
        pieces, places = [pa.array([], result)], [np.zeros(0, dtype=np.int64)]
        for literals, rows in _groups([*arrays[:first], *arrays[last:]], len(arrays[first])):
            places.append(rows)
            if None in literals:
                pieces.append(pa.nulls(len(rows), result))
                continue
            own = [array.take(pa.array(rows)) for array in arrays[first:last]]
            pieces.append(evaluate(_call(ingredient, literals), own, asker))
        return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(places))))

    literal_types = {"labels": pa.list_(pa.string())}
    before = [literal_types.get(name, pa.string()) for name in ingredient.leading]
    after = [literal_types.get(name, pa.string()) for name in ingredient.trailing]
    if ingredient.compares:
        values.insert(1, pa.string())
    return udf(run, [*before, *values, *after], result, "stable", ingredient.name)


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


def _aggregate(ingredient: Ingredient, asker: Asker) -> AggregateUDF:
    n = len(ingredient.leading)
    rows_type = pa.list_(pa.string())
    states = [*[pa.string()] * n, rows_type]
    result = _result_type(ingredient)

    class Rows(Accumulator):
        def __init__(self) -> None:
            self.literals: list[Literal] = [None] * n
            self.rows: list[str | None] = []

        def update(self, *values: pa.Array) -> None:
            self._keep_literals(values)
            self.rows.extend(values[n].to_pylist())

        def merge(self, states: list[pa.Array]) -> None:
            self._keep_literals(states)
            for part in states[n].to_pylist():
                self.rows.extend(part or [])

        def _keep_literals(self, arrays: Sequence[pa.Array]) -> None:
            for i, array in enumerate(arrays[:n]):
                present = array.drop_null()
                if len(present):
                    self.literals[i] = present[0].as_py()

        def state(self) -> list[pa.Scalar]:
            kept = [*self.literals, self.rows]
            return [pa.scalar(v, t) for v, t in zip(kept, states, strict=True)]

        def evaluate(self) -> pa.Scalar:
            if None in self.literals:
                return pa.scalar(None, result)
            call = _call(ingredient, tuple(self.literals))
            return evaluate(call, [pa.array([self.rows], rows_type)], asker)[0]

    return udaf(Rows, [*[pa.string()] * (n + 1)], result, states, "stable", ingredient.name)
