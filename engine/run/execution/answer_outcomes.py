"""Evaluates conditions for all answers that their calls can have, for the planner."""

from __future__ import annotations

from functools import cache, lru_cache
from threading import Lock

import pyarrow as pa

from blendfusion.planner.ir.nodes import Expr
from blendfusion.planner.ir.possible_answers import outcomes
from blendfusion.planner.rules.constant_tests import Outcomes
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

    return lru_cache(_REMEMBERED)(lambda expr: outcomes(expr, evaluate))
