"""Moves joins and filters that need no answer below those joins that do, whatever the written
order.

A join is *expensive* above one of its sides if its condition reads answers, or if its other side
asks. A cheap join or filter goes below it, onto the side whose columns its condition reads.

before: ``(l join d on f(l.x) = d.c) semi join c on l.k = c.k``; also inner, left, anti and mark
        joins, on either side, and filters; with projections and filters between
after:  ``(l semi join c on l.k = c.k) join d on f(l.x) = d.c``
before: ``(distinct block(l)) anti join c`` on columns of the grouping
after:  ``distinct (block(l) anti join c)``
safe:   the expensive join passes on the rows of that side, each perhaps several times, with their
        columns as they are: they have the same partners below it. The rows of a group have the same
        key: they stay or go together.
cost:   the values asked. A cheap inner join needs a key, else its pairs would be too many below.
source: Moerkotte, Fender and Eich 2013: the properties assoc and l-asscom of a pair of joins
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregation
from blendfusion.planner.ir.builders import conjunction, filter_rows, project
from blendfusion.planner.ir.conditions_below import Path, path_below
from blendfusion.planner.ir.joins import (
    PASSES_ON,
    exchange_sides,
    exchanged_fields,
    is_join,
    join_plans,
    join_type,
    outputs,
    over_side,
    terms_of,
    with_wider_input,
)
from blendfusion.planner.ir.lineage import answer_columns, passed_on
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Plan,
    Rel,
    fields,
    inline,
    is_key,
    is_volatile,
    needs_model,
)
from blendfusion.planner.ir.traversal import asks_anything

_TURNED = {"right": "left", "right_semi": "left_semi", "right_anti": "left_anti"}
"""Joins with the sides exchanged."""
_ONLY_DROPS = ("left_semi", "left_anti", "right_semi", "right_anti")
"""Joins that drop rows of one side, and add no column."""


def cheap_joins_first(plan: Plan) -> Plan:
    if not isinstance(plan, Rel) or any(is_volatile(e) or needs_model(e) for e in plan.exprs):
        return plan
    if plan.kind == "filter":
        return _with_filter_below(plan) or plan
    if plan.kind not in ("join", "cross"):
        return plan
    kind = join_type(plan)
    left, right = plan.inputs
    moved: Plan | None = None
    if kind in PASSES_ON[0] and not asks_anything(right):
        moved = _with_join_below(kind, left, right, terms_of(plan))
    if moved is None and kind in PASSES_ON[1] and not asks_anything(left):
        terms = tuple(exchange_sides(t, left.width, right.width) for t in terms_of(plan))
        moved = _with_join_below(_TURNED.get(kind, kind), right, left, terms)
        if moved is not None and moved.width > right.width:
            moved = project(moved, exchanged_fields(left.width, right.width))
    return moved or plan


def _with_filter_below(plan: Rel) -> Plan | None:
    path = path_below(plan)
    if path is None or not is_join(path.below):
        return None
    for side in _sides_below(path.below):
        own = tuple(t for t in path.filters if fields(t) and _reads_only(t, path.below, side))
        if own:
            source = path.below.inputs[side]
            new = filter_rows(source, over_side(own, path.below, source.width))
            rest = tuple(t for t in path.filters if t not in own)
            return project(filter_rows(with_wider_input(path.below, side, new), rest), path.columns)
    return _with_filter_inside(path)


def _with_filter_inside(path: Path) -> Plan | None:
    """Filters that read both sides become a part of the condition of an inner join, by which its
    sides can be reduced."""
    join = path.below
    if join.kind != "join" or join_type(join) != "inner" or not _sides_below(join):
        return None
    answers = answer_columns(join)
    inside = tuple(t for t in path.filters if fields(t) and not fields(t) & answers)
    if not inside:
        return None
    rest = tuple(t for t in path.filters if t not in inside)
    new = replace(join, exprs=(conjunction(tuple(dict.fromkeys((*terms_of(join), *inside)))),))
    return project(filter_rows(new, rest), path.columns)


def _with_join_below(kind: str, upper: Plan, other: Plan, terms: tuple[Expr, ...]) -> Plan | None:
    """``upper`` joined to ``other``, below the expensive join or the grouping in ``upper``; None
    if it must stay above. The terms read the columns of ``upper``, then those of ``other``."""
    path = path_below(upper)
    if path is None:
        return None
    place = (*path.columns, *(Field(path.below.width + i) for i in range(other.width)))
    terms = tuple(inline(t, place) for t in terms)
    if path.below.kind == "aggregate":
        return _below_grouping(kind, path, other, terms)
    sides = _sides_below(path.below) if is_join(path.below) else []
    moved = [_below_join(kind, path, side, other, terms) for side in sides]
    if kind in _ONLY_DROPS and is_join(path.below):
        # Past a join that only drops rows, too, this one goes on, or both would change places.
        further = join_type(path.below) in _ONLY_DROPS
        nearer = [side for side in _asking_sides(path.below) if side not in sides]
        moved += [_below_join(kind, path, side, other, terms, further) for side in nearer]
    return next((plan for plan in moved if plan is not None), None)


def _below_join(
    kind: str,
    path: Path,
    side: int,
    other: Plan,
    terms: tuple[Expr, ...],
    further: bool = False,
) -> Plan | None:
    """The join ``path.below`` over one of its sides joined to ``other``; only if that goes
    ``further`` down from there, if so."""
    join = path.below
    source = join.inputs[side]
    own = tuple(t for t in terms if _reads_only(t, join, side))
    rest = tuple(t for t in terms if t not in own)
    moved = over_side(own, join, source.width)
    if kind != "inner" and rest:
        return None
    if kind == "inner" and not any(is_key(t, source.width) for t in moved):
        return None
    if further and _with_join_below(kind, source, other, moved) is None:
        return None
    cheap = join_plans(source, other, moved, kind)
    new = with_wider_input(join, side, cheap)
    gained = range(source.width, cheap.width)
    at = {column: Field(i) for i, column in enumerate(outputs(new))}
    place = (*(at[column] for column in outputs(join)), *(at[side, i] for i in gained))
    columns = (*path.columns, *(Field(join.width + i) for i in range(len(gained))))
    filters = tuple(inline(t, place) for t in (*path.filters, *rest))
    return project(filter_rows(new, filters), tuple(inline(e, place) for e in columns))


def _below_grouping(kind: str, path: Path, other: Plan, terms: tuple[Expr, ...]) -> Plan | None:
    grouping, source = path.below, path.below.inputs[0]
    keys, width = aggregation(grouping).keys, grouping.width
    several = aggregation(grouping).n_before_measures > len(keys)
    if kind not in ("left_semi", "left_anti") or several or not keys or not asks_anything(source):
        return None
    read = {i for t in terms for i in fields(t) if i < width}
    if read & answer_columns(grouping) or max(read, default=0) >= len(keys):
        return None
    place = (*keys, *keys[:1] * (width - len(keys)))  # those after the keys are not read
    around = tuple(Field(source.width + i) for i in range(other.width))
    moved = join_plans(source, other, tuple(inline(t, (*place, *around)) for t in terms), kind)
    return project(filter_rows(grouping.with_inputs(moved), path.filters), path.columns)


def _sides_below(join: Rel) -> list[int]:
    """The inputs of a join, 0 and 1, above which it is expensive, and whose rows it passes on."""
    answers = answer_columns(join.inputs[0]) | {
        join.inputs[0].width + i for i in answer_columns(join.inputs[1])
    }
    by_answers = any(needs_model(e) or fields(e) & answers for e in join.exprs)
    return [s for s in _passed_on(join) if by_answers or asks_anything(join.inputs[1 - s])]


def _asking_sides(join: Rel) -> list[int]:
    """The inputs that ask, whose rows a join passes on: joins that only drop rows go below it, to
    come nearer to what asks."""
    inputs = join.inputs
    asking = (s for s in _passed_on(join) if asks_anything(inputs[s]))
    return [side for side in asking if not isinstance(inputs[side], Block)]


def _passed_on(join: Rel) -> list[int]:
    return [] if any(map(is_volatile, join.exprs)) else [*passed_on(join)]


def _reads_only(term: Expr, join: Rel, side: int) -> bool:
    """Whether a term reads, of the columns of a join, only those of one input, and no answers."""
    columns, answers = outputs(join), answer_columns(join)
    read = [i for i in fields(term) if i < join.width]
    return all(columns[i][0] == side and i not in answers for i in read)
