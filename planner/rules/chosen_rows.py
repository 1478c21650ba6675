"""Asks only about the rows that first_value, last_value and nth_value choose.

before: ``aggregate first_value(llm(x) ORDER BY d) by k`` over ``block(t) select …, llm(x)``; also
        such a window over the block
after:  ``llm(v)`` over ``aggregate first_value(x ORDER BY d) AS v by k``; of an expression of
        several columns, ``v`` is a struct of these
safe:   each of these functions has the value of its argument on one row, or NULL where there is no
        such row, which is not asked about. The columns of a struct come from the same row. Nothing
        else reads the answer, which would be asked for on all rows then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from blendfusion.planner.ir.aggregates import aggregated, aggregation
from blendfusion.planner.ir.builders import case, function, projected, text_literal
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
    fields,
    has_window,
    inline,
    is_volatile,
    needs_model,
    substitute,
    windows,
)
from blendfusion.planner.ir.windows import order_of
from blendfusion.planner.rules.answers_with_partners import is_kept
from blendfusion.planner.rules.pull_up import null_for_nulls
from blendfusion.planner.rules.tied_rows import spares_answers

_OF_ONE_ROW = ("first_value", "last_value", "nth_value")


def chosen_rows(plan: Plan) -> Plan:
    block = plan.inputs[0] if isinstance(plan, Rel) and plan.inputs else None
    if not isinstance(plan, Rel) or not isinstance(block, Block):
        return plan
    if any(map(is_volatile, block.select)) or not any(map(needs_model, block.select)):
        return plan
    if plan.kind == "aggregate":
        return _aggregate(plan, block)
    return _windows(plan, block) if any(map(has_window, plan.exprs)) else plan


@dataclass(slots=True)
class _Chosen:
    """The columns that pass through such functions instead of answers."""

    block: Block
    needed: frozenset[Ask]
    """Calls that are asked for all of its rows."""
    carried: list[Expr] = field(default_factory=list)
    """Further columns of the block."""

    def passed(self, value: Expr) -> tuple[Field, Callable[[Expr], Expr]] | None:
        """(the column that is chosen instead of the column ``value`` of the block, what this is of
        the chosen one); None if that spares nothing."""
        value = inline(value, self.block.select)
        read = sorted(fields(value))
        own = asks(value)
        if not own or not read or any(ask.domain is not None or ask in self.needed for ask in own):
            return None
        if len(read) == 1 and null_for_nulls(value):
            only = Field(read[0])
            return self._column(only), lambda v: substitute(
                value, lambda part: v if part == only else None
            )
        place: dict[Expr, int] = {Field(column): i for i, column in enumerate(read)}

        def of_struct(chosen: Expr) -> Expr:
            def own(part: Expr) -> Expr | None:
                if part not in place:
                    return None
                return function("get_field", (chosen, text_literal(f"c{place[part]}")))

            return case([(function("is_not_null", (chosen,)), substitute(value, own))], None)

        return self._column(function("struct", tuple(place))), of_struct

    def _column(self, expr: Expr) -> Field:
        if expr not in self.carried:
            self.carried.append(expr)
        return Field(self.block.width + self.carried.index(expr))

    def source(self, read: Iterable[Expr]) -> tuple[Plan, Callable[[Expr], Expr | None]]:
        """(what is left of the block, the columns of it that ``read`` reads)."""
        select = (*self.block.select, *self.carried)
        used = sorted(set().union(*map(fields, read)))
        place: dict[Expr, Expr] = {Field(old): Field(new) for new, old in enumerate(used)}
        block = replace(self.block, select=tuple(select[i] for i in used))
        left: Plan = block
        if not (block.where or block.limited or any(map(needs_model, block.select))):
            left = projected(block.source, block.select)
        return left, lambda part: place.get(part)


def _aggregate(plan: Rel, block: Block) -> Plan:
    agg = aggregation(plan)
    places = [m.n_sorts if m.name in _OF_ONE_ROW and m.args else None for m in agg.measures]
    others = [*agg.keys]
    for measure, place in zip(agg.measures, places, strict=True):
        others += _others(block, measure.exprs, place, range(measure.n_sorts))
    chosen = _Chosen(block, _needed_calls(block, others))
    shown: list[Expr] = [*all_fields(plan.width)]
    measures = list(agg.measures)
    for n, (measure, place) in enumerate(zip(agg.measures, places, strict=True)):
        passed = None if place is None else chosen.passed(measure.exprs[place])
        if passed is not None:
            column, above = passed
            measures[n] = replace(measure, exprs=_with(measure.exprs, place, column))
            shown[agg.n_before_measures + n] = above(Field(agg.n_before_measures + n))
    if not chosen.carried:
        return plan
    below, moved = chosen.source((*agg.keys, *(e for m in measures for e in m.exprs)))
    keys = tuple(substitute(key, moved) for key in agg.keys)
    measures = [replace(m, exprs=tuple(substitute(e, moved) for e in m.exprs)) for m in measures]
    changed = replace(agg, keys=keys, measures=tuple(measures))
    return Block(aggregated(below, changed), (), tuple(shown))


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
    found = (w for e in plan.exprs for w in windows(e) if isinstance(w, Node))
    inside = {w: _argument(w) for w in found}
    others = [e for w, place in inside.items() for e in _others(block, w.children, place, _keys(w))]
    others += [e for e in plan.exprs if not has_window(e)]
    chosen = _Chosen(block, _needed_calls(block, others))
    computed: list[Expr] = []
    shown: dict[Expr, Expr] = {}
    for w, place in inside.items():
        shown[w] = column = Field(len(computed))
        passed = None
        # An expression above may have the same calls.
        if place is not None and _are_kept([inline(w.children[place], block.select)]):
            passed = chosen.passed(w.children[place])
        if passed is not None:
            argument, above = passed
            shown[w] = above(column)
            w = replace(w, children=_with(w.children, place, argument))
        computed.append(w)
    if not chosen.carried:
        return plan
    for column in dict.fromkeys(f for e in plan.exprs for f in _outside_windows(e)):
        shown[column] = Field(len(computed))
        computed.append(column)
    source, moved = chosen.source(computed)
    below = projected(source, tuple(substitute(e, moved) for e in computed))
    return Block(below, (), tuple(substitute(e, shown.get) for e in plan.exprs))


def _argument(window: Node) -> int | None:
    """The place of the argument among the children of a window that chooses a row."""
    return _keys(window).stop if window.name.removeprefix("window:") in _OF_ONE_ROW else None


def _keys(window: Node) -> range:
    """The places of the keys of a window's order among its children."""
    order = order_of(window)
    n = len(order.partitions)
    return range(n, n + len(order.keys))


def _outside_windows(expr: Expr) -> Iterator[Field]:
    if isinstance(expr, Field):
        yield expr
    elif expr not in windows(expr)[:1]:
        for part in expr.children:
            yield from _outside_windows(part)


def _needed_calls(block: Block, others: Sequence[Expr]) -> frozenset[Ask]:
    """The calls of predicates of a block, and of its columns that ``others`` read."""
    needed = (*block.where, *(inline(e, block.select) for e in others))
    return frozenset(ask for e in needed for ask in asks(e))
