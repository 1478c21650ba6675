"""Runs the rules over a plan, and explains why a plan cannot be rewritten."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from blendfusion.errors import PlanError
from blendfusion.planner.initial_order import in_written_order
from blendfusion.planner.ir.nodes import Block, Plan, Rel, Root, StoredRows, asks
from blendfusion.planner.ir.traversal import asks_anything, subplans, transform, with_subplans
from blendfusion.planner.rule_time import RuleTime, limited_to
from blendfusion.planner.rules import (
    CALLS,
    CONSTANT_TESTS,
    COSTLY_PREDICATES_LAST,
    RULES,
    SIMILAR_FIRST,
    Rule,
)
from blendfusion.planner.rules.constant_tests import Outcomes, constant_tests, no_outcome
from blendfusion.planner.rules.costly_predicates_last import Expected, alike, costly_predicates_last
from blendfusion.planner.rules.necessary_conditions import necessary_conditions
from blendfusion.planner.rules.similar_first import Pays, never, similar_first

_MOST_REWRITES = 20
"""Maximum rewrites per relation of the plan, far above what terminating rules need."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One rule that fired, for EXPLAIN VERBOSE. ``before`` and ``after`` show its first effect."""

    rule: str
    times: int
    seconds: float
    before: Plan
    after: Plan


@dataclass(frozen=True, slots=True)
class RewrittenPlan:
    """A plan in which every call stands in a block, with the rewrites that led to it."""

    root: Root
    rewrites: tuple[Rewrite, ...]
    unfinished: bool = False
    """Whether the rules had too little time, or came to no end: the plan is as they left it."""


def rewrite(
    root: Root,
    *,
    off: Collection[str] = (),
    similar_first_pays: Pays = never,
    written: Sequence[str] = (),
    expected: Expected = alike,
    outcomes: Outcomes = no_outcome,
    planning_ms: int = 0,
) -> RewrittenPlan:
    """Rewrite a plan; ``off`` names rules to leave out (required ones stay).

    ``written`` names the calls in the query's order. ``expected`` gives the pass rate and the cost
    of predicates, ``outcomes`` the values of conditions for all answers. ``planning_ms``: the CPU
    time after which only required rules go on; 0: no limit. Raises PlanError for a plan that cannot
    be rewritten.
    """
    changed: dict[str, Callable[[Plan], Plan]] = {
        CONSTANT_TESTS: partial(constant_tests, outcomes=outcomes),
        SIMILAR_FIRST: partial(similar_first, pays=similar_first_pays),
        COSTLY_PREDICATES_LAST: partial(costly_predicates_last, expected=expected),
    }
    rules = [
        rule._replace(apply=changed[rule.name]) if rule.name in changed else rule
        for rule in RULES
        if rule.required or rule.name not in off
    ]
    try:
        with limited_to(planning_ms) as time:
            return _run_rules(root, rules, written, time)
    except RecursionError as problem:
        raise PlanError("a plan that is nested too deeply") from problem


def _run_rules(
    root: Root, used: Sequence[Rule], written: Sequence[str], time: RuleTime
) -> RewrittenPlan:
    relations = [*subplans(root.plan)]
    driver = _Driver(len(relations) * _MOST_REWRITES, time)
    if not _has_several_calls(relations):
        used = [
            rule._replace(apply=partial(necessary_conditions, null_tests=False))
            if rule.apply is necessary_conditions
            else rule
            for rule in used
        ]
    plan = root.plan
    for rule in used:
        if rule.first:
            plan = driver.apply(rule, plan)
    driver.rules = [r for r in used if not (r.first or r.last or r.at_end)]
    plan = driver.settle(plan)
    places = {name: place for place, name in enumerate(dict.fromkeys(written))}
    plan = transform(plan, partial(in_written_order, places=places), (Block.kind,))
    limited = any(map(_is_limit, subplans(plan)))
    for rule in used:
        # A limit ends the stages below its join early, and not those below a block in between.
        if rule.last and rule.from_top:
            plan = driver.apply(rule, plan)
        elif rule.last and not (limited and rule.name == COSTLY_PREDICATES_LAST):
            plan = transform(plan, partial(driver.apply, rule), rule.on)
    for rule in used:
        if rule.at_end:
            plan = driver.apply(rule, plan)
    _check(root.plan, plan)
    return RewrittenPlan(Root(plan, root.names), driver.rewrites(), driver.unfinished)


def _is_limit(plan: Plan) -> bool:
    return plan.has_limit if isinstance(plan, Block) else plan.kind == "fetch"


def _has_several_calls(relations: Iterable[Plan]) -> bool:
    asking = (p for p in relations if not isinstance(p, StoredRows) and p.calls_here)
    return len({(a.call, a.args) for p in asking for e in p.exprs for a in asks(e)}) > 1


