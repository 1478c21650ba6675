"""Rewrites a join by meaning as a choice, for each value of one side, among the values of the
other.

before: ``l join r on llm_join(l.x, r.y) AND l.k = r.k``
after:  ``l join r on match(l.x, l.k) = r.y AND l.k = r.k``, where the match is chosen among
        ``distinct r.y, r.k``; with many matches a value, ``array_has(matches(l.x, l.k), r.y)``;
        with labels, ``array_has(m, 'label ' || label(r.y)) OR array_has(m, 'text ' || r.y)``, where
        ``m`` is what ``l.x`` matches by its label among ``distinct r.y, label(r.y), r.k``
safe:   that is what the call means (docs/meaning.md): the second value is the match of the first
        among those that stand beside equal keys. Where both values are of one side, or the other
        side would come out otherwise a second time, pairs are asked one by one, as ``exact =>
        true`` says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.aggregates import distinct
from blendfusion.planner.ir.builders import conjunction, function, text_literal
from blendfusion.planner.ir.joins import is_join, join_plans, join_type
from blendfusion.planner.ir.nodes import (
    Ask,
    Block,
    Expr,
    Node,
    Plan,
    Rel,
    all_fields,
    conjuncts,
    is_key,
    is_volatile,
    needs_model,
    shift,
    side_of,
    substitute,
    walk,
)
from blendfusion.planner.ir.side_columns import with_side_columns
from blendfusion.planner.stages.join_partners import repeatable
from blendfusion.udfs.evaluate.label_join import label_call, label_chooser
from blendfusion.udfs.joins.label_matcher import BY_LABEL, BY_TEXT
from blendfusion.udfs.joins.matcher import chooser


def joins_by_meaning(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    if plan.kind == "filter" and _is_inner(plan.inputs[0]):
        return _of_filter(plan)
    if plan.kind != "join":
        return plan
    left, right = plan.inputs
    terms = tuple(t for e in plan.exprs for t in conjuncts(e))
    new = _with_choices(terms, left, right)
    if new == terms:
        return plan
    changed = replace(plan, exprs=(conjunction(new),))
    one_sided = all(_is_one_sided(e, left.width) for t in new for e in walk(t))
    return with_side_columns(changed, new) if one_sided else changed


def _is_inner(plan: Plan) -> bool:
    return is_join(plan) and join_type(plan) == "inner"


def _of_filter(plan: Rel) -> Plan:
    """Merge a filter above an inner join into its condition."""
    join = plan.inputs[0]
    assert isinstance(join, Rel)
    left, right = join.inputs
    terms = tuple(t for e in (*join.exprs, *plan.exprs) for t in conjuncts(e))
    if _with_choices(terms, left, right) == terms:
        return plan
    return join_plans(left, right, terms)


def _is_one_sided(expr: Expr, n_left: int) -> bool:
    return not isinstance(expr, Ask) or side_of(expr, n_left) is not None


def _with_choices(terms: tuple[Expr, ...], left: Plan, right: Plan) -> tuple[Expr, ...]:
    """The terms with each pairing of the two sides replaced by a choice."""
    keys = [t for t in terms if _is_plain_key(t, left.width)]

    def choice(expr: Expr) -> Expr | None:
        pairing = expr.call.pairing if isinstance(expr, Ask) else None
        if pairing is None or pairing.exact or pairing.by_labels or expr.rels:
            return None
        assert isinstance(expr, Ask)
        value, other = expr.args
        sides = side_of(value, left.width), side_of(other, left.width)
        if None in sides or sides[0] == sides[1] or is_volatile(expr):
            return None
        own, their = _by_side(keys, left.width, first=sides[0] == "left")
        by = 0 if sides[1] == "left" else -left.width
        side = repeatable(left if sides[1] == "left" else right)
        if side is None:
            return None
        if pairing.labelling is not None:
            label = label_call(expr.call)
            their_label = Ask(label, (other,))
            domain = _domain(side, tuple(shift(e, by) for e in (other, their_label, *their)))
            match = Ask(label_chooser(expr.call), (value, Ask(label, (value,)), *own), domain)
            return function("or", (_has(match, BY_LABEL, their_label), _has(match, BY_TEXT, other)))
        domain = _domain(side, tuple(shift(e, by) for e in (other, *their)))
        match = Ask(chooser(expr.call), (value, *own), domain)
        return function("array_has" if pairing.many else "equal", (match, other))

    return tuple(substitute(t, choice) for t in terms)


def _has(match: Ask, kind: str, what: Expr) -> Expr:
    return function("array_has", (match, function("concat", (text_literal(kind), what))))


def _is_plain_key(term: Expr, n_left: int) -> bool:
    same = isinstance(term, Node) and term.name == "equal"
    return same and is_key(term, n_left) and not needs_model(term) and not is_volatile(term)


def _by_side(
    keys: Sequence[Expr], n_left: int, *, first: bool
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """(the operands of the keys on the side that chooses, those on the other)"""
    own: list[Expr] = []
    their: list[Expr] = []
    for key in keys:
        assert isinstance(key, Node)
        for operand in key.children:
            is_left = side_of(operand, n_left) == "left"
            (own if is_left == first else their).append(operand)
    return tuple(own), tuple(their)


def _domain(side: Plan, columns: tuple[Expr, ...]) -> Plan:
    if any(map(needs_model, columns)):
        return distinct(Block(side, (), columns), *all_fields(len(columns)))
    return distinct(side, *columns)
