"""Asks a call in the condition of an outer or anti join only for rows with a partner.

before: ``project l.id`` over ``(block select l.*, llm(l.x) AS c) left join r on l.k = r.k AND c``
after:  the same with ``CASE WHEN mark THEN llm(l.x) END AS c``, over ``l mark join r on l.k = r.k``
safe:   every row of that side stays, whether it has a partner or not; without one by the cheap part
        of the condition, the rest of it decides nothing. Nothing above may read the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from blendfusion.planner.ir.builders import case, filter_rows
from blendfusion.planner.ir.joins import exchange_sides, join_type
from blendfusion.planner.ir.necessary import ALWAYS, not_null
from blendfusion.planner.ir.nodes import (
    Block,
    Expr,
    Field,
    Node,
    Plan,
    Rel,
    conjuncts,
    fields,
    is_volatile,
    literal_like,
    may_move,
    needs_model,
    once_a_plan,
    relations_below,
)
from blendfusion.planner.ir.traversal import expressions
from blendfusion.planner.stages.join_partners import inline_terms, partner_of, with_partner

_KEEPS_LEFT = ("left", "outer", "left_anti", "left_mark")
_KEEPS_RIGHT = ("right", "outer", "right_anti")


def lazy_join_conditions(plan: Plan) -> Plan:
    if not isinstance(plan, Block) and not (isinstance(plan, Rel) and plan.kind == "project"):
        return plan
    join = plan.inputs[0]
    if not isinstance(join, Rel) or join.kind != "join" or _has_mark(join):
        return plan  # DataFusion confuses the columns of two mark joins
    read = set().union(*map(fields, expressions(plan)))
    return plan.with_inputs(_gate(join, read))


@once_a_plan
def _has_mark(plan: Plan) -> bool:
    """Whether a mark join is or stands below ``plan``."""
    if isinstance(plan, Rel) and plan.kind == "join" and join_type(plan) == "left_mark":
        return True
    return any(map(_has_mark, relations_below(plan)))


def _gate(join: Rel, read: set[int]) -> Rel:
    """The join with calls of its sides asked only for rows with a partner, if nothing above reads
    their answers."""
    left, right = join.inputs
    kind = join_type(join)
    answers = _answers(left) | {left.width + i for i in _answers(right)}
    terms = [t for e in join.exprs for t in conjuncts(e) if not literal_like(t)]
    cheap = [t for t in terms if not fields(t) & answers and not is_volatile(t)]
    new_left, new_right = left, right
    if kind in _KEEPS_LEFT:
        matching = _with_keys(right, terms, left.width)
        new_left = _for_rows_with_partners(left, cheap, matching, _answers(left) - read)
    if kind in _KEEPS_RIGHT:
        around = [exchange_sides(t, left.width, right.width) for t in cheap]
        own = {i for i in _answers(right) if left.width + i not in read}
        matching = _with_keys(
            left, [exchange_sides(t, left.width, right.width) for t in terms], right.width
        )
        new_right = _for_rows_with_partners(right, around, matching, own)
    return join.with_inputs(new_left, new_right)


def _with_keys(other: Plan, terms: Sequence[Expr], width: int) -> Plan:
    """The rows of ``other`` whose answers in equalities, which read it after ``width`` columns, may
    be other than NULL."""
    if not isinstance(other, Block) or not may_move(other):
        return other
    keys = [
        p.index - width for t in terms if _is_equal(t) for p in t.children if isinstance(p, Field)
    ]
    present = [not_null(other.select[i]) for i in keys if i >= 0 and needs_model(other.select[i])]
    known = tuple(c for c in dict.fromkeys(present) if c != ALWAYS)
    return replace(other, source=filter_rows(other.source, known))


def _is_equal(term: Expr) -> bool:
    return isinstance(term, Node) and term.name == "equal"


def _answers(side: Plan) -> set[int]:
    """The columns of a block that are answers."""
    if not isinstance(side, Block):
        return set()
    return {i for i, e in enumerate(side.select) if needs_model(e)}


def _for_rows_with_partners(
    side: Plan, terms: Sequence[Expr], other: Plan, columns: set[int]
) -> Plan:
    if not columns or not isinstance(side, Block) or not may_move(side):
        return side
    partner = partner_of(other)
    if partner is None:
        return side
    source = side.source
    below = inline_terms(terms, side.select, side.width, source.width)
    marked = with_partner(source, below, partner, "left_mark")
    mark = Field(source.width)
    select = tuple(
        case([(mark, e)], None) if i in columns else e for i, e in enumerate(side.select)
    )
    return replace(side, source=marked, select=select)