class _Driver:
    """Applies rules and records their effects. After ``most`` rewrites, or the end of the time, it
    applies required rules alone."""

    def __init__(self, most: int, time: RuleTime) -> None:
        self.rules: Sequence[Rule] = ()
        self.unfinished = False
        self._most = self._left = most
        self._time = time
        self._times: Counter[str] = Counter()
        self._first: dict[str, tuple[Plan, Plan]] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._of_kind: dict[tuple[str, bool, bool], list[Rule]] = {}
        self._settled: dict[int, tuple[Plan, Plan]] = {}
        """By identity, relations and what became of them. A relation of several parents stays
        one."""

    def settle(self, plan: Plan) -> Plan:
        """``plan`` after all ``rules`` have fired that can, inputs first; the same object if none
        fired.

        A rule changes a relation and perhaps its direct inputs, so deeper relations are not visited
        again. None fires where neither a call nor a block stands at or below.
        """
        if id(plan) not in self._settled:
            new = self._with_rules(plan)
            self._settled[id(plan)] = plan, new
            self._settled[id(new)] = new, new
        return self._settled[id(plan)][1]

    def _with_rules(self, plan: Plan) -> Plan:
        """``settle`` of a relation that is new."""
        while asks_anything(plan) or Block.kind in plan.kinds:
            if id(plan) in self._settled:
                return self._settled[id(plan)][1]
            plan = with_subplans(plan, self.settle)
            start = perf_counter()
            for rule in self._rules_of(plan):
                new = rule.apply(plan)
                now = perf_counter()
                self._seconds[rule.name] += now - start
                start = now
                if new is not plan:
                    plan = self._record(rule, plan, new)
                    break
            else:
                return plan
        return plan

    def _rules_of(self, plan: Plan) -> Sequence[Rule]:
        """The rules that may fire on a relation, in their order."""
        if isinstance(plan, StoredRows):
            return ()
        of = plan.kind, plan.calls_here, self._is_over()
        if of not in self._of_kind:
            kinds = {plan.kind, CALLS} if plan.calls_here else {plan.kind}
            rules = [rule for rule in self.rules if rule.required or not self.unfinished]
            self._of_kind[of] = [r for r in rules if not r.on or kinds & {*r.on}]
        return self._of_kind[of]

    def _is_over(self) -> bool:
        """Whether only required rules go on."""
        self.unfinished = self.unfinished or self._left <= 0 or self._time.is_over()
        return self.unfinished

    def apply(self, rule: Rule, plan: Plan) -> Plan:
        if not rule.required and self._is_over():
            return plan
        start = perf_counter()
        new = rule.apply(plan)
        self._seconds[rule.name] += perf_counter() - start
        return plan if new is plan else self._record(rule, plan, new)

    def _record(self, rule: Rule, plan: Plan, new: Plan) -> Plan:
        if new.width != plan.width:
            raise PlanError(f"rule {rule.name} changed the columns of a relation")
        self._left -= 1
        if self._left < -self._most:
            raise PlanError("the rules did not come to an end")
        self._times[rule.name] += 1
        self._first.setdefault(rule.name, (plan, new))
        return new

    def rewrites(self) -> tuple[Rewrite, ...]:
        return tuple(
            Rewrite(
                rule.name, self._times[rule.name], self._seconds[rule.name], *self._first[rule.name]
            )
            for rule in RULES
            if rule.name in self._first
        )


def _check(before: Plan, after: Plan) -> None:
    if before.width != after.width:
        raise PlanError("the rules changed the columns of the result")
    for plan in subplans(after):
        if isinstance(plan, Rel) and plan.calls_here:
            raise PlanError(f"a call inside a relation of kind '{plan.kind}'")


_UNSUPPORTED = (
    (r"Unsupported plan type: Unnest", "UNNEST cannot be expressed in Substrait"),
    (
        r"Unsupported plan type: RecursiveQuery",
        "a recursive query cannot be expressed in Substrait",
    ),
    (
        r"join constraint: `using`",
        "an outer join with USING, of which * or a column without its table is read",
    ),
    (r"FixedSizeList", "a vector column cannot be expressed in Substrait"),
    (r"Unsupported literal: (\w+)", r"a literal of type \1 cannot be expressed in Substrait"),
    (
        r"Unsupported cast type: Field \{ .*?: (?:nullable )?(\w+)",
        r"type \1 cannot be expressed in Substrait",
    ),
    (r"Unsupported plan type: (\w+)", r"a plan node of type \1 cannot be expressed in Substrait"),
    (r"window frame unit: Groups", "a window frame of GROUPS cannot be expressed in Substrait"),
    (r"OuterReferenceColumn", "a correlated subquery that DataFusion keeps as it is"),
)


def reason(problem: Exception) -> str:
    """The reason why a plan was not rewritten, as a sentence for EXPLAIN."""
    text = str(problem)
    for pattern, sentence in _UNSUPPORTED:
        found = re.search(pattern, text)
        if found:
            return found.expand(sentence)
    return text.splitlines()[0][:200]
