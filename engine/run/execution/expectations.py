"""Expects pass rates and costs of predicates, for the planner: by stored answers, prices and
measurements of a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import pyarrow as pa
from datafusion import DataFrame

from blendfusion.errors import QueryError
from blendfusion.models.protocol.model import Values
from blendfusion.planner.ir.lineage import column_of
from blendfusion.planner.ir.nodes import Ask, Expr, Plan
from blendfusion.planner.rules.costly_predicates_last import Expected
from blendfusion.run.execution.expressions import RowWise
from blendfusion.run.execution.predicate_priors import expect
from blendfusion.run.execution.scratch_context import Workbench
from blendfusion.udfs.ask.dispatcher import Dispatcher
from blendfusion.udfs.declare.arguments import quoted_name

_FIRST_ROWS = 64


def expectations(
    table_named: Callable[[str], DataFrame],
    dispatcher: Callable[[], Dispatcher],
    workbench: Callable[[], Workbench],
) -> Expected:
    """The pass rates and costs of predicates. Where answers are stored, the first values of a table
    tell which share of them."""

    @cache
    def rowwise() -> RowWise:
        return RowWise(dispatcher(), workbench)

    def first_rows(ask: Ask, over: Plan) -> Sequence[Values]:
        columns = [c for arg in ask.args if (c := column_of(arg, over)) is not None]
        if len(columns) < len(ask.args) or len({c.table for c in columns}) != 1:
            return ()
        names = [quoted_name(c.column) for c in columns]
        try:
            table = table_named(columns[0].table).select(*names).limit(_FIRST_ROWS).to_arrow_table()
        except QueryError:  # a part that is read as a table, an alias, a name that needs quotes
            return ()
        texts = (c.cast(pa.string()).to_pylist() for c in table.columns)
        return list(dict.fromkeys(zip(*texts, strict=True)))

    def of(terms: Sequence[Expr], over: Plan) -> tuple[float, float]:
        return expect(terms, rowwise(), partial(first_rows, over=over))

    return of
