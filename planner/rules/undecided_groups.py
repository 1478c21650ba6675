"""Asks about the rows of groups only until what is read of the groups is decided.

before: ``filter n > 3`` over ``aggregate count(*) FILTER (WHERE llm(x)) AS n by k`` over
        ``block(t)``; also any other test of aggregates, sorts by them with a limit, first numbers
        of ranks by them, and comparisons among the columns of a result
after:  the same over the block ``until`` the tests have one value for each group
safe:   the block asks until each test of a group has one value, whatever the other answers are.
        Where a column shows an aggregate itself, it asks about all rows of the groups that are
        kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import (
    aggregation,
)
from blendfusion.planner.ir.builders import limit_rows
from blendfusion.planner.ir.nodes import (
    Expr,
    Node,
    Plan,
    Rel,
    StoredRows,
    has_window,
    inline,
    is_volatile,
    substitute,
    walk,
)
from blendfusion.planner.ir.traversal import (
    asks_anything,
    expressions,
    meets_pairs,
    with_subplans,
)
from blendfusion.planner.needs.compared_values import with_value_keys
from blendfusion.planner.needs.counts import rows_to_count
from blendfusion.planner.needs.groups import bound_aggregate, numbers_first, reads_all
from blendfusion.planner.needs.reads import read_above, read_of_side, read_of_subquery


def undecided_groups(plan: Plan) -> Plan:
    """The whole plan."""
    return _Reader().change(plan)


class _Reader:
    """Relations by what is read of them. Each is changed once for the same."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, tuple[Expr, ...] | None], tuple[Plan, Plan]] = {}
        """By identity; a relation is held with its result, so that no other one gets it."""

    def change(self, plan: Plan, read: tuple[Expr, ...] | None = None) -> Plan:
        """``plan`` without questions that change nothing, if only the expressions ``read`` are read
        of its columns; None: all are read."""
        if isinstance(plan, StoredRows) or not asks_anything(plan) or "aggregate" not in plan.kinds:
            return plan
        if (id(plan), read) not in self._done:
            self._done[id(plan), read] = plan, self._change(plan, read)
        return self._done[id(plan), read][1]

    def _change(self, plan: Plan, read: tuple[Expr, ...] | None) -> Plan:
        above: list[Rel] = [] if read is None else [Rel("project", b"", (plan,), read, len(read))]
        start = len(above)
        groups: Plan = plan
        while isinstance(groups, Rel):
            valued = with_value_keys(groups)
            if valued is not None:
                groups = valued
            elif _is_above(groups, above):
                above.append(groups)
                groups = groups.inputs[0]
            else:
                break
        result: Plan | None = (
            self._bound_groups(groups, above[::-1]) if isinstance(groups, Rel) else None
        )
        if result is None:
            return with_subplans(self._of_subqueries(plan, expressions(plan)), self.change)
        if result is groups:
            return plan
        for rel in above[start:][::-1]:
            result = rel.with_inputs(result)
        return result

    def _bound_groups(self, groups: Rel, above: Sequence[Rel]) -> Plan | None:
        """An aggregate, or a join with one, that asks no more than what is ``above`` reads."""
        if groups.kind in ("join", "cross"):
            return self._change_join(groups, above)
        if groups.kind == "project" and groups.has_subqueries:
            read = tuple(inline(e, groups.exprs) for e in read_above(groups.width, above))
            return with_subplans(self._of_subqueries(groups, read), self.change)
        new = bound_aggregate(groups, above)
        if new is not None:
            return with_subplans(new, lambda block: with_subplans(block, self.change))
        if groups.kind != "aggregate" or not meets_pairs(groups.inputs[0]):
            return None
        enough = rows_to_count(aggregation(groups), read_above(groups.width, above))
        return (
            None if enough is None else groups.with_inputs(limit_rows(groups.inputs[0], 0, enough))
        )

    def _change_join(self, join: Rel, above: Sequence[Rel]) -> Plan | None:
        if join.has_subqueries:
            return None
        read = read_above(join.width, above)
        sides = range(len(join.inputs))
        new = [self.change(join.inputs[i], read_of_side(join, i, read)) for i in sides]
        return join.with_inputs(*new)

    def _of_subqueries(self, plan: Plan, read: Sequence[Expr]) -> Plan:
        """``plan`` with its subqueries of one value, of which ``read`` may read less."""
        if not isinstance(plan, Rel) or not plan.has_subqueries:
            return plan
        new: dict[Expr, Expr] = {}
        for own in {p for e in plan.exprs for p in walk(e) if isinstance(p, Node) and p.rels}:
            (rows, *others) = own.rels
            if not others and not own.children and rows.width == 1:
                found = self.change(rows, read_of_subquery(own, read))
                if found is not rows:
                    new[own] = replace(own, rels=(found,))
        return (
            replace(plan, exprs=tuple(substitute(e, new.get) for e in plan.exprs)) if new else plan
        )


def _is_above(plan: Rel, above: Sequence[Rel]) -> bool:
    """Whether each row of a relation is one of a group's row below it; windows read all groups, or
    number them where a filter above reads first numbers."""
    if plan.kind not in ("project", "filter", "sort", "fetch") or plan.has_subqueries:
        return False
    if any(map(is_volatile, plan.exprs)):
        return False
    if not any(map(has_window, plan.exprs)):
        return True
    return numbers_first(plan, above) or reads_all(plan)
