"""Asks only about the rows that first_value, last_value, nth_value, lag and lead choose.

before: ``aggregate first_value(llm(x) ORDER BY d) by k`` over ``block(t) select …, llm(x)``; also
        such a window over the block
after:  ``llm(v)`` over ``aggregate first_value(x ORDER BY d) AS v by k``; of an expression of
        several columns, ``v`` is a struct of these, and where ``lag`` has a default, which is there
        where the struct is NULL
safe:   each of these functions has the value of its argument on one row, or NULL where there is no
        such row, which is not asked about. The columns of a struct come from the same row. No
        aggregate or predicate reads the answer, which would be asked for on all rows then; a column
        beside windows that does is computed above them, too, where a limit may leave few rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import aggregate, aggregation
from blendfusion.planner.ir.builders import is_null_literal, project
from blendfusion.planner.ir.chosen_columns import ChosenColumns
from blendfusion.planner.ir.literals import literal_in_type
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
    has_kept_answers,
    has_window,
    inline,
    is_kept,
    is_volatile,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import (
    OF_ONE_ROW,
    argument_place,
    default_of,
    fields_outside,
    key_places,
    with_argument,
)
from blendfusion.planner.needs.tied_answers import spares_answers


def chosen_rows(plan: Plan) -> Plan:
    block = plan.inputs[0] if isinstance(plan, Rel) and plan.inputs else None
    if not isinstance(plan, Rel) or not isinstance(block, Block):
        return plan
    if any(map(is_volatile, block.select)) or not any(map(needs_model, block.select)):
        return plan
    if plan.kind == "aggregate":
        return _aggregate(plan, block)
    return _windows(plan, block) if any(map(has_window, plan.exprs)) else plan


def _aggregate(plan: Rel, block: Block) -> Plan:
    agg = aggregation(plan)
    places = [m.n_sorts if m.name in OF_ONE_ROW and m.args else None for m in agg.measures]
    others = [*agg.keys]
    for measure, place in zip(agg.measures, places, strict=True):
        others += _others(block, measure.exprs, place, range(measure.n_sorts))
    chosen = ChosenColumns(block, _needed_calls(block, others))
    shown: list[Expr] = [*all_fields(plan.width)]
    measures = list(agg.measures)
    for n, (measure, place) in enumerate(zip(agg.measures, places, strict=True)):
        passed = None if place is None else chosen.pass_through(measure.exprs[place])
        if passed is not None:
            column, above = passed
            measures[n] = replace(measure, exprs=_with(measure.exprs, place, column))
            shown[agg.n_before_measures + n] = above(Field(agg.n_before_measures + n))
    if not chosen.carried:
        return plan
    below, moved = chosen.source((*agg.keys, *(e for m in measures for e in m.exprs)))
    changed = replace(agg, measures=tuple(measures)).change(moved)
    return Block(aggregate(below, changed), (), tuple(shown))


def _are_kept(exprs: Sequence[Expr]) -> bool:
    return all(is_kept(ask) for e in exprs for ask in asks(e))


def _others(block: Block, exprs: Sequence[Expr], place: int | None, keys: range) -> list[Expr]:
    """The expressions that a function reads beside its argument at ``place``, and beside answers
    among the ``keys`` of its order, if these are asked for ties alone (see ``tied_partitions``)."""
    by = tuple(inline(exprs[i], block.select) for i in keys)
    tied = place is not None and spares_answers(by) and _are_kept(by)
    return [e for i, e in enumerate(exprs) if i != place and not (tied and i in keys)]


def _with(exprs: Sequence[Expr], place: int | None, new: Expr) -> tuple[Expr, ...]:
    return tuple(new if i == place else e for i, e in enumerate(exprs))


def _windows(plan: Rel, block: Block) -> Plan:
    inside = [w for e in plan.exprs for w in windows(e) if isinstance(w, Node)]
    outside = dict.fromkeys(column for e in plan.exprs for column in fields_outside(e))
    # An expression above may have the same calls.
    above = {c for c in outside if has_kept_answers(block.select[c.index])}
    others = [
        e for w in inside for e in _others(block, w.children, argument_place(w), key_places(w))
    ]
    chosen = ChosenColumns(
        block, _needed_calls(block, [*others, *(c for c in outside if c not in above)])
    )
    computed: list[Expr] = []
    shown: dict[Expr, Expr] = {}

    def place(expr: Expr) -> Field:
        if expr not in computed:
            computed.append(expr)
        return Field(computed.index(expr))

    for w in inside:
        argument = argument_place(w)
        passed = None if argument is None else _pass_through(chosen, w, w.children[argument])
        if passed is None:
            shown[w] = place(w)
        else:
            shown[w] = passed[1](place(with_argument(w, passed[0])))
    if not chosen.carried:
        return plan
    for column in outside:
        if column in above:
            shown[column] = substitute(
                block.select[column.index],
                lambda part: place(chosen.column(part)) if isinstance(part, Field) else None,
            )
        else:
            shown[column] = place(column)
    source, moved = chosen.source(computed)
    below = project(source, tuple(map(moved, computed)))
    return Block(below, (), tuple(substitute(e, shown.get) for e in plan.exprs))


def _pass_through(
    chosen: ChosenColumns, window: Node, argument: Expr
) -> tuple[Field, Callable[[Expr], Expr]] | None:
    value, default = inline(argument, chosen.block.select), default_of(window)
    if not _are_kept([value]):
        return None
    if default is None or is_null_literal(default):
        return chosen.pass_through(argument)
    own = literal_in_type(default, value.call.type) if isinstance(value, Ask) else None
    return None if own is None else chosen.pass_through(argument, own)


def _needed_calls(block: Block, others: Sequence[Expr]) -> frozenset[Ask]:
    """The calls of predicates of a block, and of its columns that ``others`` read."""
    needed = (*block.where, *(inline(e, block.select) for e in others))
    return frozenset(ask for e in needed for ask in asks(e))
