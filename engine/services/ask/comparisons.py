"""The comparisons of a drafted query, each with either side first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp

_SIGNS: dict[type[exp.Expr], str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}
COMPARISONS: tuple[type[exp.Binary], ...] = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
"""The predicates that compare two values by a sign."""
_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}
"""The sign with its sides exchanged."""


class Comparison(NamedTuple):
    """``left sign right``. ``sign`` is = for <>, too; ``term`` is the predicate itself."""

    left: exp.Expr
    sign: str
    right: exp.Expr
    term: exp.Expr

    @property
    def is_turned(self) -> bool:
        """Whether the query has the right side first."""
        return self.right is self.term.this


def comparisons(tree: exp.Expr) -> Iterator[Comparison]:
    """The comparisons of a query, and then the bounds of its BETWEENs."""
    for term in tree.find_all(*COMPARISONS):
        sign = _SIGNS.get(type(term), "=")
        yield Comparison(term.left, sign, term.right, term)
        yield Comparison(term.right, _TURNED.get(sign, sign), term.left, term)
    for between in tree.find_all(exp.Between):
        yield Comparison(between.this, ">=", between.args["low"], between)
        yield Comparison(between.this, "<=", between.args["high"], between)
