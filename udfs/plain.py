"""The ingredients as ordinary DataFusion functions of fixed arity, for any SessionContext."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from datafusion import Accumulator, ScalarUDF, SessionContext, udaf, udf

from blendfusion.models.cached import CachedModel
from blendfusion.options import OnError
from blendfusion.types import Constraint
from blendfusion.udfs.asker import Asker, NullObserver
from blendfusion.udfs.define import known_ingredients
from blendfusion.udfs.evaluate import evaluate
from blendfusion.udfs.ingredient import (
    Argument,
    Constant,
    Ingredient,
    Literal,
    Value,
    arrow_type,
    bind,
)


def register_plain(context: SessionContext, model: CachedModel, on_error: OnError) -> None:
    """Register every known ingredient in ``context``: literals and one value column as arguments.

    A literal argument may be a column too: rows are then asked by its distinct values.
    """
    asker = Asker(model, NullObserver(), on_error)
    for ingredient in known_ingredients().values():
        if ingredient.aggregate:
            context.register_udaf(_aggregate(ingredient, asker))
        else:
            context.register_udf(_scalar(ingredient, asker))


def _type(ingredient: Ingredient) -> pa.DataType:
    return ingredient.type or arrow_type(ingredient.returns or Constraint())


def _literal_types(ingredient: Ingredient) -> list[pa.DataType]:
    return [
        pa.list_(pa.string()) if n == "labels" else pa.string()
        for n in (*ingredient.leading, *ingredient.trailing)
    ]


def _bound(ingredient: Ingredient, literals: Sequence[Literal]) -> Any:
    n = len(ingredient.leading)
    values: list[Argument] = [Value() for _ in ingredient.value_types or (None,)]
    arguments: list[Argument] = [Constant(v) for v in literals[:n]]
    arguments += values + [Constant(v) for v in literals[n:]]
    return bind(ingredient, arguments, {})


def _scalar(ingredient: Ingredient, asker: Asker) -> ScalarUDF:
    n = len(ingredient.leading)
    literal_types = _literal_types(ingredient)
    columns = list(ingredient.value_types or (pa.string(),))

    def run(*arrays: pa.Array) -> pa.Array:
        given = [*arrays[:n], *arrays[n + len(columns) :]]
        values = arrays[n : n + len(columns)]
        groups: dict[tuple[object, ...], list[int]] = {}
        rows = zip(*(map(_hashable, a.to_pylist()) for a in given), strict=True) if given else ()
        for i, literals in enumerate(rows or ()):
            groups.setdefault(literals, []).append(i)
        if not given:
            return evaluate(_bound(ingredient, ()), values, asker)
        pieces, order = [pa.array([], _type(ingredient))], []
        for literals, positions in groups.items():
            order += positions
            if None in literals:
                pieces.append(pa.nulls(len(positions), _type(ingredient)))
                continue
            call = _bound(ingredient, [list(v) if isinstance(v, tuple) else v for v in literals])  # type: ignore[misc]
            pieces.append(evaluate(call, [v.take(pa.array(positions)) for v in values], asker))
        back = [0] * len(order)
        for place, row in enumerate(order):
            back[row] = place
        return pa.concat_arrays(pieces).take(pa.array(back, pa.int64()))

    types = [*literal_types[:n], *columns, *literal_types[n:]]
    return udf(run, types, _type(ingredient), "stable", ingredient.name)


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _aggregate(ingredient: Ingredient, asker: Asker) -> Any:
    n = len(ingredient.leading)
    types = [*(pa.string() for _ in range(n)), pa.string()]
    states = [*(pa.string() for _ in range(n)), pa.list_(pa.string())]

    class Rows(Accumulator):
        def __init__(self) -> None:
            self.literals: list[str | None] = [None] * n
            self.rows: list[str | None] = []

        def update(self, *arrays: pa.Array) -> None:
            for i, array in enumerate(arrays[:n]):
                self._keep(i, array.to_pylist())
            self.rows.extend(arrays[n].to_pylist())

        def merge(self, arrays: list[pa.Array]) -> None:
            for i, array in enumerate(arrays[:n]):
                self._keep(i, array.to_pylist())
            for part in arrays[n].to_pylist():
                self.rows.extend(part or [])

        def _keep(self, i: int, values: list[str | None]) -> None:
            self.literals[i] = next((v for v in values if v is not None), self.literals[i])

        def state(self) -> list[pa.Scalar]:
            kept = [*self.literals, self.rows]
            return [pa.scalar(v, t) for v, t in zip(kept, states, strict=True)]

        def evaluate(self) -> pa.Scalar:
            if n and None in self.literals:
                return pa.scalar(None, _type(ingredient))
            call = _bound(ingredient, self.literals)
            return evaluate(call, [pa.array([self.rows], pa.list_(pa.string()))], asker)[0]

    return udaf(Rows, types, _type(ingredient), states, "stable", ingredient.name)
