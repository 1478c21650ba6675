"""The values that conditions have over all answers, for the planner: by evaluating them for each
combination of these, else by the ranges of their parts."""

from __future__ import annotations

from functools import cache, lru_cache
from threading import Lock

import numpy as np
import pyarrow as pa

from blendfusion.planner.ir.nodes import Ask, Expr, asks, fields
from blendfusion.planner.ir.possible_answers import Evaluate, outcomes
from blendfusion.planner.rules.constant_tests import Outcomes
from blendfusion.run.execution.ranges import Range, range_of, range_of_answers, range_of_values
from blendfusion.run.execution.row_ranges import plain_parts
from blendfusion.run.execution.scratch_context import Workbench

_REMEMBERED = 1000


def answer_outcomes() -> Outcomes:
    """The values of a boolean expression, of which the last ones are remembered. None of one with a
    function of the user, which may have effects."""
    lock = Lock()
    workbench = cache(Workbench)

    def evaluate(expr: Expr, table: pa.Table) -> pa.ChunkedArray:
        with lock:
            return workbench().columns([expr], table)[0]

    def find(expr: Expr) -> frozenset[bool | None] | None:
        found = outcomes(expr, evaluate)
        return _by_ranges(expr, evaluate) if found is None else found

    return lru_cache(_REMEMBERED)(find)


def _by_ranges(expr: Expr, evaluate: Evaluate) -> frozenset[bool | None] | None:
    """The values of a condition by the ranges of its answers; those of columns are unknown."""
    calls = [ask.call for ask in asks(expr)]
    if not all(call.ingredient.kind.asks_model for call in calls):
        return None
    if not any(call.is_bounded for call in calls):
        return None
    one = pa.table({"0": [0]})
    literals = {part for part in plain_parts(expr) if not fields(part)}

    def leaf(part: Expr) -> Range | None:
        if isinstance(part, Ask):
            return range_of_answers(part, 1, np.full(1, True))
        return range_of_values(evaluate(part, one)) if part in literals else None

    found = range_of(expr, leaf, 1)
    if found.kind != "bool":
        return None
    masks = {True: found.true, False: found.false, None: found.null}
    return frozenset(value for value, mask in masks.items() if mask.any())
