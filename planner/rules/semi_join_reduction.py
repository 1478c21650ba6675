"""What a join will drop is not asked: a block below one first keeps the rows that have a partner.

before: ``t semi join (block(u) where llm(u.x)) on t.k = u.k``; also below an aggregate by ``u.k``, on
        the padded side of an outer join, or with the call in the join's condition
after:  the block over ``u semi join t on u.k = t.k``; without a condition to go by, over ``u`` if
        ``t`` has any row at all
safe:   rows without a partner appear in no result of such a join. The partner may hold more rows than
        the join will see, never fewer: limits are left out of it, and it must give the same rows
        each time, since it runs a second time here.
source: semi-join reduction, Bernstein and Chiu 1981
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.leaf import QUERIES, leaf_text
from blendfusion.planner.plan import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    Stored,
    aggregation,
    boolean_literal,
    conjuncts,
    fields,
    filtered,
    function,
    has_window,
    inline,
    is_union_all,
    is_volatile,
    join_type,
    joined,
    limited,
    literal_like,
    needs_model,
    parts,
    projected,
    shift,
    substitute,
    table_names,
)
from blendfusion.planner.tree import asks_anything, expressions, subplans

_DROPS_LEFT = ("inner", "left_semi", "right_semi", "right", "right_anti")
"""Joins in which a row of the left without a partner on the right changes nothing."""
_DROPS_RIGHT = ("inner", "left_semi", "right_semi", "left", "left_anti", "left_mark")
_GROWS_WITH_LEFT = ("inner", "left", "left_semi", "right_semi", "left_anti", "left_mark")
"""Joins that lose no row when the left gets more."""
_GROWS_WITH_RIGHT = ("inner", "right", "left_semi", "right_semi", "right_anti")
_PASSABLE = ("project", "filter", "sort", "fetch", "aggregate")
_MOST_RELATIONS = 64
"""A partner with more than that is not run a second time."""
_REPEATABLE = ("count", "min", "max", "bool_and", "bool_or")
"""Aggregates that come out the same however their rows are divided among threads."""


def semi_join_reduction(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or plan.kind not in ("join", "cross"):
        return plan
    left, right = plan.inputs
    kind = join_type(plan)
    terms = [t for e in plan.exprs for t in conjuncts(e) if not literal_like(t)]
    new_left, new_right = left, right
    bare = _stripped(right)
    if kind in _DROPS_LEFT and not asks_anything(bare):
        readable = _plain_columns(right)
        new_left = _reduced(left, [t for t in terms if _reads_of(t, left.width) <= readable], bare)
    if kind in _DROPS_RIGHT:
        # The left side as it is: it runs anyway, and what it drops has no partner either.
        around = [turned(t, left.width, right.width) for t in terms]
        new_right = _reduced(right, around, new_left)
    if new_left is left and new_right is right:
        return plan
    return replace(plan, inputs=(new_left, new_right))


def turned(term: Expr, n_left: int, n_right: int) -> Expr:
    """The term with the columns of the right side before those of the left."""

    def place(part: Expr) -> Expr | None:
        if not isinstance(part, Field):
            return None
        return Field(part.index - n_left if part.index >= n_left else part.index + n_right)

    return substitute(term, place)


def _reads_of(term: Expr, width: int) -> set[int]:
    """The columns that a term reads of what stands behind the first ``width``."""
    return {i - width for i in fields(term) if i >= width}


def _reduced(side: Plan, terms: Sequence[Expr], other: Plan) -> Plan:
    """``side`` with fewer rows below its blocks; the terms read its columns, then the other's."""
    if not any(isinstance(p, Block) and _asks(p) for p in _line(side)):
        return side
    partner = _small(_steady(other))
    if partner is None:
        return side
    usable = [t for t in (*terms, *_present(terms, side.width)) if not is_volatile(t)]
    return _pushed(side, usable, partner) or side


def _present(terms: Sequence[Expr], width: int) -> tuple[Expr, ...]:
    """What a row of the other side must have to match anything, whatever a model says: a key that is
    not NULL."""
    found = []
    for term in terms:
        if isinstance(term, Node) and term.name == "equal":
            for child in term.children:
                read = fields(child)
                if read and min(read) >= width:
                    found.append(function("is_not_null", (child,)))
    return tuple(dict.fromkeys(found))


def _line(plan: Plan) -> list[Plan]:
    """``plan`` and what lies below it as far as a reduction may sink."""
    found = [plan]
    while isinstance(plan, Block) or (isinstance(plan, Rel) and plan.kind in _PASSABLE):
        plan = plan.inputs[0]
        found.append(plan)
    return found


def _asks(block: Block) -> bool:
    return any(map(needs_model, (*block.where, *block.select)))


# --- sinking -------------------------------------------------------------------------------------


def _pushed(plan: Plan, terms: Sequence[Expr], partner: Plan) -> Plan | None:
    """``plan`` with a semi join below its lowest block that asks; ``plan`` itself if one is there
    already, None if there is no such block."""
    if isinstance(plan, Block):
        return _below_block(plan, terms, partner)
    if not isinstance(plan, Rel):
        return None
    if plan.kind == "project":
        if any(map(has_window, plan.exprs)):
            return None
        inner = inlined(terms, plan.exprs, plan.width, plan.inputs[0].width)
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
        inner = inlined(by_key, keys, plan.width, plan.inputs[0].width)
    else:
        return None
    below = _pushed(plan.inputs[0], inner, partner)
    if below is None or below is plan.inputs[0]:
        return None if below is None else plan
    return plan.with_inputs(below)


