"""Keeps conditions that read no column above aggregates that have a row of nothing.

DataFusion 55 moves such a condition, of a filter or of an outer join, down to the tables. An
aggregate without keys, or with an empty grouping set, has a row then that should have been left
out: ``ON FALSE`` joins a count of 0. It moves nothing below a limit, also one of all rows.
"""

from __future__ import annotations

import re

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import limit_rows
from blendfusion.planner.ir.nodes import Plan, Rel, conjuncts, fields
from blendfusion.planner.ir.traversal import transform
from blendfusion.planner.stages.offset_bug import ALL

_OF_NOTHING = re.compile(r"Aggregate: groupBy=\[\[(?:\]\]|GROUPING SETS|ROLLUP|CUBE)")
_CONDITION = re.compile(r"Filter: (.*)")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"| BETWEEN .*? AND ')
_COLUMN = re.compile(r"\w\.\D|[^\W\d]\.\w")
"""No decimal point."""


def may_sink(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, may have such a condition."""
    if not _OF_NOTHING.search(plan):
        return False
    conditions = (_TEXT.sub("", found[1]) for found in _CONDITION.finditer(plan))
    return any(not _COLUMN.search(term) for c in conditions for term in c.split(" AND "))


def with_barriers(plan: Plan) -> Plan:
    """``plan`` with a limit of all rows above each such aggregate that is below such a
    condition."""

    def keep(part: Plan) -> Plan:
        if part.kind not in ("filter", "join") or not isinstance(part, Rel):
            return part
        if all(fields(term) for expr in part.exprs for term in conjuncts(expr)):
            return part
        return part.with_inputs(*(transform(p, _limit, ("aggregate",)) for p in part.inputs))

    return transform(plan, keep, ("filter", "join"))


def _limit(plan: Plan) -> Plan:
    agg = aggregation(plan)
    return plan if agg.has_one_grouping else limit_rows(plan, 0, ALL)
