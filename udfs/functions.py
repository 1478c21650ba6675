"""A call as an ordinary DataFusion function: right anywhere, though not minimal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
from datafusion import Accumulator, AggregateUDF, ScalarUDF, udaf, udf

from blendfusion.udfs.asker import Asker
from blendfusion.udfs.call import Call
from blendfusion.udfs.evaluate import evaluate

AskerSource = Callable[[], Asker]


def value_types(call: Call) -> list[pa.DataType]:
    """The argument types: DataFusion casts what it gets (numbers, dates, lists, …) to them."""
    return list(call.ingredient.value_types or (pa.string(),) * call.n_values)


def _evaluated(call: Call, columns: Sequence[pa.Array], asker: Asker) -> pa.Array:
    try:
        return evaluate(call, columns, asker)
    except Exception as problem:
        asker.error = problem
        raise


def scalar_function(call: Call, asker: AskerSource) -> ScalarUDF:
    """The function of a scalar call. ``stable``: the optimizer may reorder but not fold it."""

    def run(*columns: pa.Array) -> pa.Array:
        return _evaluated(call, columns, asker())

    return udf(run, value_types(call), call.type, "stable", call.name)


def aggregate_function(call: Call, asker: AskerSource) -> AggregateUDF:
    """The function of an aggregate call; its state is the list of rows seen, a list a column."""
    states = [pa.list_(t) for t in value_types(call)]

    class Rows(Accumulator):
        def __init__(self) -> None:
            self.columns: list[list[Any]] = [[] for _ in states]

        def update(self, *values: pa.Array) -> None:
            # The keys of an ORDER BY come along behind the values, which are sorted already.
            for column, array in zip(self.columns, values, strict=False):
                column.extend(array.to_pylist())

        def merge(self, states: list[pa.Array]) -> None:
            for column, array in zip(self.columns, states, strict=True):
                for part in array.to_pylist():
                    column.extend(part or [])

        def state(self) -> list[pa.Scalar]:
            return [pa.scalar(c, t) for c, t in zip(self.columns, states, strict=True)]

        def evaluate(self) -> pa.Scalar:
            lists = [pa.array([c], t) for c, t in zip(self.columns, states, strict=True)]
            return _evaluated(call, lists, asker())[0]

    return udaf(Rows, value_types(call), call.type, states, "stable", call.name)
