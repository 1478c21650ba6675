"""Replaces what answers cannot change by its value.

before: ``filter llm_classify(x, ['a', 'b']) = 'c'`` and ``block select CASE WHEN llm(x) THEN k
        ELSE k END``
after:  ``filter FALSE`` and ``block select k``
safe:   an answer is one of a closed set, of a scale, or on one side of the literals that it is
        compared with, or NULL; the condition is evaluated for each of these
        (planner/ir/possible_answers.py). Of a condition it matters only whether it is true; of a
        value, NULL is another one than FALSE.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from blendfusion.planner.ir.boolean_atoms import FALSE, NULL, TRUE, live_branches, simplify
from blendfusion.planner.ir.builders import (
    boolean_literal,
    case,
    conjunction,
    filter_rows,
    function,
    is_null_literal,
    literal,
    project,
)
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.necessary import TRUTH_TESTS
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    asks,
    conjuncts,
    has_window,
    is_volatile,
    needs_model,
)
from blendfusion.planner.ir.possible_answers import ORDERED, is_obvious

Outcomes: TypeAlias = Callable[[Expr], "frozenset[bool | None] | None"]
"""The values that a boolean expression can have, whatever the answers are; None if unknown."""

_TESTS = frozenset(
    (
        *(*ORDERED, "and", "or", "not", "like", "ilike", "singular_or_list", "array_has"),
        *("is_null", "is_not_null", "is_distinct_from", "is_not_distinct_from", *TRUTH_TESTS),
        *("coalesce", "starts_with", "ends_with", "contains", "regexp_like", "regex_match"),
    )
)
"""Functions whose value is a boolean, or may be one."""
_CONDITIONAL = (
    "inner",
    "left",
    "right",
    "outer",
    "left_semi",
    "right_semi",
    "left_anti",
    "right_anti",
)


def no_outcome(expr: Expr) -> None:
    """Nothing is known of any expression."""


def constant_tests(plan: Plan, outcomes: Outcomes = no_outcome) -> Plan:
    decided = _Decisions(outcomes)
    if isinstance(plan, Block):
        where = decided.conjunction(plan.where)
        select = tuple(map(decided.value, plan.select))
        same = where == plan.where and select == plan.select
        return plan if same else _without_calls(replace(plan, where=where, select=select))
    if not isinstance(plan, Rel) or not plan.calls_here:
        return plan
    if plan.kind == "filter" or (plan.kind == "join" and join_type(plan) in _CONDITIONAL):
        terms = [conjuncts(e) for e in plan.exprs]
        new = [decided.conjunction(part) for part in terms]
        if [*map(tuple, terms)] == new:
            return plan
        return replace(plan, exprs=tuple(conjunction(part or (TRUE,)) for part in new))
    if plan.kind == "project":
        exprs = tuple(map(decided.value, plan.exprs))
        return plan if exprs == plan.exprs else replace(plan, exprs=exprs)
    return plan


def _without_calls(block: Block) -> Plan:
    """A block of which no call is left as a plan of DataFusion's; any other as it is."""
    bounded = block.has_limit or block.once
    if bounded or any(map(needs_model, block.exprs)):
        return block
    return project(filter_rows(block.source, block.where), block.select)


class _Decisions:
    """Expressions with values in the place of the parts that no answer changes."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    def conjunction(self, terms: Sequence[Expr]) -> tuple[Expr, ...]:
        """Conditions that are true together where ``terms`` are."""
        new = [self.condition(term) for term in terms]
        if FALSE in new or any(self._truths(part) == {False} for part in _related_terms(new)):
            return (FALSE,)
        return tuple(term for term in new if term != TRUE or term in terms)

    def condition(self, expr: Expr) -> Expr:
        """A condition that is true where ``expr`` is, and FALSE or NULL elsewhere."""
        if isinstance(literal(expr), bool) or is_null_literal(expr):
            return boolean_literal(literal(expr) is True)
        if not isinstance(expr, Node) or not needs_model(expr):
            return expr
        if len(truths := self._truths(expr)) == 1:
            return boolean_literal(truths == {True})
        if expr.name in ("and", "or"):
            return _rebuild(expr, tuple(map(self.condition, expr.children)))
        return self._case(expr, self.condition) if expr.name == "if_then" else self.value(expr)

    def value(self, expr: Expr) -> Expr:
        """An expression with the same value as ``expr``."""
        if not isinstance(expr, Node) or not needs_model(expr) or has_window(expr):
            return expr
        if expr.name in _TESTS and not is_obvious(expr):
            found = self._outcomes(expr)
            if found is not None and len(found) == 1:
                (only,) = found
                return NULL if only is None else boolean_literal(only)
        if expr.name == "if_then":
            return self._case(expr, self.value)
        if expr.name == "array_element" and (item := _item(expr)) is not None:
            return self.value(item)
        if expr.name in ("is_true", "is_not_true"):
            return _rebuild(expr, (self.condition(expr.children[0]),))
        return _rebuild(expr, tuple(map(self.value, expr.children)))

    def _case(self, expr: Node, result: Callable[[Expr], Expr]) -> Expr:
        parts = expr.children
        even = len(parts) - len(parts) % 2
        new = tuple(
            result(part) if i % 2 or i >= even else self.condition(part)
            for i, part in enumerate(parts)
        )
        results = {*new[1:even:2], *new[even:]}
        if len(parts) % 2 and len(results) == 1 and not is_volatile(expr):
            return new[-1]
        if new == parts:
            return expr
        branches, otherwise = live_branches(new)
        if branches or otherwise is None:
            return case(branches or [(FALSE, parts[1])], otherwise)
        return otherwise

    def _truths(self, expr: Expr) -> set[bool]:
        """Whether a condition can be true, and whether it can be anything else."""
        found = None if is_obvious(expr) else self._outcomes(expr)
        return {True, False} if found is None else {value is True for value in found}


def _rebuild(expr: Node, children: tuple[Expr, ...]) -> Expr:
    if children == expr.children:
        return expr
    known = expr.name in ("and", "or", "not", "is_true", "is_not_true")
    return simplify(expr.name, children) if known else replace(expr, children=children)


def _item(expr: Node) -> Expr | None:
    """The item of a list of expressions that is taken from it by its number."""
    listed, number = expr.children[0], literal(expr.children[-1])
    if not isinstance(listed, Node) or listed.name != "make_array" or not isinstance(number, int):
        return None
    return listed.children[number - 1] if 1 <= number <= len(listed.children) else None


def _related_terms(terms: Sequence[Expr]) -> list[Expr]:
    """The conjunctions of conditions that share calls, directly or by others."""
    terms = [term for term in terms if needs_model(term)]
    if len(terms) < 2:
        return []
    groups: list[tuple[set[Ask], list[Expr]]] = []
    for term in terms:
        calls, members = set(asks(term)), [term]
        for other in [group for group in groups if group[0] & calls]:
            groups.remove(other)
            calls |= other[0]
            members = [*other[1], *members]
        groups.append((calls, members))
    return [function("and", tuple(members)) for _, members in groups if len(members) > 1]
