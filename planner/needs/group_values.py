"""Values of all groups that subqueries compute, as windows over the groups."""

from __future__ import annotations

from typing import NamedTuple

from substrait.proto import Rel as RelMessage

from blendfusion.planner.ir.aggregates import aggregation, is_of_distinct
from blendfusion.planner.ir.builders import filter_rows, project, table_names
from blendfusion.planner.ir.lineage import may_be_real
from blendfusion.planner.ir.messages import serialize
from blendfusion.planner.ir.nodes import (
    Expr,
    Field,
    Measure,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    conjuncts,
    has_window,
    inline,
    is_volatile,
    substitute,
    walk,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import window
from blendfusion.planner.needs.compared_values import has_one_row
from blendfusion.planner.needs.groups import OF_RANGES
from blendfusion.planner.needs.numbered_groups import is_count
from blendfusion.planner.stages.join_partners import exact

_OF_PARTS = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""Aggregates of all rows, and what they are of those of the groups."""


class _Rows(NamedTuple):
    """Rows as columns over a relation that is no projection and no filter, under conditions."""

    base: Plan
    terms: tuple[Expr, ...]
    columns: tuple[Expr, ...]


def with_window_values(plan: Rel) -> Plan | None:
    """A filter or a projection of groups that compares them with values of subqueries over the same
    groups, or over their rows, with windows in place of these; None of others."""
    if not plan.has_subqueries or exact(plan.inputs[0]) is None:
        return None
    groups, terms, columns = _rows_of(plan.inputs[0])
    if not isinstance(groups, Rel) or groups.kind != "aggregate" or any(e.rels for e in columns):
        return None
    if not aggregation(groups).one_group_a_row or any(map(_is_placed, plan.exprs)):
        return None
    exprs = tuple(inline(e, columns) for e in plan.exprs)
    if plan.kind == "filter":
        terms = (*terms, *(term for e in exprs for term in conjuncts(e)))
    values = dict.fromkeys(p for e in exprs for p in walk(e) if isinstance(p, Node) and p.rels)
    found = {value: _of_groups(value, groups) for value in values}
    new = {value: own for value, own in found.items() if own is not None}
    below = {frozenset(own.terms) for own in new.values()}
    kept = frozenset[Expr]().union(*below)
    if len(below) != 1 or not kept <= {*terms}:
        return None
    own = tuple(own.columns[0] for own in new.values())
    rows: Plan = filter_rows(groups, tuple(term for term in dict.fromkeys(terms) if term in kept))
    rows = project(rows, (*all_fields(groups.width), *own))
    place: dict[Expr, Expr] = {value: Field(groups.width + i) for i, value in enumerate(new)}
    rest = tuple(substitute(e, place.get) for e in dict.fromkeys(terms) if e not in kept)
    shown = columns if plan.kind == "filter" else tuple(substitute(e, place.get) for e in exprs)
    return project(filter_rows(rows, rest), shown)


def _is_placed(expr: Expr) -> bool:
    return is_volatile(expr) or has_window(expr)


def _of_groups(value: Node, groups: Rel) -> _Rows | None:
    """The value of a subquery over groups, or over their rows, by windows over those of the groups
    that pass some terms."""
    if not has_one_row(value) or not asks_anything(value.rels[0]):
        return None
    (shown,), rows = below_projections(value.rels[0])
    assert isinstance(rows, Rel)
    base, terms, columns = _rows_of(rows.inputs[0])
    read = base if isinstance(base, Rel) and base.kind == "aggregate" else None
    place = None if read is None else _places(read, groups)
    known: list[Expr | None]
    if place is not None:
        over = tuple(inline(e, place) for e in columns)
        own = aggregation(rows).change(lambda e: inline(e, over)).measures
        terms = tuple(inline(e, place) for e in terms)
        known = [_of_values(measure, groups) for measure in own]
    else:
        terms, known = (), _of_parts(rows, groups)
    new = [window for window in known if window is not None]
    if not new or len(new) < len(known):
        return None
    return _Rows(groups, terms, (inline(shown, tuple(new)),))


def _of_values(measure: Measure, groups: Plan) -> Expr | None:
    if measure.name not in OF_RANGES or len(measure.exprs) != 1 or measure.n_args != 1:
        return None
    value = measure.exprs[0]
    own = value.children[0] if isinstance(value, Node) and value.name == "cast" else value
    if measure.name != "count" and may_be_real(value, groups) and not is_count(own, groups):
        return None
    return None if is_of_distinct(measure) else window(measure.name, (), (), (), measure.exprs)


def _of_parts(rows: Rel, groups: Rel) -> list[Expr | None]:
    """The aggregates of all rows by those of the groups, where both read the same rows."""
    parts, whole = _keys_and_measures(groups), _keys_and_measures(rows)
    first = aggregation(groups).n_before_measures
    found: list[Expr | None] = []
    for measure in whole[2]:
        i = parts[2].index(measure) if measure in parts[2] and parts[0] == whole[0] else -1
        adds = i >= 0 and _adds(measure, groups, Field(first + i))
        found.append(
            window(_OF_PARTS[measure.name], (), (), (), (Field(first + i),)) if adds else None
        )
    return found


def _adds(measure: Measure, groups: Rel, value: Field) -> bool:
    """Whether an aggregate of the parts of all rows is that of the rows, in its type."""
    if measure.name not in _OF_PARTS or is_of_distinct(measure):
        return False
    inner = RelMessage.FromString(measure.template).aggregate.measures[0].measure
    whole = measure.name != "sum" or inner.output_type.WhichOneof("kind") == "i64"
    return measure.name == "count" or (whole and not may_be_real(value, groups))


def _places(read: Rel, groups: Rel) -> tuple[Expr, ...] | None:
    """The columns of groups in ``groups``, which has the same ones; None of other groups."""
    own, other = _keys_and_measures(read), _keys_and_measures(groups)
    if own[0] != other[0] or {*own[1]} != {*other[1]} or not {*own[2]} <= {*other[2]}:
        return None
    if not aggregation(read).one_group_a_row:
        return None
    keys = tuple(Field(other[1].index(key)) for key in own[1])
    return (*keys, *(Field(len(other[1]) + other[2].index(m)) for m in own[2]))


def _keys_and_measures(
    groups: Rel,
) -> tuple[tuple[Plan, frozenset[Expr]], tuple[Expr, ...], tuple[Measure, ...]]:
    """The rows that an aggregate reads, its keys and its measures over all columns of these."""
    base, terms, columns = _rows_of(groups.inputs[0])
    own = aggregation(groups).change(lambda e: inline(e, columns))
    return (base, frozenset(terms)), own.keys, own.measures


def _rows_of(plan: Plan) -> _Rows:
    """The rows of a plan over the table below its projections and filters, with all its columns, or
    over another relation there."""
    columns, below = below_projections(plan)
    if isinstance(below, Rel) and below.kind == "filter":
        base, terms, inner = _rows_of(below.inputs[0])
        own = (inline(e, inner) for e in conjuncts(below.exprs[0]))
        return _Rows(base, (*terms, *own), tuple(inline(e, inner) for e in columns))
    if isinstance(below, Rel) and below.kind == "read" and table_names(below) and not below.exprs:
        message = RelMessage.FromString(below.template)
        if message.read.HasField("projection"):
            read = tuple(Field(i.field) for i in message.read.projection.select.struct_items)
            message.read.ClearField("projection")
            whole = Rel("read", serialize(message), (), (), len(message.read.base_schema.names))
            return _Rows(whole, (), tuple(inline(e, read) for e in columns))
    return _Rows(below, (), columns)
