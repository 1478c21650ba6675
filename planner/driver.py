"""Runs the rules over a plan, and says why a plan cannot be rewritten."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from time import perf_counter

from blendfusion.errors import PlanError
from blendfusion.planner.not_in import with_nulls
from blendfusion.planner.plan import Plan, Rel, Root, needs_model, read
from blendfusion.planner.rules import RULES, Rule
from blendfusion.planner.tree import Change, expressions, subplans, transform

_MOST_PASSES = 64
"""Far above what any plan needs: each pass moves every block one relation up."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rule that fired: what EXPLAIN VERBOSE prints."""

    rule: str
    times: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A plan in which every call stands in a block, and how it came about."""

    root: Root
    rewrites: tuple[Rewrite, ...]


def rewrite(data: bytes, *, off: Collection[str] = (), null_aware: bool = False) -> Rewritten:
    """Rewrite the Substrait plan ``data``; ``off`` names rules to leave out (required ones stay).

    ``null_aware``: its anti joins come from NOT IN. Raises PlanError for a plan that cannot be
    rewritten.
    """
    root = read(data)
    if null_aware:
        root = Root(with_nulls(root.plan), root.names)
    rules = [rule for rule in RULES if rule.required or rule.name not in off]
    fired = {rule.name: 0 for rule in rules}
    seconds = {rule.name: 0.0 for rule in rules}
    plan = root.plan
    for _ in range(_MOST_PASSES):
        before = plan
        for rule in rules:
            start = perf_counter()
            plan = transform(plan, _counting(rule, fired))
            seconds[rule.name] += perf_counter() - start
        if plan is before:
            break
    else:
        raise PlanError("the rules did not come to an end")
    _check(root.plan, plan)
    done = tuple(Rewrite(n, times, seconds[n]) for n, times in fired.items() if times)
    return Rewritten(Root(plan, root.names), done)


def _counting(rule: Rule, fired: dict[str, int]) -> Change:
    def apply(plan: Plan) -> Plan:
        new = rule.apply(plan)
        if new is not plan:
            if new.width != plan.width:
                raise PlanError(f"rule {rule.name} changed the columns of a relation")
            fired[rule.name] += 1
        return new

    return apply


def _check(before: Plan, after: Plan) -> None:
    if before.width != after.width:
        raise PlanError("the rules changed the columns of the result")
    for plan in subplans(after):
        if isinstance(plan, Rel) and any(map(needs_model, expressions(plan))):
            raise PlanError(f"a call inside a relation of kind '{plan.kind}'")


_UNSUPPORTED = (
    (r"Unsupported plan type: Unnest", "UNNEST cannot be expressed in Substrait"),
    (
        r"Unsupported plan type: RecursiveQuery",
        "a recursive query cannot be expressed in Substrait",
    ),
    (r"FixedSizeList", "a vector column cannot be expressed in Substrait"),
    (r"Unsupported plan type: (\w+)", r"a plan node of type \1 cannot be expressed in Substrait"),
    (r"OuterReferenceColumn", "a correlated subquery that DataFusion keeps as it is"),
)


def reason(problem: Exception) -> str:
    """Why a plan was not rewritten, in a sentence for EXPLAIN."""
    text = str(problem)
    for pattern, sentence in _UNSUPPORTED:
        found = re.search(pattern, text)
        if found:
            return found.expand(sentence)
    return text.splitlines()[0][:200]
