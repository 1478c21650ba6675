"""The values that calls were asked about, row by row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from datafusion import Expr
from datafusion.expr import Projection

if TYPE_CHECKING:
    from blendfusion.run.hooks import BaseFrame

_NAME = "value_of_evaluation_"


def with_call_values(
    frame: BaseFrame, columns: Collection[str]
) -> tuple[BaseFrame, dict[str, list[str]]]:
    """(``frame`` with a column for each value that the calls of ``columns`` are asked about, the
    names of those columns). Without them for a frame that does not compute the columns last."""
    plan = frame.logical_plan()
    node = plan.to_variant()
    if not isinstance(node, Projection):
        return frame, {}
    outputs = [Expr(raw) for raw in node.projections()]
    functions = {call.name for call in frame.prepared.calls}
    names: dict[str, list[str]] = {}
    added: list[Expr] = []
    for output, name in zip(outputs, frame.schema().names, strict=True):
        if name in columns:
            values = list(_values(output, functions))
            places = range(len(added), len(added) + len(values))
            names[name] = [f"{_NAME}{place}" for place in places]
            added += [v.alias(n) for v, n in zip(values, names[name], strict=True)]
    if not added:
        return frame, names
    below = frame.session.create_dataframe_from_logical_plan(plan.inputs()[0])
    return below.select(*outputs, *added).with_budget(frame.budget), names


def numbers_of_values(table: pa.Table, names: Sequence[str]) -> list[int]:
    """A number for each row's values in the columns ``names``, equal for equal values; of a call
    without values one number for all."""
    columns = [table[name].to_pylist() for name in names]
    known: dict[str, int] = {}
    rows = zip(*columns, strict=True) if columns else ((),) * len(table)
    return [known.setdefault(repr(row), len(known)) for row in rows]


def numbers_at_worst(
    answers: pa.ChunkedArray, labels: pa.ChunkedArray, values: int
) -> Sequence[int]:
    """A number of a value for each row, where only the number of ``values`` is known: the
    assignment under which the rows say the least, each value's rows right or wrong together. () if
    no value need repeat."""
    rows = len(answers)
    if not 0 < values < rows:
        return ()
    pairs = list(zip(answers.to_pylist(), labels.to_pylist(), strict=True))
    numbers = [0] * rows
    for place, row in enumerate(sorted(range(rows), key=lambda row: repr(pairs[row]))):
        numbers[row] = place * values // rows
    return numbers


def _values(expr: Expr, functions: Collection[str]) -> Iterator[Expr]:
    """The arguments of the calls in an expression."""
    while expr.variant_name() == "Alias":
        expr = Expr(expr.to_variant().expr())
    try:
        operands, name = expr.rex_call_operands(), expr.rex_call_operator()
    except Exception:  # not every expression of DataFusion has operands in Python
        return
    if name in functions:
        yield from operands
    else:
        for operand in operands:
            yield from _values(operand, functions)
