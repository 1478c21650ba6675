"""Hides constant columns below grouping sets and outer joins, above which they are not constant.

DataFusion 55 knows that ``k`` is 1 behind ``WHERE k = 1``, and believes it above ``ROLLUP (k, n)``,
too, and of the side of an outer join whose rows may be missing, although it is NULL in some rows
there. So it leaves ``k`` out of the keys of sorts and windows, and ends groups by it that go on. It
takes no column for constant that a volatile function computes.
"""

from __future__ import annotations

import re
from dataclasses import replace

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.builders import case, fetch_bounds, float_literal, function, project
from blendfusion.planner.ir.joins import join_type, outputs, terms_of
from blendfusion.planner.ir.nodes import (
    KEY_COMPARISONS,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    fields,
    has_window,
    is_volatile,
    once_a_plan,
)
from blendfusion.planner.ir.opaque_names import is_leaf
from blendfusion.planner.ir.traversal import transform

_SETS = re.compile(r"^ *Aggregate: groupBy=\[\[(?:ROLLUP|CUBE|GROUPING SETS) ", re.MULTILINE)
_OUTER = re.compile(r"^ *(?:Left|Right|Full) Join:", re.MULTILINE)
_USES = re.compile(r"^ *(?:Sort|WindowAggr|DistinctOn|Distinct|Aggregate)\b", re.MULTILINE)
_MISSING = {"left": (1,), "right": (0,), "outer": (0, 1)}
"""The sides of a join whose rows may be missing."""


def may_mistake_constants(plan: str) -> bool:
    """Whether a logical plan, of which this is the text, has what may be constant below one of
    these."""
    return bool(_SETS.search(plan) or (_OUTER.search(plan) and _USES.search(plan)))


def with_hidden_constants(plan: Plan) -> Plan:
    """``plan`` with these columns computed by way of ``random()``; itself if there are none."""
    return transform(plan, _hide, ("aggregate", "join"))


def _hide(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "aggregate":
        return _with_hidden_keys(plan)
    sides = _MISSING.get(join_type(plan), ())
    inputs = (_hide_constants(p) if i in sides else p for i, p in enumerate(plan.inputs))
    return plan.with_inputs(*inputs)


def _with_hidden_keys(plan: Rel) -> Plan:
    agg, (source,) = aggregation(plan), plan.inputs
    constant = _constant(source)
    keys = [key for key in agg.keys if fields(key) <= constant]
    if agg.one_group_a_row or not keys or len({*agg.keys}) < len(agg.keys):
        return plan
    places = {key: Field(source.width + i) for i, key in enumerate(keys)}
    columns = (*all_fields(source.width), *map(_hide_value, keys))
    hidden = tuple(places.get(key, key) for key in agg.keys)
    return aggregate(project(source, columns), replace(agg, keys=hidden))


def _hide_constants(plan: Plan) -> Plan:
    constant = _constant(plan)
    columns = (_hide_value(f) if f.index in constant else f for f in all_fields(plan.width))
    return project(plan, tuple(columns))


def _hide_value(value: Expr) -> Expr:
    always = function("lt", (function("random", ()), float_literal(2.0)))
    return case([(always, value)], None)


@once_a_plan
def _constant(plan: Plan) -> frozenset[int]:
    """The columns of a plan that DataFusion may take for constant: those of conditions, of
    literals, and of single rows."""
    every = frozenset(range(plan.width))
    if not isinstance(plan, Rel):
        return frozenset()
    if plan.kind == "read":
        return _of_read(plan, every)
    below = [_constant(source) for source in plan.inputs]
    if plan.kind == "filter":
        return below[0] | fields(plan.exprs[0])
    if plan.kind == "project":
        computed = ((i, e) for i, e in enumerate(plan.exprs) if fields(e) <= below[0])
        return frozenset(i for i, e in computed if not (is_volatile(e) or has_window(e)))
    if plan.kind == "aggregate":
        keys = aggregation(plan).keys
        found = frozenset(i for i, key in enumerate(keys) if fields(key) <= below[0])
        return found if keys else every
    if plan.kind == "fetch":
        return every if fetch_bounds(plan)[1] == 1 else below[0]
    if plan.kind in ("join", "cross"):
        return _of_join(plan, below)
    if plan.kind == "set":
        return frozenset().union(*below)
    return below[0] if plan.kind == "sort" else frozenset()


def _of_read(plan: Rel, every: frozenset[int]) -> frozenset[int]:
    read = RelMessage.FromString(plan.template).read
    names = read.named_table.names
    if not names or is_leaf(names):
        return every
    return frozenset().union(*map(fields, plan.exprs))


def _of_join(plan: Rel, below: list[frozenset[int]]) -> frozenset[int]:
    left = plan.inputs[0].width
    found = {*below[0], *(i + left for i in below[1])}
    for term in terms_of(plan):
        if isinstance(term, Node) and term.name in KEY_COMPARISONS and fields(term) & found:
            found |= fields(term)
    inside = ((0, i) if i < left else (1, i - left) for i in found)
    columns = {column: i for i, column in enumerate(outputs(plan))}
    return frozenset(columns[c] for c in inside if c in columns)
