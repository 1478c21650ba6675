"""Turns what is read of a block's rows into a plan that asks about no others."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from blendfusion.planner.ir.builders import cast_to_text, function
from blendfusion.planner.ir.joins import is_union_all
from blendfusion.planner.ir.necessary import ALWAYS, NEVER, any_of, to_fail
from blendfusion.planner.ir.nodes import (
    Block,
    Direction,
    Expr,
    Field,
    Plan,
    Rel,
    StoredRows,
    Take,
    all_fields,
    asks,
    fields,
    literal_like,
    may_move,
    needs_model,
)
from blendfusion.planner.ir.sorts import ASC, directions_of, sorted_by
from blendfusion.planner.ir.traversal import asks_anything, subplans
from blendfusion.planner.needs.need import Need, chain, change_each, equal_in_groups, over


def restrict(block: Block, need: Need) -> Block:
    """``block`` with the rows that are read, perhaps more."""
    if block.has_limit and need.takes and not need.ranks:
        return _with_fewer_rows(block, need.takes[0])
    if block.once or not may_move(block) or not block.calls_here:
        return block
    takes = () if _has_constant_branches(block.source) else takes_of(block, need)
    if takes and any(map(needs_model, block.where)):
        if not _orders_by_answers(block, need):
            return with_takes(block, takes)
        rows = with_takes(replace(block, select=all_fields(block.source.width)), takes)
        return replace(block, source=rows, where=())
    # No answer decides which rows these are.
    if takes and not block.where and not asks_anything(block.source):
        rows = Block(block.source, (), all_fields(block.source.width))
        return block.with_inputs(with_takes(rows, takes))
    return replace(block, once=True) if need.once and _may_differ(block) else block


def _with_fewer_rows(block: Block, take: Take) -> Block:
    """``block``, whose rows are limited, with only the first of them in the same order."""
    source = block.source
    own = over(take, dict(enumerate(block.select)))
    if own is None or own.per or own.ties or block.count is None or block.takes or block.until:
        return block
    if not isinstance(source, Rel) or source.kind != "sort":
        return block
    keys = tuple(zip(source.exprs, directions_of(source), strict=True))
    same = own.keys == keys[: len(own.keys)]
    return replace(block, count=min(block.count, own.count)) if same else block


def _has_constant_branches(source: Plan) -> bool:
    """Whether a UNION ALL has columns that are constant in a branch: DataFusion refuses some sorts
    of these."""
    unions = (p for p in subplans(source) if is_union_all(p)) if "set" in source.kinds else ()
    branches = (p for union in unions for p in union.inputs if not isinstance(p, StoredRows))
    return any(p.kind == "project" and any(map(literal_like, p.exprs)) for p in branches)


def _orders_by_answers(block: Block, need: Need) -> bool:
    """Whether rows are read in the order of answers of the block, which few rows may need then."""
    read = {i for take in need.takes for e in take.order for i in fields(e)}
    return any(needs_model(block.select[i]) for i in read)


def with_takes(block: Block, takes: Sequence[Take]) -> Block:
    """``block`` with its first rows in the order of ``takes``, as far as one order serves them; of
    equal rows, those come first that pass whatever the answers are."""
    own, keys = chain(takes, block.source)
    order: dict[Expr, Direction] = {}
    for key, direction in (*keys, *((e, ASC) for e in among_equal(block))):
        order.setdefault(key, direction)
    source = sorted_by(block.source, [*order], [*order.values()]) if order else block.source
    return replace(block, source=source, takes=own)


def takes_of(block: Block, need: Need) -> tuple[Take, ...]:
    """The need of the rows of a block, over its source; nothing that its answers decide."""
    known = {i: e for i, e in enumerate(block.select) if not needs_model(e)}
    if not may_move(block) or need.ranks:
        return ()
    takes = change_each(need.takes, lambda take: over(take, known))
    found = (plain(take, block.source) for take in takes)
    return tuple(take for take in takewhile(lambda own: own is not None, found) if take)


def plain(take: Take, rows: Plan) -> Take | None:
    """``take`` of some rows without keys that are equal in each group; None if it is of all."""
    one = equal_in_groups(take, rows)
    keys = tuple(key for key in take.keys if key[0] not in one)
    ties = sum(e not in one for e in take.order[: take.ties])
    if not (keys or take.per) or (take.ties and not ties) or (take.dense and not keys):
        return None
    return replace(take.by(keys), ties=ties)


def among_equal(block: Block) -> tuple[Expr, ...]:
    """The order in which a block is asked about rows that are equal in a query's order: first those
    that pass whatever the answers are, then by values, so that a second run asks nothing."""
    texts = dict.fromkeys(arg for e in block.where for ask in asks(e) for arg in ask.args)
    others = (t for t in texts if isinstance(cast_to_text(t) or t, Field))
    return (*_certain_first(block), *others)


def _certain_first(block: Block) -> tuple[Expr, ...]:
    """The order in which the rows of a block come first that pass whatever the answers are; none if
    there are none such."""
    fails = any_of([to_fail(term) for term in block.where])
    return () if fails in (ALWAYS, NEVER) else (function("is_true", (fails,)),)


def _may_differ(block: Block) -> bool:
    """Whether rows that are equal may have other answers, or need none."""
    if any(map(needs_model, block.select)):
        return False
    read = set().union(*(fields(e) for e in block.where if needs_model(e)))
    shown = {e.index for e in block.select if isinstance(e, Field)}
    return any(not _is_shown(block.source, i, shown) for i in read)


def _is_shown(plan: Plan, column: int, shown: Collection[int]) -> bool:
    """Whether a column is one of those that are ``shown``, or has the value of one."""
    if column in shown:
        return True
    if is_union_all(plan):
        return all(_is_shown(branch, column, shown) for branch in plan.inputs)
    if not isinstance(plan, Rel) or plan.kind != "project":
        return False
    own = plan.exprs[column]
    return literal_like(own) or own in [plan.exprs[i] for i in shown]
