"""Under a sort and a limit, asks only about the first rows of the side that the sort reads.

before: ``limit k`` over ``sort by l.d, r.e`` over ``(block select l.*, llm(l.x) AS a) left join r
        on a = r.c``
after:  the same with the block over ``l semi join first on l.d``, ``first`` being ``limit k`` over
        ``sort by l.d`` over ``l``; without ``r.e``, over ``first`` itself. Of an inner or semi
        join, ``first`` has the block's predicates and ``llm(l.x) IN (SELECT c FROM r)``, or the
        match of a join by meaning ``IS NOT NULL``, and the answer as a column
safe:   each row of that side comes at least once, so that the rows of the limit are among those of
        the first k, or have keys equal to theirs. For those ``l`` is read twice, and must have the
        same rows each time. The other side of an inner join asks nothing, and is read twice, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import function, in_rows, limit_rows, project
from blendfusion.planner.ir.joins import DROPS, join_type, keys_of, outputs
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    asks,
    asks_model,
    below_projections,
    conjuncts,
    fields,
    inline,
    is_kept,
    is_volatile,
    may_move,
    needs_model,
    over,
    substitute,
    with_input,
)
from blendfusion.planner.ir.sorts import directions_of, sorted_by
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.needs.reads import limit_over_sort
from blendfusion.planner.stages.join_partners import exact, small, with_partner

_ALL_COME = (("left",), ("right",))
"""Joins that have each row of their left side, and of their right side."""


def first_rows(plan: Plan) -> Plan:
    found = limit_over_sort(plan)
    if found is None:
        return plan
    count, shown, sort = found
    if any(needs_model(e) or is_volatile(e) for e in (*sort.exprs, *shown)):
        return plan
    new = _first_of(sort.inputs[0], sort.exprs, sort, count)
    return plan if new is None else over(plan, sort.inputs[0], new)


def _first_of(
    plan: Plan, keys: Sequence[Expr], sort: Rel, count: int, ties: bool = False
) -> Plan | None:
    """A join, perhaps below projections, whose one side has only the rows that the first ``count``
    by ``keys`` may have, with those of equal keys if ``ties``; None if these are not known."""
    columns, join = below_projections(plan)
    if not isinstance(join, Rel) or join.kind != "join" or not asks_anything(join):
        return None
    inner = [inline(key, columns) for key in keys]
    if any(needs_model(e) or is_volatile(e) for e in (*inner, *columns)):
        return None
    for side in (0, 1):
        below = _with_first(join, side, inner, sort, count, ties)
        if below is not None:
            return over(plan, join, with_input(join, side, below))
    return None


def _with_first(
    join: Rel, side: int, keys: Sequence[Expr], sort: Rel, count: int, ties: bool
) -> Plan | None:
    """The side of a join with those rows alone; None if they are not known."""
    kind, rows = join_type(join), join.inputs[side]
    if kind not in (*_ALL_COME[side], *DROPS[side]):
        return None
    place = {i: Field(column) for i, (of, column) in enumerate(outputs(join)) if of == side}
    own = [_move(key, place) for key in keys]
    prefix = [key for key in own[: own.index(None) if None in own else len(own)] if key]
    ties = ties or len(prefix) < len(keys)
    if prefix and kind in _ALL_COME[side]:
        below = _first_of(rows, prefix, sort, count, ties)
        if below is not None:
            return below
    block = rows if isinstance(rows, Block) else Block(rows, (), all_fields(rows.width))
    by = tuple(inline(key, block.select) for key in prefix)
    if not by or any(map(needs_model, by)) or not may_move(block):
        return None
    where = block.where
    answers: tuple[Ask, ...] = ()
    if kind in DROPS[side]:
        term = _partner(join, side, block)
        if term is None or (ties and not all(map(is_kept, asks(term)))):
            return None
        where, answers = (*where, term), tuple(dict.fromkeys(asks(term)))
    other_asks = asks_anything(join.inputs[1 - side])
    if not other_asks and rows is not block:
        return None
    columns = all_fields(block.source.width)
    first = first_by(block.source, by, sort, count, where, answers)
    if not ties:
        answered: dict[Expr, Expr] = {a: Field(len(columns) + i) for i, a in enumerate(answers)}
        select = tuple(substitute(e, answered.get) for e in block.select)
        new = replace(block, source=first, where=(), select=select)
        # A block is read once, so that the other side can be asked about its rows alone.
        return new if other_asks or any(map(needs_model, select)) else project(first, select)
    source = up_to_ties(block.source, by, first)
    return None if source is None else replace(block, source=source, where=where)


def first_by(
    source: Plan,
    by: tuple[Expr, ...],
    sort: Rel,
    count: int,
    where: tuple[Expr, ...] = (),
    answers: tuple[Ask, ...] = (),
) -> Plan:
    """The first ``count`` rows of ``source`` that pass ``where``, in the order of the first keys of
    ``sort``, which are ``by``; with ``answers`` as further columns if there are predicates."""
    ordered = sorted_by(source, by, directions_of(sort)[: len(by)])
    if not where:
        return limit_rows(ordered, 0, count)
    return Block(ordered, where, (*all_fields(source.width), *answers), count=count)


def up_to_ties(source: Plan, by: tuple[Expr, ...], first: Plan) -> Plan | None:
    """The rows of ``source`` that equal one of ``first``, which has its columns, in ``by``; None if
    ``source`` cannot be read twice."""
    if small(exact(source)) is None:
        return None
    same = [
        function("is_not_distinct_from", (key, Field(source.width + i))) for i, key in enumerate(by)
    ]
    return with_partner(source, same, project(first, by), "left_semi")


def _move(expr: Expr, place: dict[int, Field]) -> Expr | None:
    """The expression over one side; None if it reads the other, or nothing."""
    read = fields(expr)
    if not read or not read <= place.keys():
        return None
    return inline(expr, place)


def _partner(join: Rel, side: int, block: Block) -> Expr | None:
    """The predicate of a block that keeps exactly the rows with a partner, if the condition of the
    join is an equality with answers of the block, or a match among the values beside equal keys;
    None for others."""
    other = small(exact(join.inputs[1 - side]))
    if other is None or asks_anything(other):
        return None
    left = join.inputs[0].width
    terms = [t for e in join.exprs for t in conjuncts(e)]
    keys: list[tuple[Expr, Expr]] = []
    equal = True
    for term in terms:
        own, theirs = keys_of(term, side, left, ("equal", "array_has"))
        if own is None or theirs is None:
            return None
        equal = equal and isinstance(term, Node) and term.name == "equal"
        keys.append((inline(own, block.select), theirs))
    asking = [i for i, (own, _) in enumerate(keys) if needs_model(own)]
    if len(asking) != 1:
        return None
    key, theirs = keys.pop(asking[0])
    if not all(map(asks_model, asks(key))):
        return None
    if isinstance(key, Ask) and key.domain == distinct(other, theirs, *(b for _, b in keys)):
        matched = key.args[1:] == tuple(own for own, _ in keys)
        return function("is_not_null", (key,)) if matched else None
    return in_rows(key, distinct(other, theirs)) if equal and not keys else None