def _below_block(block: Block, terms: Sequence[Expr], partner: Plan) -> Block | None:
    if any(map(is_volatile, (*block.where, *block.select))):
        return None
    kept = () if block.limited else terms  # below a limit, all of the rows or none
    inner = inlined(kept, block.select, block.width, block.source.width)
    source = _pushed(block.source, inner, partner)
    if source is None and _asks(block):
        source = _kept(block.source, inner, partner)
    if source is None or source is block.source:
        return None if source is None else block
    return replace(block, source=source)


def inlined(terms: Sequence[Expr], columns: Sequence[Expr], width: int, below: int) -> list[Expr]:
    """The terms over a relation as terms over its input, those that a model must decide left out."""
    place = (*columns, *(Field(below + i) for i in range(max(map(_most, terms), default=0) + 1)))
    moved = (inline(t, place) for t in terms)
    return [t for t in moved if not needs_model(t) and not is_volatile(t) and fields(t)]


def _most(term: Expr) -> int:
    return max(fields(term), default=0)


def _reads(term: Expr, width: int) -> set[int]:
    return {i for i in fields(term) if i < width}


def _kept(source: Plan, terms: Sequence[Expr], partner: Plan) -> Plan:
    """The rows of ``source`` with a partner; ``source`` itself if it holds no others already."""
    kept = with_partner(source, terms, partner, "left_semi")
    return source if _is_kept(source, kept) else kept


def with_partner(source: Plan, terms: Sequence[Expr], partner: Plan, kind: str) -> Rel:
    """The semi or mark join of ``source`` with the columns of ``partner`` that the terms read; with any
    row of it, if they read none."""
    width = source.width
    both = tuple(dict.fromkeys(t for t in terms if min(fields(t)) < width))
    keys = {part for t in both for part in parts(t)}
    alone = dict.fromkeys(t for t in terms if min(fields(t)) >= width and not keys & {*parts(t)})
    rows = filtered(partner, tuple(shift(t, -width) for t in alone))
    used = sorted({i for t in both for i in fields(t) if i >= width})
    if not used:
        row = limited(projected(rows, (boolean_literal(True),)), 0, 1)
        return joined(source, row, both, kind)
    place = {i: Field(width + n) for n, i in enumerate(used)}
    moved = tuple(
        substitute(t, lambda p: place.get(p.index) if isinstance(p, Field) else None) for t in both
    )
    return joined(source, projected(rows, tuple(Field(i - width) for i in used)), moved, kind)


def _is_kept(source: Plan, kept: Rel) -> bool:
    """True if ``source`` keeps, by the same condition, rows with a partner from the same tables."""
    return (
        isinstance(source, Rel)
        and source.kind == "join"
        and (source.template, source.exprs) == (kept.template, kept.exprs)
        and _tables(source.inputs[1]) <= _tables(kept.inputs[1])
    )


def _tables(plan: Plan) -> set[tuple[str, ...]]:
    return {table_names(p) for p in subplans(plan) if isinstance(p, Rel) and p.kind == "read"}


# --- the partner ---------------------------------------------------------------------------------


def partner_of(other: Plan) -> Plan | None:
    """A plan with the rows of ``other``, or more, that asks nothing; None if there is none to be had."""
    bare = _stripped(other)
    return None if asks_anything(bare) else _small(_steady(bare))


def _small(plan: Plan | None) -> Plan | None:
    return None if plan is None or len(_relations(plan)) > _MOST_RELATIONS else plan


def _stripped(plan: Plan) -> Plan:
    """A block's rows before it filters, TRUE in place of what it asks: then it need not run first."""
    if not isinstance(plan, Block) or plan.limited:
        return plan
    blank = tuple(boolean_literal(True) if needs_model(e) else e for e in plan.select)
    return projected(plan.source, blank)


def _plain_columns(other: Plan) -> set[int]:
    if not isinstance(other, Block) or other.limited:
        return set(range(other.width))
    return {i for i, e in enumerate(other.select) if not needs_model(e)}


def _relations(plan: Plan) -> list[Plan]:
    """The relations that run again: blocks are stages, which run once."""
    if not isinstance(plan, Rel):
        return [plan]
    return [plan, *(p for below in plan.inputs for p in _relations(below))]


def _steady(plan: Plan) -> Plan | None:
    """``plan`` without its limits, where that can only add rows; None if it may come out otherwise
    when it runs again."""
    if isinstance(plan, Block | Stored):
        return plan
    if plan.kind == "fetch":
        return _steady(plan.inputs[0])
    if any(is_volatile(e) or has_window(e) for e in plan.exprs):
        return None
    if plan.kind in ("project", "filter", "cross") or is_union_all(plan):
        return _with_steady(plan, [_steady(p) for p in plan.inputs])
    if plan.kind == "sort":
        return _steady(plan.inputs[0])
    if plan.kind == "join":
        kind = join_type(plan)
        left, right = plan.inputs
        return _with_steady(
            plan,
            [
                _steady(left) if kind in _GROWS_WITH_LEFT else _exact(left),
                _steady(right) if kind in _GROWS_WITH_RIGHT else _exact(right),
            ],
        )
    return _exact(plan)


def _with_steady(plan: Rel, inputs: Sequence[Plan | None]) -> Plan | None:
    known = tuple(p for p in inputs if p is not None)
    return plan.with_inputs(*known) if len(known) == len(inputs) else None


def _exact(plan: Plan) -> Plan | None:
    """``plan`` if it gives the same rows whenever it runs."""
    for part in _relations(plan):
        if isinstance(part, Rel) and not _repeats(part):
            return None
    return plan


def _repeats(plan: Rel) -> bool:
    if plan.kind == "fetch" or any(is_volatile(e) or has_window(e) for e in expressions(plan)):
        return False
    if plan.kind == "read":
        return leaf_text(table_names(plan), QUERIES) is None
    return plan.kind != "aggregate" or all(
        m.name in _REPEATABLE for m in aggregation(plan).measures
    )
