"""Rewrites a join by labels as a comparison of both values' labels.

before: ``llm_join(x, y, labels => ['a', 'b'], match => 'different')``
after:  ``llm_classify(x, ['a', 'b']) <> llm_classify(y, ['a', 'b'])``; for pairs of labels,
        ``label(x) = 'a' AND label(y) = 'b' OR …``
safe:   that is what the user says a match is. Each value is labelled once, however many it meets.
"""

from __future__ import annotations

from dataclasses import replace

from blendfusion.planner.ir.builders import function, text_literal
from blendfusion.planner.ir.nodes import Ask, Expr, Plan, Rel, substitute
from blendfusion.udfs.declare.labelling import DIFFERENT, SAME
from blendfusion.udfs.evaluate.label_join import label_call, labelling_of


def joins_by_labels(plan: Plan) -> Plan:
    if not isinstance(plan, Rel):
        return plan
    exprs = tuple(substitute(e, _compare_labels) for e in plan.exprs)
    return plan if exprs == plan.exprs else replace(plan, exprs=exprs)


def _compare_labels(expr: Expr) -> Expr | None:
    if not isinstance(expr, Ask) or expr.call.pairing is None or not expr.call.pairing.by_labels:
        return None
    call = label_call(expr.call)
    value, other = (Ask(call, (substitute(arg, _compare_labels),)) for arg in expr.args)
    match = labelling_of(expr.call).match
    if isinstance(match, str):
        return function({SAME: "equal", DIFFERENT: "not_equal"}[match], (value, other))
    pairs = tuple(
        function("and", (_is(value, label), _is(other, partner))) for label, partner in match
    )
    return pairs[0] if len(pairs) == 1 else function("or", pairs)


def _is(value: Expr, label: str) -> Expr:
    return function("equal", (value, text_literal(label)))
