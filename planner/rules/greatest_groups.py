"""Numbers groups that are compared with the greatest value of all groups.

before: ``filter n = (SELECT max(n) FROM g)`` over groups ``g`` about which a model is asked; also
        ``>=``, and ``min`` with ``<=``
after:  ``filter rank = 1 AND n IS NOT NULL`` over ``rank() OVER (ORDER BY n DESC) AS rank`` over
        ``g``
safe:   ``g`` has the same rows each time it is read, so its greatest value is that of the first
        ones. Not for floating-point numbers, of which DataFusion finds others, and so not for
        sums, which depend on the division of rows among threads; nor for keys.
"""

from __future__ import annotations

from collections.abc import Iterator

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import filter_rows, function, integer_literal, project
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    conjuncts,
    inline,
)
from blendfusion.planner.ir.sorts import ASC, DESC
from blendfusion.planner.ir.traversal import asks_anything, transform
from blendfusion.planner.ir.windows import window
from blendfusion.planner.needs.compared_values import has_one_row
from blendfusion.planner.stages.join_partners import exact

_COMPARISONS = {"max": ("equal", "gte"), "min": ("equal", "lte")}
"""The comparisons of a value that hold for no other than the greatest and the least one."""
_MIRRORED = {"gte": "lte", "lte": "gte"}
_DIRECTIONS = {"max": DESC, "min": ASC}
_OF_THEIR_ARGUMENTS = ("min", "max")
"""Aggregates of the type of what they read."""


def greatest_groups(plan: Plan) -> Plan:
    """The whole plan, before a subquery is a column."""
    return transform(plan, _with_ranks, ("filter",))


def _with_ranks(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or not plan.has_subqueries:
        return plan
    groups, terms = plan.inputs[0], conjuncts(plan.exprs[0])
    columns, below = below_projections(groups)
    if not asks_anything(below) or exact(groups) is None:
        return plan
    for place, term in enumerate(terms):
        for value, name in _extremes(term, columns, below):
            rank = window("rank", (), (value,), (_DIRECTIONS[name],))
            ranked = project(groups, (*all_fields(groups.width), rank))
            is_first = function("equal", (Field(groups.width), integer_literal(1)))
            first = filter_rows(ranked, (is_first, function("is_not_null", (value,))))
            kept = project(first, all_fields(groups.width))
            rest = (*terms[:place], *terms[place + 1 :])
            return filter_rows(kept, rest) if rest else kept
    return plan


def _extremes(term: Expr, columns: tuple[Expr, ...], below: Plan) -> Iterator[tuple[Expr, str]]:
    """(a value of the groups, the aggregate that it is compared with)"""
    if not isinstance(term, Node) or len(term.children) != 2:
        return
    one, other = term.children
    for value, greatest, comparison in (
        (one, other, term.name),
        (other, one, _MIRRORED.get(term.name, term.name)),
    ):
        found = _aggregate_of_all(greatest, below)
        if found is None or comparison not in _COMPARISONS.get(found[0], ()):
            continue
        if found[1] == inline(value, columns) and _is_exact(found[1], below):
            yield value, found[0]


def _aggregate_of_all(subquery: Expr, below: Plan) -> tuple[str, Expr] | None:
    """(the name of the aggregate of all rows of ``below`` that a subquery is, what it reads of
    them)"""
    if not isinstance(subquery, Node) or not subquery.rels or not has_one_row(subquery):
        return None
    shown, rows = below_projections(subquery.rels[0])
    assert isinstance(rows, Rel)
    measure, *others = aggregation(rows).measures
    if others or shown != (Field(0),):
        return None
    columns, read = below_projections(rows.inputs[0])
    if len(measure.exprs) != 1 or measure.n_args != 1 or read != below:
        return None
    return measure.name, inline(measure.args[0], columns)


def _is_exact(value: Expr, below: Plan) -> bool:
    """Whether a value is an aggregate of groups whose values are equal everywhere, or nowhere."""
    while isinstance(below, Rel) and below.kind == "filter":
        below = below.inputs[0]
    if not isinstance(below, Rel) or below.kind != "aggregate" or not isinstance(value, Field):
        return False
    agg = aggregation(below)
    place = value.index - agg.n_before_measures
    if place < 0:
        return False
    measure = agg.measures[place]
    if measure.name in _OF_THEIR_ARGUMENTS:
        return not may_be_real(measure.args[0], below.inputs[0])
    return measure.name == "count"
