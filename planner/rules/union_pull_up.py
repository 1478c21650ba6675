"""Merges blocks in the branches of a UNION ALL into one block above it.

before: ``union all`` of ``block(t) where llm(t.x)`` and ``block(u) where llm(u.y)``, perhaps below
        a limit that DataFusion copied into the branches
after:  one block over the union of the sources, with the column that the call reads. Calls that
        differ see only the rows of their branches: ``where branch <> 1 OR llm(x)``
safe:   a union passes rows on as they are, and each still meets the predicates of its own branch. A
        branch's limit goes only where the limit above takes no more rows than it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from blendfusion.planner.ir.builders import (
    case,
    fetch_bounds,
    function,
    in_list,
    integer_literal,
)
from blendfusion.planner.ir.joins import is_union_all
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    all_fields,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.ir.union_columns import UnionColumns, is_cast

_MOST_OWN_COLUMNS = 32
"""Maximum columns that not all branches have: each row of the union would carry NULLs for the
others."""


def union_pull_up(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "fetch" and is_union_all(plan.inputs[0]):
        return _without_limits_of_branches(plan)
    if is_union_all(plan) and any(map(_movable, plan.inputs)):
        return _above(plan)
    return plan


def _movable(branch: Plan) -> bool:
    """Whether a branch is a block with a call that may run later."""
    return isinstance(branch, Block) and may_move(branch) and branch.calls_here


def _without_limits_of_branches(plan: Rel) -> Plan:
    offset, count = fetch_bounds(plan)
    union = plan.inputs[0]
    if count is None:
        return plan
    enough = offset + count
    branches = tuple(
        replace(b, count=None)
        if isinstance(b, Block)
        and b.offset == 0
        and b.count is not None
        and b.count >= enough
        and not _is_sorted(b.source)
        else b
        for b in union.inputs
    )
    assert isinstance(union, Rel)
    return plan.with_inputs(union.with_inputs(*branches))


def _is_sorted(plan: Plan) -> bool:
    """Whether the rows have an order that a limit above may rely on."""
    while isinstance(plan, Block) or (isinstance(plan, Rel) and plan.kind in ("project", "filter")):
        plan = plan.inputs[0]
    return isinstance(plan, Rel) and plan.kind in ("sort", "fetch")


def _above(plan: Rel) -> Plan:
    branches = [b if _movable(b) else Block(b, (), all_fields(b.width)) for b in plan.inputs]
    blocks = [b for b in branches if isinstance(b, Block)]
    columns = UnionColumns([b.source for b in blocks])
    where = _where(blocks, columns)
    select = tuple(
        _column(exprs, columns) for exprs in zip(*(b.select for b in blocks), strict=True)
    )
    if sum(not isinstance(what, tuple) for what in columns.found) > _MOST_OWN_COLUMNS:
        return plan
    sources = columns.sources()
    union = replace(plan, inputs=sources, width=sources[0].width)
    return Block(union, where, select)


def _where(blocks: Sequence[Block], columns: UnionColumns) -> tuple[Expr, ...]:
    if len({len(b.where) for b in blocks}) == 1:
        rows = zip(*(b.where for b in blocks), strict=True)
        together = [_unite(terms, columns) for terms in rows]
        if all(t is not None for t in together):
            return tuple(t for t in together if t is not None)
    branches = _branches_of(
        (columns.own(i, term), i) for i, block in enumerate(blocks) for term in block.where
    )
    return tuple(
        own if len(those) == len(blocks) else function("or", (_is_none_of(those, columns), own))
        for own, those in branches.items()
    )


def _branches_of(terms: Iterable[tuple[Expr, int]]) -> dict[Expr, list[int]]:
    """The branches that have each term, in order of its first use."""
    found: dict[Expr, list[int]] = {}
    for term, branch in terms:
        if branch not in (known := found.setdefault(term, [])):
            known.append(branch)
    return found


def _is_none_of(branches: Sequence[int], columns: UnionColumns) -> Expr:
    numbers = [integer_literal(i + 1) for i in branches]
    if len(numbers) == 1:
        return function("not_equal", (columns.tag, numbers[0]))
    return function("not", (in_list(columns.tag, numbers),))


def _column(exprs: Sequence[Expr], columns: UnionColumns) -> Expr:
    """One column of the union: computed in the branches, or the same call on a common column, or
    each branch's expression, selected by the branch's number."""
    if not any(map(needs_model, exprs)):
        return columns.common(exprs)
    together = _unite(exprs, columns)
    if together is not None:
        return together
    branches = _branches_of((columns.own(i, e), i) for i, e in enumerate(exprs))
    *first, last = branches
    return case([(_is_any_of(branches[own], columns), own) for own in first], last)


def _is_any_of(branches: Sequence[int], columns: UnionColumns) -> Expr:
    numbers = [integer_literal(i + 1) for i in branches]
    if len(numbers) == 1:
        return function("equal", (columns.tag, numbers[0]))
    return in_list(columns.tag, numbers)


def _unite(exprs: Sequence[Expr], columns: UnionColumns) -> Expr | None:
    """One expression for all branches, if they differ only in the values of their calls."""
    first = exprs[0]
    if isinstance(first, Ask):
        if not all(isinstance(e, Ask) and e.call == first.call for e in exprs):
            return None
        if any(is_cast(arg) for e in exprs if isinstance(e, Ask) for arg in e.args):
            return None
        rows = zip(*(e.args for e in exprs if isinstance(e, Ask)), strict=True)
        args = [
            _unite(arg, columns) if any(map(needs_model, arg)) else columns.common(arg)
            for arg in rows
        ]
        if any(a is None for a in args):
            return None
        return replace(first, args=tuple(a for a in args if a is not None))
    if literal_like(first) and all(e == first for e in exprs):
        return first
    if not isinstance(first, Node) or first.rels or not needs_model(first):
        return None
    same = all(
        isinstance(e, Node)
        and (e.name, e.template, len(e.children))
        == (first.name, first.template, len(first.children))
        for e in exprs
    )
    if not same:
        return None
    rows = zip(*(e.children for e in exprs if isinstance(e, Node)), strict=True)
    children = [_unite(child, columns) for child in rows]
    if any(c is None for c in children):
        return None
    return replace(first, children=tuple(c for c in children if c is not None))
