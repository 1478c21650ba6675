"""The side of a join with fewer rows below its blocks: those with a partner on the other side."""

from __future__ import annotations

from collections.abc import Sequence

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import boolean_literal, function, literal, table_names
from blendfusion.planner.ir.joins import is_join, join_type
from blendfusion.planner.ir.lineage import over, passed_on
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    fields,
    has_window,
    is_volatile,
    is_volatile_block,
    literal_like,
    needs_model,
    once_a_plan,
    windows,
    with_input,
)
from blendfusion.planner.ir.traversal import asks_anything, subplans
from blendfusion.planner.ir.windows import order_of
from blendfusion.planner.stages.join_partners import inline_terms, small, steady, with_partner
from blendfusion.planner.stages.products import factors
from blendfusion.planner.stages.supersets import Superset

DROPS_LEFT = ("inner", "left_semi", "right_semi", "right", "right_anti")
"""Joins that do not need a row of the left without a partner on the right."""
DROPS_RIGHT = ("inner", "left_semi", "right_semi", "left", "left_anti", "left_mark")
_CROSSED = ("join", "cross", "project", "filter")
_PASSABLE = ("project", "filter", "sort", "fetch", "aggregate")


def join_terms(plan: Rel) -> list[Expr]:
    """The conjuncts of a join's condition that read anything."""
    return [t for e in plan.exprs for t in conjuncts(e) if not literal_like(t)]


def known_terms(terms: Sequence[Expr], width: int, other: Superset) -> list[Expr]:
    """The terms that read, after the first ``width`` columns, those that a superset knows."""
    return [t for t in terms if {i - width for i in fields(t) if i >= width} <= other.readable]


def reduce_side(side: Plan, terms: Sequence[Expr], other: Plan, *, deep: bool = False) -> Plan:
    """``side`` with fewer rows below its blocks, also those below joins if ``deep``; the terms read
    its columns, then the other's."""
    if not asks_anything(side):
        return side
    if not (_has_block_in_joins if deep else _has_block)(side):
        return side
    partner = small(steady(other))
    if partner is None:
        return side
    usable = [t for t in (*terms, *_present(terms, side.width)) if not is_volatile(t)]
    return _push_down(side, usable, partner, deep) or side


def _present(terms: Sequence[Expr], width: int) -> tuple[Expr, ...]:
    """Conditions that a row of the other side must meet to match anything, whatever a model
    answers: keys that are not NULL."""
    found = []
    for term in terms:
        if isinstance(term, Node) and term.name == "equal":
            for child in term.children:
                read = fields(child)
                if read and min(read) >= width:
                    found.append(function("is_not_null", (child,)))
    return tuple(dict.fromkeys(found))


@once_a_plan
def _has_block(plan: Plan) -> bool:
    """Whether a reduction of ``plan`` meets a block with calls above the next join."""
    if isinstance(plan, Block) and plan.calls_here:
        return True
    return _is_passable(plan) and _has_block(plan.inputs[0])


@once_a_plan
def _has_block_in_joins(plan: Plan) -> bool:
    """Whether a reduction of ``plan`` meets a block with calls below a join."""
    if _is_passable(plan):
        return _has_block_in_joins(plan.inputs[0])
    if not is_join(plan):
        return False
    return any(_has_block(side) or _has_block_in_joins(side) for side in plan.inputs)


def _is_passable(plan: Plan) -> bool:
    return isinstance(plan, Block) or (isinstance(plan, Rel) and plan.kind in _PASSABLE)


def _push_down(plan: Plan, terms: Sequence[Expr], partner: Plan, deep: bool) -> Plan | None:
    """``plan`` with a semi join below its lowest block with a call; ``plan`` itself if one is there
    already, None without such a block."""
    if isinstance(plan, Block):
        return _below_block(plan, terms, partner, deep)
    if not isinstance(plan, Rel):
        return None
    if deep and plan.kind in ("join", "cross"):
        return _below_join(plan, terms, partner)
    if plan.kind == "project":
        if any(map(has_window, plan.exprs)):
            return _below_windows(plan, terms, partner, deep)
        inner = inline_terms(terms, plan.exprs, plan.width, plan.inputs[0].width)
    elif plan.kind in ("filter", "sort"):
        inner = list(terms)
    elif plan.kind == "fetch":
        inner = []  # all of its rows, or none
    elif plan.kind == "aggregate":
        agg = aggregation(plan)
        if agg.n_before_measures != len(agg.keys):
            return None  # several grouping sets: a row belongs to several groups
        by_key = [t for t in terms if _reads(t, plan.width) <= set(range(len(agg.keys)))]
        keys = (*agg.keys, *(boolean_literal(True) for _ in range(plan.width - len(agg.keys))))
        inner = inline_terms(by_key, keys, plan.width, plan.inputs[0].width)
    else:
        return None
    return _with_input(plan, _push_down(plan.inputs[0], inner, partner, deep))


def _below_windows(plan: Rel, terms: Sequence[Expr], partner: Plan, deep: bool) -> Plan | None:
    """Windows whose partitions have a partner, by terms that read their keys alone: such a
    partition has all of its rows, or none."""
    found = [w for e in plan.exprs for w in windows(e) if isinstance(w, Node)]
    partitions = [set(order_of(w).partitions) for w in found]
    keys = set.intersection(*partitions)
    own = {i for i, e in enumerate(plan.exprs) if e in keys and not needs_model(e)}
    by_key = [t for t in terms if _reads(t, plan.width) and _reads(t, plan.width) <= own]
    if not by_key:
        return None
    columns = (e if i in own else boolean_literal(True) for i, e in enumerate(plan.exprs))
    inner = inline_terms(by_key, tuple(columns), plan.width, plan.inputs[0].width)
    return _with_input(plan, _push_down(plan.inputs[0], inner, partner, deep))


