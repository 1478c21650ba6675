"""The parts of expressions that read one input alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from blendfusion.planner.ir.builders import fetch_bounds
from blendfusion.planner.ir.joins import outputs
from blendfusion.planner.ir.nodes import (
    Ask,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    all_fields,
    below_projections,
    inline,
    is_volatile,
    substitute,
    walk,
)
from blendfusion.planner.ir.traversal import asks_anything
from blendfusion.planner.ir.windows import without_windows

_OWN = Node("own", b"")
"""In place of what is an input's own."""


def parts_over(expr: Expr, own: Callable[[Expr], Expr | None]) -> Iterator[Expr]:
    """The largest parts of an expression that read nothing but what ``own`` knows, over that."""
    rest = [*walk(substitute(expr, lambda part: _OWN if own(part) is not None else None))]
    others = any(isinstance(part, Field | Ask) or part.rels for part in rest)
    if _OWN in rest and not others and not is_volatile(expr):
        yield substitute(expr, own)
        return
    for child in expr.children:
        yield from parts_over(child, own)


def read_above(width: int, above: Sequence[Rel]) -> tuple[Expr, ...]:
    """The expressions over a relation of ``width`` columns that the relations ``above`` it read; of
    those with windows, what they read of a row."""
    columns: tuple[Expr, ...] = all_fields(width)
    read: list[Expr] = []
    for rel in above:
        exprs = tuple(inline(e, columns) for e in rel.exprs)
        columns, read = (exprs, read) if rel.kind == "project" else (columns, [*read, *exprs])
    return tuple(chain.from_iterable(map(without_windows, (*columns, *read))))


def read_of_side(join: Rel, side: int, read: Sequence[Expr]) -> tuple[Expr, ...]:
    """The parts of expressions over a join, and of its condition, that read one side."""
    place = {i: column for i, (of, column) in enumerate(outputs(join)) if of == side}
    first = side * join.inputs[0].width
    inside = {first + i: i for i in range(join.inputs[side].width)}
    above = (parts_over(e, _fields_at(place)) for e in read)
    own = (parts_over(e, _fields_at(inside)) for e in join.exprs)
    return tuple(dict.fromkeys(chain.from_iterable((*above, *own))))


def _fields_at(place: Mapping[int, int]) -> Callable[[Expr], Expr | None]:
    def field(part: Expr) -> Expr | None:
        if not isinstance(part, Field) or part.index not in place:
            return None
        return Field(place[part.index])

    return field


def read_of_subquery(own: Node, read: Sequence[Expr]) -> tuple[Expr, ...]:
    """The parts of expressions that read the value of a subquery."""
    parts = (parts_over(e, lambda part: Field(0) if part == own else None) for e in read)
    return tuple(dict.fromkeys(chain.from_iterable(parts)))


def limit_over_sort(plan: Plan) -> tuple[int, tuple[Expr, ...], Rel] | None:
    """The parts of a limit over a sort with calls below, perhaps with projections between: the
    number of rows down to its last one, its columns over the sort, and the sort; None of other
    relations."""
    if not isinstance(plan, Rel) or plan.kind != "fetch" or not asks_anything(plan):
        return None
    offset, count = fetch_bounds(plan)
    shown, sort = below_projections(plan.inputs[0])
    if count is None or not isinstance(sort, Rel) or sort.kind != "sort":
        return None
    return offset + count, shown, sort
