"""Adds the conditions without a model that a predicate with calls implies.

before: ``filter llm(x) AND p OR q`` and ``inner join on llm(l.x) = llm(r.y)``
after:  ``filter (llm(x) AND p OR q) AND (p OR q)`` and ``inner join on llm(l.x) = llm(r.y)`` over
        ``filter x IS NOT NULL`` and ``filter y IS NOT NULL``; ``block where f(x) AND (f(x) OR
        g(x))`` is ``block where f(x)``
safe:   a row for which the new condition is not true does not pass the predicate, whatever the
        answers are (planner/ir/necessary.py). A plan with a single call needs no NULL tests:
        a call is not asked about NULL anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from blendfusion.planner.ir.boolean_atoms import FALSE, NULL, TRUE, assign, atoms, canonical
from blendfusion.planner.ir.builders import conjunction, filter_rows
from blendfusion.planner.ir.conditions_below import with_conditions
from blendfusion.planner.ir.joins import join_type
from blendfusion.planner.ir.necessary import (
    ALWAYS,
    NEVER,
    all_of,
    any_of,
    is_null_test,
    necessary,
    not_null,
)
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    conjuncts,
    is_volatile,
    needs_model,
    shift,
    side_of,
    walk,
)

_MOST_REPEATED = 2
"""Most conditions of which each combination of values is looked at."""

_SIDES = ("left", "right")
_OF_SIDES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("inner", "left_semi", "right_semi"), _SIDES),
    **dict.fromkeys(("left", "left_anti"), ("right",)),
    **dict.fromkeys(("right", "right_anti"), ("left",)),
}
"""The sides of a join of which it does not need the rows without a partner."""


def necessary_conditions(plan: Plan, *, null_tests: bool = True) -> Plan:
    """``null_tests``: whether conditions that only test for NULL are added, too."""
    if isinstance(plan, Block):
        return _block(plan)
    if not isinstance(plan, Rel) or not any(map(needs_model, plan.exprs)):
        return plan
    if plan.kind == "filter":
        terms = conjuncts(plan.exprs[0])
        implied = [c for c in _implied_conditions(terms) if null_tests or not is_null_test(c)]
        new = [c for c in implied if c not in terms]
        return replace(plan, exprs=(conjunction((*terms, *new)),)) if new else plan
    if null_tests and plan.kind == "join" and join_type(plan) in _OF_SIDES:
        return _join(plan)
    return plan


def _block(plan: Block) -> Plan:
    """The block over no row if its predicates, which came from several filters, contradict one
    another; without what one of them makes true or false in another."""
    calls = [{part for part in walk(term) if isinstance(part, Ask)} for term in plan.where]
    if sum(map(len, calls)) == len(set().union(*calls)):
        return plan
    if _joint(plan.where) == NEVER:
        return replace(plan, source=filter_rows(plan.source, (NEVER,)), where=())
    where = _given_one_another(plan.where)
    return plan if where == plan.where else replace(plan, where=where)


def _given_one_another(where: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """``f(x) AND (f(x) OR g(x)) AND (NOT f(x) OR p)`` as ``f(x) AND p``."""
    terms = list(where)
    for place in range(len(terms)):
        atom = canonical(terms[place])
        value = TRUE
        if isinstance(atom, Node) and atom.name == "not":
            (atom,), value = atom.children, FALSE
        if [*atoms(atom)] != [atom] or is_volatile(atom):
            continue
        for other, written in enumerate(terms):
            plain = canonical(written)
            left = assign(plain, {atom: value}) if other != place else plain
            if left != plain:
                terms[other] = left
    return tuple(t for t in terms if t != TRUE)


def _join(plan: Rel) -> Plan:
    """The join over those inputs without whose rows it has the same rows, with the conditions that
    read one of them."""
    left, right = plan.inputs
    terms = [t for e in plan.exprs for t in conjuncts(e)]
    keys = {
        key for term in terms for key in term.children
    }  # NULL in a plain key is no match anyway
    implied = [
        c for c in _implied_conditions(terms) if not (is_null_test(c) and keys & {*c.children})
    ]
    both = [c for c in implied if side_of(c, left.width) is None and c not in terms]
    if both:
        return replace(plan, exprs=(conjunction((*terms, *both)),))
    own = {side: [c for c in implied if side_of(c, left.width) == side] for side in _SIDES}
    known = [own[side] if side in _OF_SIDES[join_type(plan)] else [] for side in _SIDES]
    rights = [shift(c, -left.width) for c in known[1]]
    sides = with_conditions(left, known[0]), with_conditions(right, rights)
    return plan.with_inputs(*sides)


def _implied_conditions(terms: Sequence[Expr]) -> list[Expr]:
    """The conditions without a model that terms with one imply, each once."""
    return _implied_by(tuple(term for term in terms if needs_model(term)))


@lru_cache(maxsize=16)  # a filter that got such conditions is looked at again
def _implied_by(asking: tuple[Expr, ...]) -> list[Expr]:
    conditions = [c for term in asking for c in conjuncts(necessary(term))]
    conditions += conjuncts(_joint(asking))
    return [c for c in dict.fromkeys(conditions) if c != ALWAYS and not _is_any_null_test(c)]


def _joint(terms: Sequence[Expr]) -> Expr:
    """A condition that terms with the same calls in several places imply together: ``f(x) AND
    (NOT f(x) OR p)`` implies ``p``."""
    places = [part for term in terms for part in walk(term) if isinstance(part, Ask)]
    if len({*places}) == len(places):
        return ALWAYS
    whole = conjunction(tuple(map(canonical, terms)))
    times = Counter(atoms(whole))
    repeated = [atom for atom, n in times.items() if n > 1][:_MOST_REPEATED]
    if not repeated or is_volatile(whole):
        return ALWAYS
    ways = []
    for values in product((TRUE, FALSE, NULL), repeat=len(repeated)):
        left = assign(whole, dict(zip(repeated, values, strict=True)))
        present = [not_null(a) for a, v in zip(repeated, values, strict=True) if v != NULL]
        ways.append(all_of([necessary(left), *present]))
    return any_of(ways)


def _is_any_null_test(condition: Expr) -> bool:
    """``x IS NOT NULL OR y IS NOT NULL``, of a call of several values, drops hardly a row."""
    is_or = isinstance(condition, Node) and condition.name == "or"
    return is_or and all(map(is_null_test, condition.children))