def _below_join(join: Rel, terms: Sequence[Expr], partner: Plan) -> Plan | None:
    """The join with those sides reduced whose columns a term reads. A side that asks nothing is
    reduced, too, since it is the partner of one that does. Without such a side, no row matters
    unless the partner has any. None if nothing asks below."""
    reduced_join: Rel | Block = join
    for side, inner in _by_side(join, terms, partner).items():
        below = join.inputs[side]
        new = _push_down(below, inner, partner, True)
        if new is None and inner and _is_partner(join, side):
            new = keep_partners(below, inner, partner)
        if new is not None:
            reduced_join = with_input(reduced_join, side, new)
    return None if reduced_join is join else reduced_join


def _by_side(join: Rel, terms: Sequence[Expr], partner: Plan) -> dict[int, list[Expr]]:
    """The terms over the sides whose rows the join passes on; both sides without terms if no term
    reads such a side."""
    own: dict[int, list[Expr]] = {}
    for side, columns in passed_on(join).items():
        width = join.inputs[side].width
        around = {join.width + i: Field(width + i) for i in range(partner.width)}
        moved = (over(t, {**columns, **around}) for t in terms)
        found = [t for t in moved if t is not None and min(fields(t), default=width) < width]
        if found:
            own[side] = found
    return own or {0: [], 1: []}


def _is_partner(join: Rel, side: int) -> bool:
    """Whether a side of a join asks nothing, and its rows are those that the other may be about."""
    drops = DROPS_RIGHT if side == 0 else DROPS_LEFT
    ours, other = join.inputs[side], join.inputs[1 - side]
    return join_type(join) in drops and not asks_anything(ours) and asks_anything(other)


def _below_block(block: Block, terms: Sequence[Expr], partner: Plan, deep: bool) -> Plan | None:
    if is_volatile_block(block):
        return None
    kept = () if block.has_limit else terms  # below a limit, all of the rows or none
    inner = inline_terms(kept, block.select, block.width, block.source.width)
    source = _push_down(block.source, inner, partner, deep)
    if source is None and block.calls_here:
        source = keep_partners(block.source, inner, partner)
    return _with_input(block, source)


def _with_input(plan: Rel | Block, below: Plan | None) -> Plan | None:
    """``plan`` over ``below``: itself if that is its input, None without one."""
    return None if below is None else plan.with_inputs(below)


def _reads(term: Expr, width: int) -> set[int]:
    return {i for i in fields(term) if i < width}


def keep_partners(source: Plan, terms: Sequence[Expr], partner: Plan) -> Plan:
    """The rows of ``source`` with a partner; ``source`` itself if all have one already. Joins keep
    no order, so a sort, which a limit above may count on, stays above."""
    if isinstance(source, Rel) and _is_sorted(source):
        if any(map(has_window, source.exprs)):
            return source
        below = source.inputs[0]
        if source.kind == "project":
            terms = inline_terms(terms, source.exprs, source.width, below.width)
        return source.with_inputs(keep_partners(below, terms, partner))
    sunk = _sink_below_product(source, terms, partner)
    if sunk is not None:
        return sunk
    kept = with_partner(source, terms, partner, "left_semi")
    return source if _is_kept(source, kept) else kept


def _sink_below_product(source: Plan, terms: Sequence[Expr], partner: Plan) -> Plan | None:
    """A product of which the one side is reduced that the terms read; None of others."""
    if not isinstance(source, Rel) or source.kind not in _CROSSED or factors(source) < 2:
        return None
    if not terms or any(map(is_volatile, source.exprs)):
        return None
    for side, columns in passed_on(source).items():
        below = source.inputs[side]
        around = {source.width + i: Field(below.width + i) for i in range(partner.width)}
        own = [t for t in (over(t, {**columns, **around}) for t in terms) if t is not None]
        if len(own) == len(terms) and all(min(fields(t)) < below.width for t in own):
            return with_input(source, side, keep_partners(below, own, partner))
    return None


def _is_sorted(plan: Plan) -> bool:
    """The rows of ``plan`` are in the order of a sort."""
    while isinstance(plan, Rel) and plan.kind in ("project", "filter"):
        plan = plan.inputs[0]
    return isinstance(plan, Rel) and plan.kind == "sort"


def _is_kept(source: Plan, kept: Rel) -> bool:
    """Whether ``source`` already keeps, by the same condition, rows with a partner from the same
    tables."""
    return (
        isinstance(source, Rel)
        and source.kind == "join"
        and (source.template, source.exprs) == (kept.template, kept.exprs)
        and (source.inputs[1] == kept.inputs[1] or _is_from_fewer(source, kept))
    )


def _is_from_fewer(source: Rel, kept: Rel) -> bool:
    """Whether both read columns of their partners, the first no other tables than the second."""
    is_row = any(literal(e) is True for e in kept.exprs)
    return not is_row and _tables(source.inputs[1]) <= _tables(kept.inputs[1])


def _tables(plan: Plan) -> set[tuple[str, ...]]:
    return {table_names(p) for p in subplans(plan) if isinstance(p, Rel) and p.kind == "read"}
